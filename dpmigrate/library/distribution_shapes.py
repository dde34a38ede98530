"""How the elements of a distribution of torch lie across the ranks, by its parameters."""

from __future__ import annotations

from dpmigrate.execution import broadcasting, derivation, placements
from dpmigrate.execution.objects import Object
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import NONE, NOTHING, Value, placement_of
from dpmigrate.library.sites import Site, words

#: each element of the parameters has a distribution of its own
ELEMENT = words("""
Normal Laplace LogNormal Uniform Beta Gamma Exponential Poisson Bernoulli Cauchy Gumbel HalfNormal
HalfCauchy StudentT Geometric RelaxedBernoulli ContinuousBernoulli Chi2 Pareto Weibull Kumaraswamy
InverseGamma FisherSnedecor VonMises NegativeBinomial Binomial
""")  # fmt: skip
#: the last axis of the parameters is that of an event, and what is drawn has it as well
VECTOR = words("""
Dirichlet OneHotCategorical OneHotCategoricalStraightThrough RelaxedOneHotCategorical
MultivariateNormal LowRankMultivariateNormal Multinomial LogisticNormal
""")  # fmt: skip
#: transforms by element
BY_ELEMENT = words("""
TanhTransform SigmoidTransform ExpTransform AffineTransform AbsTransform PowerTransform
SoftplusTransform
""")  # fmt: skip


class Shape:
    """How the elements of a distribution lie: ``placement`` and ``axes`` of what it is of, and how
    many of the last axes are those of one event (``event``), and are gone in what is drawn
    (``lost``).

    Raises:
        LookupError: that is not known.
    """

    placement: Placement
    axes: int | None

    def __init__(self, site: Site, made: Object) -> None:
        heap = site.m.heap
        self.operands: list[Value] = []
        self.event = self.lost = 0
        held = {
            str(k).removeprefix("parameter "): v
            for k, v in heap.names(made.number)
            if isinstance(k, str) and k.startswith("parameter ")
        }
        if heap.read((made.number, "*")):
            raise LookupError
        name = made.name
        if name == "Independent":
            inner = self._inner(site, held.get("0") or held.get("base_distribution") or NOTHING)
            more = site.m.constant(
                held.get("1") or held.get("reinterpreted_batch_ndims") or NOTHING
            )
            if more is None or type(more.value) is not int:
                raise LookupError
            self.event = inner.event + more.value
        elif name == "TransformedDistribution":
            inner = self._inner(site, held.get("0") or held.get("base_distribution") or NOTHING)
            given = held.get("1") or held.get("transforms") or NOTHING
            listed = site.m.known_elements(given)
            for one in listed if listed is not None else [given]:
                for o in site.m.objects(one):
                    if o.name not in BY_ELEMENT:
                        raise LookupError
                    self.operands.append(site.flat(heap.read((o.number, "given")) or NOTHING))
                if not site.m.objects(one):
                    raise LookupError
        elif name in (*ELEMENT, *VECTOR, "Categorical"):
            self._plain(site, name, held)
            return
        else:
            raise LookupError
        self.operands += inner.operands
        self.lost = inner.lost
        self.event = max(self.event, inner.event)
        self.axes = inner.axes
        lying = [inner.placement, *(placement_of(v) for v in self.operands)]
        self.placement = placements.elementwise(lying)

    def _inner(self, site: Site, given: Value) -> Shape:
        found = site.m.objects(given)
        if len(found) != 1 or len(given) != 1 or found[0].kind != "distribution":
            raise LookupError
        return Shape(site, found[0])

    def _plain(self, site: Site, name: str, held: dict[str, Value]) -> None:
        self.operands = [f for v in held.values() if v != NONE and (f := site.flat(v))]
        self.event = 0 if name in ELEMENT else 1
        self.lost = 1 if name == "Categorical" else 0
        if name in ("MultivariateNormal", "LowRankMultivariateNormal"):
            self._normal(held, site)
            return
        if name == "RelaxedBernoulli" or name == "RelaxedOneHotCategorical":
            self.operands = [
                f for k, v in held.items() if k != "0" and v != NONE and (f := site.flat(v))
            ]
        self.placement = placements.elementwise(broadcasting.aligned(self.operands))
        self.axes = broadcasting.axes_of(self.operands)
        self._check()

    def _normal(self, held: dict[str, Value], site: Site) -> None:
        """A normal distribution of vectors: the others are matrices, the same on all ranks."""
        first = held.get("0") or held.get("loc") or NOTHING
        mean = site.flat(first)
        self.operands = [mean]
        for v in held.values():
            f = site.flat(v)
            if v is not first and placement_of(f).kind not in placements.EQUAL:
                raise LookupError
            if v is not first and f:
                self.operands.append(f)
        self.placement = placement_of(mean)
        self.axes = broadcasting.axes_of([mean])
        self._check()

    def _check(self) -> None:
        p = self.placement
        if p.kind is Kind.ROWS and self.event:
            if self.axes is None and p.axis:
                raise LookupError
            if self.axes is not None and p.axis >= self.axes - self.event:
                raise LookupError

    def made(self, site: Site, p: Placement, axes: int | None, more: list[Value]) -> Value:
        """Data made of the parameters."""
        return derivation.derived(
            site.word, p, [*self.operands, *more], site.node, kind="tensor", axes=axes,
            keep_axes=False,
        )  # fmt: skip

    def less(self, count: int) -> int | None:
        """The number of axes without some of the last ones."""
        if self.axes is None:
            return None
        if self.axes < count:
            raise LookupError
        if self.placement.kind is Kind.ROWS and self.placement.axis >= self.axes - count:
            raise LookupError
        return self.axes - count
