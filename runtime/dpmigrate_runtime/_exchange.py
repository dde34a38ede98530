"""Small exchanges between the ranks. None of them catches a failed collective: the group is dead after one."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from ._meet import packed_from_all, packed_from_main, rows
from ._places import meeting
from ._state import alone, device, rank


def barrier() -> None:
    """Wait for every rank. One process: nothing happens."""
    if not alone():
        with meeting("ddp.barrier"):
            rows()


def any_rank(flag: Any) -> bool:
    """Whether ``flag`` is true on at least one rank: the same answer everywhere, so that ranks leave a loop together."""
    if alone():
        return bool(flag)
    mine = int(bool(flag))
    with meeting("ddp.any_rank"):
        return any(vote for (vote,) in rows(mine))


def _place(storage: Any, location: str) -> Any:
    # rank 0's cuda:0 is another rank's own GPU
    return storage.cuda(device().index) if location.startswith("cuda") else storage


def from_main(value: Any) -> Any:
    """Rank 0's value, on every rank; what the others pass is ignored.

    The value must be picklable. CPU tensors in it arrive on the CPU, CUDA tensors on the receiving rank's ``device()``.
    """
    if alone():
        return value
    with meeting("ddp.from_main"):
        packed = packed_from_main(to_bytes(value) if rank() == 0 else b"")
    return value if rank() == 0 else from_bytes(packed)


@contextmanager
def main_folder(folder: Any) -> Iterator[Any]:
    """Rank 0's temporary directory, on every rank: ``with main_folder(TemporaryDirectory()) as path``. A collective at both ends.

    ``folder`` is a context manager that makes a directory and gives its path. At the end of the body all ranks wait for each other before rank 0's
    directory is removed; a rank that leaves the body by an exception waits for nobody. The directories of the other ranks stay empty.
    """
    with folder as own:
        yield from_main(own)
        barrier()


class Settings(dict[str, Any]):
    """Rank 0's settings on the other ranks: items that are attributes as well, as a tracker's are."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def update(self, *given: Any, allow_val_change: Any = None, **more: Any) -> None:
        """As a tracker's: of a dict or of the options of a command line."""
        for one in (*given, more):
            super().update(one if isinstance(one, Mapping) else vars(one))

    def setdefaults(self, given: Any) -> None:
        """What is not there yet."""
        items = given if isinstance(given, Mapping) else vars(given)
        super().update({k: v for k, v in items.items() if k not in self})

    def as_dict(self) -> dict[str, Any]:
        """As a dictionary."""
        return dict(self)


def main_settings(settings: Any) -> Any:
    """The settings of an experiment tracker that runs on rank 0 only (``wandb.config``): themselves there, a copy of their items on the other ranks.

    Rank 0's must have ``keys()``, with picklable values. What is changed in them later is changed on the rank itself.
    """
    if alone():
        return settings
    with meeting("ddp.main_settings"):
        packed = packed_from_main(to_bytes({k: settings[k] for k in settings.keys()}) if rank() == 0 else b"")  # noqa: SIM118
    return settings if rank() == 0 else Settings(from_bytes(packed))


def from_all(value: Any) -> list[Any]:
    """Every rank's value, by rank; tensors arrive as in ``from_main``, and one's own value is the object itself."""
    return [value if number == rank() else from_bytes(packed) for number, packed in enumerate(packed_from_all(to_bytes(value)))]


def to_bytes(value: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


def from_bytes(packed: bytes) -> Any:
    return torch.load(io.BytesIO(packed), map_location=_place, weights_only=False)
