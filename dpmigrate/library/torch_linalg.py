"""torch's linear algebra: inverses, factorisations, diagonals
(https://docs.pytorch.org/docs/stable/linalg.html).
"""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.values import Value
from dpmigrate.library.axes import on_axis, rows_of
from dpmigrate.library.effects import (
    batched,
    coupled,
    unestablished,
)
from dpmigrate.library.reductions import (
    along,
)
from dpmigrate.library.sites import Row, Site, examples
from dpmigrate.library.torch_math import both

_DOC = "https://docs.pytorch.org/docs/stable/torch.html"


def diagonal(site: Site) -> Value:
    """``diagonal``: rows where both axes lie behind that of the samples."""
    found = rows_of(site.get(0) or ())
    if found is None:
        return site.each()
    beside = [
        on_axis(site.constant(i, n, d), found) for i, n, d in ((2, "dim1", 0), (3, "dim2", 1))
    ]
    if None in beside or found.axes is None or found.placement.axis:
        return site.unknown("which axes of a diagonal run over the samples")
    if any(beside):
        return site.data(placements.PER_RANK, keep_axes=False)
    return site.data(found.placement, axes=found.axes - 1)


ROWS = (
    Row(both("""
inverse det logdet slogdet eig eigh eigvals eigvalsh cholesky matrix_exp inv
"""), batched(2, square=True), examples("""
(x[:, :, None] * x[:, None]).add(torch.eye(4)).inverse()
(x[:, :, None] * x[:, None]).det()
w.inverse()
"""), _DOC),
    Row(both("pinverse svd svdvals qr matrix_rank triu tril"), batched(2), examples("""
torch.svd(x)[1]
x.triu()
"""), _DOC),
    Row(both("solve lstsq pca_lowrank"), unestablished("which samples meet"), examples("""
torch.linalg.solve(w, w)
"""), _DOC),
    Row(both("diagonal"), diagonal, examples("""
x.diagonal()
(x[:, :, None] * x[:, None]).diagonal(dim1=1, dim2=2)
(x @ x.t()).diagonal()
"""), _DOC),
    Row(both("diag diag_embed"), coupled, ("(x @ x.t()).diag()", "w.diag()"), _DOC),
    Row(both("cross"), along(2), ("torch.cross(x[:, :3], y[:, :3], dim=1)",), _DOC),
)  # fmt: skip
