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


def _hash_as_its_rank() -> None:
    """Start a rank but 0 again with a seed of its own for the hashes of strings, as ranks have them: what is numbered by a set is another thing on each.

    The original and rank 0 have the seed 0 both, so that such an order of rank 0's is the original's.
    """
    rank = os.environ.get("RANK", "0")
    if os.name == "posix" and rank != "0" and os.environ.get("PYTHONHASHSEED") == "0":
        os.environ["PYTHONHASHSEED"] = rank
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


if os.environ.get("DPMIGRATE_PROBE"):
    _hash_as_its_rank()
_run_the_users_own()
if os.environ.get("DPMIGRATE_PROBE"):
    import dpmigrate_probe

    dpmigrate_probe.enter()
