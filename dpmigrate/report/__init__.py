"""Outcomes as text or JSON."""

from __future__ import annotations
