"""``python -m dpmigrate``."""

from __future__ import annotations

from dpmigrate.cli import main

main()
