"""One place that keeps the other ranks quiet, instead of an ``if`` round each of a script's prints and bars."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
import os
import sys
import warnings
from types import TracebackType
from typing import Any

# the beginning of DDP's error, whose advice does not help here: parameters without a gradient are not what stops a wrapped model
_UNFINISHED = "Expected to have finished reduction in the prior iteration"
_INTERRUPTED = "a backward through the model did not come to its end before the next forward: did the program catch an exception in it?"
# tqdm.std.tqdm.__init__(self, iterable, desc, total, leave, file, ncols, mininterval, maxinterval, miniters, ascii, disable, ...)
_DISABLE_POSITION = 10


def quiet() -> None:
    """Silence print, logging up to WARNING, warnings, tqdm and loguru in this process. stderr stays: tracebacks must be seen."""
    sys.stdout.flush()
    # a real file, because scripts and libraries ask stdout for .buffer, .fileno() and .isatty()
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - lives as long as the process
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    if "loguru" in sys.modules or importlib.util.find_spec("loguru") is not None:  # writes to the stderr of its import, which may come later
        importlib.import_module("loguru").logger.disable("")
    if importlib.util.find_spec("tqdm") is not None:
        _disable_bars(importlib.import_module("tqdm.std").tqdm)


def _disable_bars(bar: Any) -> None:
    # patching the class in place reaches `from tqdm import tqdm`, trange and the subclasses in tqdm.auto and tqdm.asyncio
    original, shown, steps, closed = bar.__init__, bar.update, bar.__iter__, bar.close

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if len(args) > _DISABLE_POSITION:
            asked = args[_DISABLE_POSITION]
            args = (*args[:_DISABLE_POSITION], True, *args[_DISABLE_POSITION + 1 :])
        else:
            asked = kwargs.get("disable", False)
            kwargs["disable"] = True
        original(self, *args, **kwargs)
        # a disabled bar of tqdm's does not count, but programs divide by bar.n; one that rank 0 has disabled as well does not count there either
        self._counts = sys.stderr.isatty() if asked is None else not asked

    @functools.wraps(shown)
    def update(self: Any, n: float = 1) -> Any:
        if self.disable and self._counts:
            self.n += n
        return shown(self, n)

    @functools.wraps(steps)
    def iterate(self: Any) -> Any:
        if not self.disable:
            yield from steps(self)
            return
        try:
            for item in self.iterable:
                yield item
                self.n += self._counts
        finally:
            self.close()

    @functools.wraps(closed)
    def close(self: Any) -> None:
        closed(self)
        self._counts = False  # tqdm takes anything for the step of a bar that is closed, and leaves it

    bar._counts = False  # of those that are there already
    bar.__init__, bar.update, bar.__iter__, bar.close = init, update, iterate, close


def report_failures() -> None:
    """Hand an uncaught exception to torchrun, whose summary otherwise says only "traceback: To enable traceback see ...".

    Does what ``torch.distributed.elastic.multiprocessing.errors.record`` does, without a decorator round the script's main.
    """
    if not os.environ.get("TORCHELASTIC_ERROR_FILE"):
        return
    from torch.distributed.elastic.multiprocessing.errors import get_error_handler

    handler = get_error_handler()
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, Exception):
            try:
                # the handler formats the exception being handled, and inside an excepthook none is
                raise error.with_traceback(trace)
            except Exception as caught:
                handler.record_exception(caught)
        previous(kind, error, trace)
        if _UNFINISHED in str(error):
            print(f"dpmigrate: {_INTERRUPTED}", file=sys.stderr)

    sys.excepthook = hook
