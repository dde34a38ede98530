"""A proof in progress, for people who wait at a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import Progress as Bars
from rich.progress import SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from dpmigrate.verify.proof import Listener


class Progress(Listener):
    """What is going on, on the terminal's error stream: a line for each run, with its steps and seconds."""

    def __init__(self, steps: int | None) -> None:
        self._steps = steps
        self._task: TaskID | None = None
        columns = (SpinnerColumn(finished_text=" "), TextColumn("{task.description}", markup=False), TextColumn("{task.fields[done]}"), TimeElapsedColumn())
        self._bars = Bars(*columns, console=Console(stderr=True))

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._finish()
        self._bars.stop()

    def _finish(self) -> None:
        if self._task is not None:
            self._bars.update(self._task, total=1, completed=1)

    def begins(self, text: str) -> None:
        """A line of its own for what begins now."""
        self._finish()
        self._task = self._bars.add_task(text, total=None, done="")

    def steps(self, done: int) -> None:
        """The steps of the run in progress."""
        if self._task is not None:
            self._bars.update(self._task, done=f"{done} of {self._steps} steps" if self._steps else f"{done} steps")
