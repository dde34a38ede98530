"""numpy (https://numpy.org/doc/stable/reference/): arrays of the host, with the rules of tensors."""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.values import Data, Value, cast_kind, const, data, placement_of, value
from dpmigrate.library import torch_tensor
from dpmigrate.library.effects import none, uniform
from dpmigrate.library.sites import Row, Site, table
from dpmigrate.library.stdlib import loaded, saved

_DOC = "https://numpy.org/doc/stable/reference/"
#: functions that have torch's name and meaning
_LIKE_TORCH = {
    "concatenate": "cat", "absolute": "abs", "power": "pow", "argmax": "argmax", "amax": "max", "amin": "min",
    "vstack": "stack", "hstack": "cat", "array": "tensor", "asarray": "tensor", "expand_dims": "unsqueeze",
    "random.rand": "rand", "random.randn": "randn", "random.randint": "randint", "random.normal": "normal",
    "random.uniform": "rand", "random.random": "rand", "random.permutation": "randperm", "average": "mean",
    "reshape": "reshape", "random.standard_normal": "randn", "stack": "stack", "random.random_sample": "rand",
    "linalg.norm": "norm", "nanmean": "mean", "nansum": "sum", "ravel": "flatten", "matmul": "matmul", "dot": "dot",
    "float_power": "pow", "copy": "clone", "float32": "tensor", "float64": "tensor", "int64": "tensor", "int32": "tensor",
    "ascontiguousarray": "clone", "random.binomial": "rand", "random.poisson": "rand", "random.exponential": "rand",
    "random.beta": "rand", "uint8": "tensor", "bool_": "tensor", "squeeze": "squeeze", "append": "cat",
}  # fmt: skip


def pattern(name: str) -> Row | None:
    """What numpy calls as torch does."""
    if not name.startswith("numpy."):
        return None
    word = name[len("numpy.") :]
    row = torch_tensor.FUNCTIONS.get(f"torch.{_LIKE_TORCH.get(word, word)}")
    if row is None:
        return None
    return Row(name, lambda site: as_array(row.effect(site)))


def as_array(v: Value | None) -> Value | None:
    """The same data as an array."""
    return cast_kind(v, "tensor", "array") if v else v


def drawn(site: Site) -> Value:
    """A draw from numpy's stream."""
    site.event("draw", stream=const("numpy"))
    chosen = site.get(0)
    if site.word == "choice" and chosen and data(chosen):
        return site.data(placement_of(chosen))
    return value(Data("array", placements.UNIFORM))


ROWS = (
    Row("numpy.load numpy.loadtxt numpy.genfromtxt numpy.fromfile", loaded),
    Row("numpy.save numpy.savez numpy.savetxt numpy.savez_compressed", saved),
    Row("numpy.random.shuffle numpy.set_printoptions numpy.seterr numpy.random.set_state", none),
    Row("""
numpy.random.choice numpy.random.RandomState numpy.random.default_rng
numpy.random.multivariate_normal numpy.random.dirichlet
""", drawn),
    Row("""
numpy.prod numpy.iinfo numpy.finfo numpy.dtype numpy.random.get_state numpy.frombuffer
""", uniform),
    Row("numpy.arange numpy.linspace numpy.eye", torch_tensor.counted, (), _DOC),
)  # fmt: skip
FUNCTIONS = table(ROWS)
OF_KIND = {
    ("array", n): Row("", lambda s: as_array(torch_tensor.METHODS[f".{s.word}"].effect(s)))
    for n in ("mean", "sum")
}
ATTRIBUTES: dict[tuple[str, str], Row] = {}
