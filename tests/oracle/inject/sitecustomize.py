"""Found by a rank through PYTHONPATH, behind the probe of ``dpmigrate verify``."""

import oracle_probe  # type: ignore[import-not-found]

oracle_probe.install()
