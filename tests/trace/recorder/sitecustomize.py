"""Found by the probe of ``dpmigrate verify`` at the start of a run that is recorded for a comparison with the trace."""

from __future__ import annotations

import os

if os.environ.get("DPMIGRATE_PROBE") and not os.environ.get("DPMIGRATE_PROBED"):
    import dpmigrate_recorder  # type: ignore[import-not-found]

    dpmigrate_recorder.enter()
