"""The proof as one self-contained HTML page: verdict, table, curves drawn as SVG, the diff."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

from dpmigrate.verify.judge import Verdict
from dpmigrate.verify.proof import Proof
from dpmigrate.verify.show import verdict

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#1c2530;background:#fff}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}
.verdict{padding:.7em 1em;border-radius:6px;font-weight:600}.good{background:#e2f5e5;color:#14532d}.bad{background:#fde4e4;color:#7f1d1d}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.35em .7em;border-bottom:1px solid #e3e7ec;vertical-align:top}
.differs{color:#b91c1c;font-weight:600}.equal,.bound{color:#15803d}.none{color:#6b7280}.known{color:#a16207}
pre{background:#f6f8fa;padding:1em;overflow-x:auto;font-size:12.5px;line-height:1.4;border-radius:6px}
.plus{color:#15803d}.minus{color:#b91c1c}.at{color:#1d4ed8}
svg{width:100%;height:auto;background:#f6f8fa;border-radius:6px}svg text{font:12px system-ui,sans-serif;fill:#4b5563}
.key{display:inline-block;width:1.4em;height:.25em;vertical-align:middle;margin:0 .4em 0 1em}
"""
_CLASSES = {Verdict.EQUAL: "equal", Verdict.BOUND: "bound", Verdict.DIFFERS: "differs", Verdict.NONE: "none", Verdict.KNOWN: "known"}
_COLOURS = ("#93b4f5", "#c2410c")
_WIDTH, _HEIGHT, _LEFT, _TOP = 900, 260, 70, 15


def write(folder: Path, proof: Proof, name: str, changed: Sequence[tuple[str, bytes, bytes]]) -> Path:
    """Write ``index.html`` into the folder, which is made, and give its path. ``changed``: each file's name with its old and new content."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    texts = [(file, before.decode("utf-8", "replace"), after.decode("utf-8", "replace")) for file, before, after in changed]
    path.write_text(page(proof, name, texts), encoding="utf-8")
    return path


def page(proof: Proof, name: str, changed: Sequence[tuple[str, str, str]]) -> str:
    """The page's source; everything of the user's is escaped."""
    rows = "".join(
        f'<tr><td>{escape(line.name)}</td><td class="{_CLASSES[line.verdict]}">{line.verdict.value}</td><td>{escape(line.text)}</td></tr>'
        for line in proof.lines
    )
    parts = [
        f"<h1>{escape(name)}</h1>",
        f'<p class="verdict {"good" if proof.holds else "bad"}">{escape(verdict(proof))}</p>',
        f"<pre>{escape(proof.failure)}</pre>" if proof.failure else f"<table><tr><th>compared</th><th>verdict</th><th></th></tr>{rows}</table>",
        "<h2>How the runs were made comparable</h2><ul>" + "".join(f"<li>{escape(note)}</li>" for note in proof.notes) + "</ul>" if proof.notes else "",
    ]
    if proof.losses:
        key = "".join(
            f'<span class="key" style="background:{c}"></span>{n}' for c, n in zip(_COLOURS, ("original", "migrated, all ranks together"), strict=True)
        )
        pairs = [[(s, a) for s, a, _ in proof.losses], [(s, b) for s, _, b in proof.losses]]
        parts.append(f"<h2>Loss at each step{key}</h2>{curves(pairs)}")
    if proof.distances:
        relative = [(d.step, max(d.relative, 1e-17)) for d in proof.distances]
        parts.append(f"<h2>Distance of the parameters, relative to the way moved</h2>{curves([relative], logarithmic=True)}")
    parts.append("<h2>What was changed</h2>" + "".join(f"<h3>{escape(file)}</h3><pre>{_diff(before, after)}</pre>" for file, before, after in changed))
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(name)}: proof</title><style>{_STYLE}</style>{"".join(parts)}</html>\n'


def curves(series: Sequence[Sequence[tuple[int, float]]], *, logarithmic: bool = False) -> str:
    """Lines of (step, value) as SVG, the first drawn broad under the others; values that are not finite are left out."""
    drawn = [[(i, math.log10(v) if logarithmic else v) for i, v in s if math.isfinite(v)] for s in series]
    values = [v for line in drawn for _, v in line]
    if not values:
        return "<p>nothing to draw</p>"
    ticks = _ticks(min(values), max(values), whole=logarithmic)
    low, high = ticks[0], ticks[-1]
    first, last = min(i for line in drawn for i, _ in line), max(i for line in drawn for i, _ in line)

    def x(i: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 20) * (i - first) / max(1, last - first)

    def y(v: float) -> float:
        return _TOP + (_HEIGHT - _TOP - 35) * (high - v) / (high - low)

    marks = "".join(
        f'<line x1="{_LEFT}" x2="{_WIDTH - 20}" y1="{y(t):.1f}" y2="{y(t):.1f}" stroke="#d8dee6"/>'
        f'<text x="{_LEFT - 8}" y="{y(t) + 4:.1f}" text-anchor="end">{f"1e{t:.0f}" if logarithmic else f"{t:.3g}"}</text>'
        for t in ticks
    )
    steps = "".join(
        f'<text x="{x(i):.1f}" y="{_HEIGHT - 12}" text-anchor="middle">{i}</text>' for i in sorted({round(first + (last - first) * k / 5) for k in range(6)})
    )
    lines = "".join(
        f'<polyline fill="none" stroke="{colour}" stroke-width="{width}" points="{" ".join(f"{x(i):.1f},{y(v):.1f}" for i, v in line)}"/>'
        for colour, width, line in zip(_COLOURS[-len(drawn) :], (6, 2)[-len(drawn) :], drawn, strict=True)
    )
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{marks}{steps}{lines}</svg>'


def _ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Four to nine round numbers from below the lowest value to above the highest; ``whole``: none between whole numbers."""
    room = high - low or abs(high) or 1.0
    step = 10.0 ** math.floor(math.log10(room / 4))
    step = next(step * k for k in (1, 2, 5, 10) if room / (step * k) <= 6)
    step = max(1.0, round(step)) if whole else step
    first, last = math.floor(low / step), math.ceil(high / step)
    return [step * k for k in range(first, max(last, first + 1) + 1)]


def _diff(before: str, after: str) -> str:
    out = []
    for line in difflib.unified_diff(before.splitlines(), after.splitlines(), "original", "migrated", lineterm=""):
        kind = "plus" if line.startswith("+") else "minus" if line.startswith("-") else "at" if line.startswith("@") else ""
        out.append(f'<span class="{kind}">{escape(line)}</span>' if kind else escape(line))
    return "\n".join(out)
