"""Executes programs on abstract values: Python's own semantics, and nothing of any library.

What code outside of the program does comes from a ``Library`` (``foreign``). The result is a
``Trace``.
"""
