"""Found by Python at start-up through PYTHONPATH: starts the probe in the processes of a run that `$DPMIGRATE_PROBE` describes, and nothing anywhere else."""

from __future__ import annotations

import importlib.util
import os
import sys


def _run_the_users_own() -> None:
    """This file hides another ``sitecustomize`` on the path, which must run as well."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in sys.path:
        path = os.path.join(folder, "sitecustomize.py")
        if os.path.abspath(folder) != here and os.path.isfile(path):
            spec = importlib.util.spec_from_file_location("sitecustomize_of_the_user", path)
            if spec is not None and spec.loader is not None:
                spec.loader.exec_module(importlib.util.module_from_spec(spec))
            return


_run_the_users_own()
if os.environ.get("DPMIGRATE_PROBE"):
    import dpmigrate_probe

    dpmigrate_probe.enter()
