"""Noise for the samples of a batch is drawn by the sample: the same whichever process has the sample, so that VAEs, GANs and diffusion models compare.

A draw belongs to the batch if its first dimension is the number of samples in the batch that was delivered last. Whatever else is drawn comes from the
process's own generator, as always, and makes the step not comparable (``draws`` in the record).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from dpmigrate_probe.state import CONFIG, RECORD, STATE, taken

Row = Callable[..., Any]


def install(torch: Any) -> None:
    """Replace the functions that draw; only where comparable runs are asked for."""
    if not CONFIG["still"]:
        return
    for name in ("randn", "rand"):
        setattr(torch, name, _by_shape(torch, getattr(torch, name)))
    torch.randint = _integers(torch, torch.randint)
    for name in ("randn_like", "rand_like", "randint_like"):
        setattr(torch, name, _like(torch, getattr(torch, name)))
    torch.normal = _normal(torch, torch.normal)
    torch.bernoulli = _like(torch, torch.bernoulli)
    for name in ("normal_", "uniform_", "random_", "exponential_", "bernoulli_"):
        setattr(torch.Tensor, name, _in_place(torch, getattr(torch.Tensor, name)))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        _numpy(numpy.random)


def _seeds(size: Sequence[int]) -> list[int] | None:
    """One seed for each sample of the batch, if a draw of this size belongs to it."""
    samples = taken()
    if not samples or not size or size[0] != len(samples) or None in samples or STATE["fetching"]:
        return None
    STATE["drawn"] += 1
    RECORD["noise"] = True
    return [hash((i, STATE["drawn"], STATE["current"]["nth"])) % 2**31 for i in samples]


def _rows(torch: Any, seeds: list[int], row: Callable[[Any], Any]) -> list[Any]:
    """``row(generator)`` for each sample."""
    found = []
    for seed in seeds:
        generator = torch.Generator()
        generator.manual_seed(seed)
        found.append(row(generator))
    return found


def _placed(torch: Any, rows: list[Any], options: dict[str, Any]) -> Any:
    wanted = {k: options[k] for k in ("device", "dtype") if options.get(k) is not None}
    value = torch.stack(rows).to(**wanted) if wanted else torch.stack(rows)
    return value.requires_grad_() if options.get("requires_grad") else value


def _size(arguments: Sequence[Any], options: dict[str, Any]) -> tuple[int, ...]:
    given = options.get("size", arguments[0] if len(arguments) == 1 and not isinstance(arguments[0], int) else arguments)
    try:
        return tuple(int(n) for n in given)
    except TypeError:
        return ()


def _by_shape(torch: Any, draw: Row) -> Row:
    """randn(4, 3), rand((4, 3)), randn(size=(4, 3))."""

    @functools.wraps(draw)
    def drawn(*a: Any, **k: Any) -> Any:
        size = _size(a, k)
        seeds = None if k.get("generator") is not None or k.get("out") is not None else _seeds(size)
        if seeds is None:
            return draw(*a, **k)
        kind = {"dtype": k.get("dtype")}
        return _placed(torch, _rows(torch, seeds, lambda g: draw(size[1:], generator=g, **kind)), k)

    return drawn


def _integers(torch: Any, draw: Row) -> Row:
    """randint(high, size), randint(low, high, size)."""

    @functools.wraps(draw)
    def drawn(*a: Any, **k: Any) -> Any:
        given = k.get("size", a[-1] if a and not isinstance(a[-1], int) else ())
        seeds = None if k.get("generator") is not None or k.get("out") is not None else _seeds(tuple(given))
        if seeds is None:
            return draw(*a, **k)
        bounds = [v for v in a if isinstance(v, int)]
        named = {n: k[n] for n in ("low", "high", "dtype") if n in k}
        return _placed(torch, _rows(torch, seeds, lambda g: draw(*bounds, size=tuple(given)[1:], generator=g, **named)), k)

    return drawn


def _like(torch: Any, draw: Row) -> Row:
    """randn_like(x), bernoulli(p): a row at a time, in x's type and place."""

    @functools.wraps(draw)
    def drawn(x: Any, *a: Any, **k: Any) -> Any:
        seeds = None if k.get("generator") is not None or k.get("out") is not None else _seeds(x.shape)
        if seeds is None:
            return draw(x, *a, **k)
        plain = x.detach().cpu()
        before = torch.get_rng_state()
        rows = []
        for i, seed in enumerate(seeds):
            torch.default_generator.manual_seed(seed)
            rows.append(draw(plain[i], *a, **k))
        torch.set_rng_state(before)
        return _placed(torch, rows, {"device": x.device})

    return drawn


def _normal(torch: Any, draw: Row) -> Row:
    """normal(mean, std) of tensors; normal(0, 1, size)."""

    @functools.wraps(draw)
    def drawn(*a: Any, **k: Any) -> Any:
        shaped = next((v for v in (*a[:2], k.get("mean"), k.get("std")) if isinstance(v, torch.Tensor)), None)
        given = k.get("size", a[2] if len(a) > 2 else ())
        seeds = None if k.get("generator") is not None or k.get("out") is not None else _seeds(shaped.shape if shaped is not None else tuple(given))
        if seeds is None:
            return draw(*a, **k)
        mean, std = k.get("mean", a[0] if a else 0.0), k.get("std", a[1] if len(a) > 1 else 1.0)
        like = shaped if shaped is not None else torch.empty(tuple(given))
        unit = _placed(torch, _rows(torch, seeds, lambda g: torch.empty(like.shape[1:], dtype=like.dtype).normal_(generator=g)), {"device": like.device})
        return mean + std * unit

    return drawn


def _in_place(torch: Any, draw: Row) -> Row:
    """x.normal_(), x.uniform_(0, 1)."""

    @functools.wraps(draw)
    def drawn(self: Any, *a: Any, **k: Any) -> Any:
        by_element = any(isinstance(v, torch.Tensor) for v in (*a, *k.values()))
        seeds = None if by_element or k.get("generator") is not None else _seeds(self.shape)
        if seeds is None:
            return draw(self, *a, **k)
        plain = torch.empty(self.shape[1:], dtype=self.dtype)
        rows = _rows(torch, seeds, lambda g: draw(plain.clone(), *a, generator=g, **k))
        with torch.no_grad():
            return self.copy_(torch.stack(rows))

    return drawn


def _numpy(random: Any) -> None:
    """np.random.normal(0, 1, (n, z)), np.random.randn(n, z), np.random.randint(0, 10, n)."""

    def by_sample(draw: Row, position: int | None) -> Row:
        @functools.wraps(draw)
        def drawn(*a: Any, **k: Any) -> Any:
            given = k.get("size") if position is None or len(a) <= position else a[position]
            size = a if position is None and "size" not in k else given if isinstance(given, tuple | list) else () if given is None else (given,)
            seeds = _seeds(tuple(size)) if all(isinstance(n, int) for n in size) else None
            if seeds is None:
                return draw(*a, **k)
            numpy = sys.modules["numpy"]
            before, rows = random.get_state(), []
            for seed in seeds:
                random.seed(seed)
                if position is None:
                    rows.append(draw(*size[1:]))
                else:
                    rest = {n: v for n, v in k.items() if n != "size"}
                    rows.append(draw(*a[:position], size=tuple(size[1:]) or None, **rest))
            random.set_state(before)
            return numpy.asarray(rows)

        return drawn

    positions = {"normal": 2, "uniform": 2, "randint": 2, "standard_normal": 0, "random": 0, "random_sample": 0, "randn": None, "rand": None}
    for name, position in positions.items():
        setattr(random, name, by_sample(getattr(random, name), position))
