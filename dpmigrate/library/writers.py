"""Loggers and writers of tables: what lines and rows are written to
(https://docs.python.org/3/library/logging.html, csv.html).
"""

from __future__ import annotations

from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    Value,
    const,
)
from dpmigrate.library.effects import uniform
from dpmigrate.library.sites import Row, Site, methods

_DOC = "https://docs.python.org/3/library/"


def log_configured(site: Site) -> Value:
    """``logging.basicConfig(filename=…)``: a file is opened where one is named."""
    path = site.arguments.keywords.get("filename")
    if path:
        mode = site.arguments.keywords.get("filemode") or const("a")
        site.event("open", path=path, mode=mode)
    return NONE


def log_file(site: Site) -> Value:
    """``logging.FileHandler(path)``: a file that a logger writes to."""
    mode = site.get(1, "mode") or const("a")
    site.event("open", path=site.get(0, "filename") or NOTHING, mode=mode)
    return writer(site)


def written(site: Site) -> Value:
    """A method of a file or a writer: what is written."""
    site.tell("write")
    return NONE


def writer(site: Site) -> Value:
    """Something that text is written to."""
    return site.ref("writer")


ROWS = (
    Row("logging.basicConfig", log_configured, source=_DOC),
    Row("""
csv.writer csv.DictWriter logging.getLogger logging.StreamHandler logging.Formatter
logging.LoggerAdapter logging.NullHandler
""", writer, source=_DOC),
    Row("""
logging.FileHandler logging.handlers.RotatingFileHandler
logging.handlers.TimedRotatingFileHandler logging.handlers.WatchedFileHandler
""", log_file, source=_DOC),
    Row(methods("writer", """
writerow writerows writeheader info debug warning error setLevel addHandler setFormatter log
critical exception warn removeHandler hasHandlers close flush write
"""), written, source=_DOC),
)  # fmt: skip
ATTRIBUTES = (Row(methods("writer", "handlers level name propagate log_dir logdir"), uniform, source=_DOC),)
