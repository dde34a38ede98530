"""torch.distributions (https://docs.pytorch.org/docs/stable/distributions.html).

A distribution keeps its parameters. What is drawn from it, and its statistics, lie as the
parameters do: each sample has its own distribution. The last axes of some are those of one event, over which
``log_prob`` and ``entropy`` add up.
"""

from __future__ import annotations

from dpmigrate.execution import arithmetic, broadcasting, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.joins import join
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import NOTHING, SETTING, Data, Ref, Value, placement_of, value
from dpmigrate.library.distribution_shapes import BY_ELEMENT, ELEMENT, VECTOR, Shape
from dpmigrate.library.effects import cut, uniform
from dpmigrate.library.sites import Row, Site, examples, methods, prefixed
from dpmigrate.library.streams import drawing

_DOC = "https://docs.pytorch.org/docs/stable/distributions.html"
#: arguments that are no parameters of the elements
_SETTINGS = ("validate_args", "total_count", "temperature")


def distribution(site: Site) -> Value:
    """``Normal(mean, std)``: its parameters are kept."""
    made = site.made("distribution")
    for i, held in enumerate(site.arguments.positional):
        site.m.heap.write((made.number, f"parameter {i}"), held)
    for name, held in site.arguments.keywords.items():
        if name not in _SETTINGS:
            site.m.heap.write((made.number, f"parameter {name}"), held)
    if site.arguments.star or site.arguments.stars:
        given = join(site.arguments.star, site.arguments.stars)
        site.m.heap.write((made.number, "*"), given)
    return value(Ref(made.number))


def bijection(site: Site) -> Value:
    """``TanhTransform()``."""
    return site.ref("bijection", given=site.arguments.joined())


def _sampled(site: Site) -> Value:
    shape = _shape_of(site)
    if shape is None:
        return site.unknown("what is drawn from a distribution")
    given = site.get(1, "sample_shape")
    listed = [] if given is None else site.m.known_elements(given)
    if listed is None or any(placement_of(v).kind not in placements.EQUAL for v in listed):
        return site.unknown("how much is drawn from a distribution")
    try:
        axes = shape.less(shape.lost)
    except LookupError:
        return site.unknown("what is drawn from a distribution")
    p = shape.placement
    if p.kind is Kind.ROWS:
        p = p._replace(axis=p.axis + len(listed))
    made = shape.made(site, p, axes + len(listed) if axes is not None else None, [])
    return made if site.word == "rsample" else cut(made)


def _shape_of(site: Site) -> Shape | None:
    assert site.object is not None
    try:
        return Shape(site, site.object)
    except LookupError:
        return None


def probability(site: Site) -> Value:
    """``log_prob(x)``, ``cdf(x)``: a number for each event."""
    shape, given = _shape_of(site), site.flat(site.get(1, "value") or NOTHING)
    if shape is None:
        return site.unknown("the probability of a distribution")
    try:
        axes = shape.less(shape.lost)  # as what is drawn
    except LookupError:
        return site.unknown("the probability of a distribution")
    drawn_as = value(Data("tensor", shape.placement, axes=axes))
    together = arithmetic.elementwise(site.word, [drawn_as, given], site.node)
    p, axes = placement_of(together), broadcasting.axes_of([drawn_as, given])
    events = shape.event - shape.lost
    if p.kind is Kind.ROWS and events:
        if (axes is None and p.axis) or (axes is not None and p.axis >= axes - events):
            return site.unknown("the probability of a distribution")
    left = axes - events if axes is not None else None
    return shape.made(site, p, left, [given])


def statistic(site: Site) -> Value:
    """``entropy()``: a number for each event."""
    shape = _shape_of(site)
    try:
        if shape is None:
            raise LookupError
        return shape.made(site, shape.placement, shape.less(shape.event), [])
    except LookupError:
        return site.unknown("the entropy of a distribution")


def moment(site: Site) -> Value:
    """``d.mean``, ``d.stddev``, ``d.probs``: by element."""
    shape = _shape_of(site)
    if shape is None or (site.object is not None and site.object.name == "Categorical" and (
        site.word not in ("probs", "logits")
    )):  # fmt: skip
        return site.unknown(f"the {site.word} of a distribution")
    return shape.made(site, shape.placement, shape.axes, [])


def divergence(site: Site) -> Value:
    """``kl_divergence(p, q)``: a number for each event."""
    shapes = []
    for i in range(2):
        found = site.m.objects(site.get(i) or NOTHING)
        if len(found) != 1 or found[0].kind != "distribution":
            return _not_known(site)
        shapes.append(_shape_of(Site(
            site.m, site.name, Arguments(), site.node, site.frame, Ref(found[0].number)
        )))  # fmt: skip
    a, b = shapes
    if a is None or b is None or a.event != b.event:
        return _not_known(site)
    lying = [value(Data("tensor", s.placement, axes=s.axes)) for s in (a, b)]
    p, axes = placements.elementwise(broadcasting.aligned(lying)), broadcasting.axes_of(lying)
    if p.kind is Kind.ROWS and a.event:
        if (axes is None and p.axis) or (axes is not None and p.axis >= axes - a.event):
            return _not_known(site)
    return a.made(site, p, axes - a.event if axes is not None else None, b.operands)


def _not_known(site: Site) -> Value:
    """Whatever it is made of may differ."""
    origin = site.unknown("the divergence of two distributions")
    return tuple(
        a._replace(placement=placements.UNKNOWN) if isinstance(a, Data) else a for a in origin
    )


def expanded(site: Site) -> Value:
    """``d.expand(shape)``: other axes."""
    return site.ref("distribution", **{"*": SETTING})


def listed_shape(site: Site) -> Value:
    """``d.event_shape``: sizes of one event, the same on all ranks; those of a batch differ."""
    if site.word == "event_shape":
        return SETTING
    shape = _shape_of(site)
    if shape is not None and shape.placement.kind in placements.EQUAL:
        return SETTING
    return site.unknown("the sizes of a batch of distributions")


def bijected(site: Site) -> Value:
    """``transform(x)`` by element."""
    made = site.object
    assert made is not None
    if made.name not in BY_ELEMENT:
        return site.unknown(f"what {made.name} does")
    return site.each()


ROWS = (
    Row(prefixed("torch.distributions.", " ".join((
        *ELEMENT, *VECTOR, "Categorical", "Independent", "TransformedDistribution",
        "MixtureSameFamily", "Wishart", "LKJCholesky", "GeneralizedPareto",
    ))), distribution, examples("""
torch.distributions.Normal(x, y.abs() + 1).log_prob(y)
torch.distributions.Normal(0.0, 1.0).log_prob(x).sum()
torch.distributions.Normal(x @ w, 1.0).log_prob(y).mean()
torch.distributions.Normal(x @ w, 1.0).rsample()
torch.distributions.Normal(x @ w, 1.0).sample()
torch.distributions.Normal(x, 1.0).entropy().mean(-1)
torch.distributions.Normal(x, y.exp()).mean
torch.distributions.Normal(x, 1.0).sample((3,))
torch.distributions.Normal(torch.zeros(4), torch.ones(4)).sample((x.size(0),))
torch.distributions.Categorical(logits=x @ w).log_prob(t)
torch.distributions.Categorical(logits=x @ w).log_prob(t).mean()
torch.distributions.Categorical(x.softmax(1)).entropy()
torch.distributions.Categorical(probs=x.softmax(1)).sample()
torch.distributions.Categorical(logits=x).probs
torch.distributions.OneHotCategorical(logits=x).sample()
torch.distributions.OneHotCategorical(logits=x).entropy()
torch.distributions.Bernoulli(logits=x @ w).log_prob((y > 0).double())
torch.distributions.Bernoulli(x.sigmoid()).sample()
torch.distributions.Dirichlet(x.exp()).log_prob(y.softmax(1))
torch.distributions.MultivariateNormal(x, torch.eye(4).double()).log_prob(y)
torch.distributions.MultivariateNormal(torch.zeros(4), torch.eye(4)).log_prob(x)
torch.distributions.MultivariateNormal(x, torch.eye(4)).entropy()
torch.distributions.Independent(torch.distributions.Normal(x @ w, 1.0), 1).log_prob(y)
torch.distributions.Independent(torch.distributions.Normal(x, 1.0), 1).rsample()
torch.distributions.Independent(torch.distributions.Normal(x, 1.0), 1).entropy()
torch.distributions.Beta(x.exp(), y.exp()).mean
torch.distributions.Gamma(x.exp(), 1.0).rsample()
torch.distributions.Poisson(x.exp()).log_prob(t[:, None])
torch.distributions.Normal(x.t(), 1.0).log_prob(y.t())
torch.distributions.Categorical(logits=x.view(-1, 2, 2)).log_prob(t[:, None])
"""), _DOC),
    Row(prefixed("torch.distributions.", """
TanhTransform SigmoidTransform ExpTransform AffineTransform AbsTransform PowerTransform
SoftplusTransform StackTransform CatTransform ComposeTransform ReshapeTransform SoftmaxTransform
StickBreakingTransform LowerCholeskyTransform IndependentTransform
"""), bijection, examples("""
torch.distributions.TransformedDistribution(torch.distributions.Normal(\
x, 1.0), [torch.distributions.ExpTransform()]).log_prob(y.exp())
torch.distributions.ExpTransform()(x)
"""), _DOC),
    Row("torch.distributions.kl_divergence", divergence, examples("""
torch.distributions.kl_divergence(torch.distributions.Normal(\
x @ w, 1.0), torch.distributions.Normal(0.0, 1.0))
torch.distributions.kl_divergence(torch.distributions.Normal(\
x, 1.0), torch.distributions.Normal(y, 1.0)).sum(1).mean()
torch.distributions.kl_divergence(torch.distributions.Categorical(\
logits=x), torch.distributions.Categorical(logits=y))
torch.distributions.kl_divergence(torch.distributions.Normal(\
0.0, 1.0), torch.distributions.Normal(0.0, 2.0))
"""), _DOC),
    Row("<distribution>.rsample <distribution>.sample", drawing("torch", _sampled), source=_DOC),
    Row(methods("distribution", "log_prob cdf icdf"), probability, source=_DOC),
    Row(methods("distribution", "entropy perplexity"), statistic, source=_DOC),
    Row("<distribution>.expand", expanded, source=_DOC),
    Row(methods("distribution", "enumerate_support"), _not_known, source=_DOC),
    Row("<bijection>.__call__ <bijection>.inv <bijection>.log_abs_det_jacobian", bijected,
        source=_DOC),
    Row("torch.distributions.Distribution.set_default_validate_args", uniform),
)  # fmt: skip
ATTRIBUTES = (
    Row(methods("distribution", """
mean stddev variance mode loc scale probs logits concentration rate concentration0
concentration1 low high df
"""), moment, source=_DOC),
    Row(methods("distribution", "batch_shape event_shape"), listed_shape, source=_DOC),
    Row(methods("distribution", "support has_rsample arg_constraints has_enumerate_support"),
        uniform, source=_DOC),
)  # fmt: skip
