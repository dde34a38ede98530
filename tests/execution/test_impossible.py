"""What would raise is not followed: where a value may be several things, those that fit are left."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.execution.arguments import Arguments, fits
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import SETTING, const, data, placement_of
from tests.execution.paper import executed, held

_HEAD = """
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
for x, y in DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8)), batch_size=4):
    pass
which = input()
"""


@pytest.mark.parametrize(
    ("given", "parameters", "takes"),
    [
        ("f(1)", "a", True),
        ("f()", "a", False),
        ("f(1, 2)", "a", False),
        ("f(1, 2)", "a, *rest", True),
        ("f(1)", "a, b=1", True),
        ("f(b=1)", "a, b", False),
        ("f(1, b=1)", "a, b", True),
        ("f(1, c=1)", "a", False),
        ("f(1, c=1)", "a, **rest", True),
        ("f(1, a=1)", "a, b=2", False),
        ("f(1)", "a, *, k", False),
        ("f(1, k=1)", "a, *, k", True),
        ("f(1)", "a, *, k=2", True),
        ("f(*xs)", "a", True),
        ("f(**xs)", "a", True),
    ],
)
def test_arguments_that_fit(given: str, parameters: str, takes: bool) -> None:
    """The cases are those of Python, which is asked as well."""
    call = ast.parse(given, mode="eval").body
    assert isinstance(call, ast.Call)
    function = ast.parse(f"lambda {parameters}: 0", mode="eval").body
    assert isinstance(function, ast.Lambda)
    named = {k.arg: SETTING for k in call.keywords if k.arg}
    stars = any(k.arg is None for k in call.keywords)
    star = any(isinstance(a, ast.Starred) for a in call.args)
    positional = [SETTING for a in call.args if not isinstance(a, ast.Starred)]
    arguments = Arguments(positional, named, SETTING if star else (), SETTING if stars else ())
    assert fits(arguments, function.args) is takes
    if not star and not stars:
        try:
            eval(given, {"f": eval(f"lambda {parameters}: 0")})
        except TypeError:
            assert not takes
        else:
            assert takes


def test_a_receiver_counts_as_an_argument() -> None:
    function = ast.parse("lambda self, a: 0", mode="eval").body
    assert isinstance(function, ast.Lambda)
    assert fits(Arguments([SETTING]), function.args, before=1)
    assert not fits(Arguments([SETTING, SETTING]), function.args, before=1)


#: a model of one setting, made and called in branches that ask for the setting again
_MODELS = """
class Many(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        return x, self.a(x)

class One(nn.Module):
    def forward(self, x):
        return x

class Two(nn.Module):
    def forward(self, a, b):
        return a + b

if which == "many":
    first, second = Many(), Two()
else:
    first, second = One(), One()

if which == "many":
    a, b = first(x)
    out = second(a, b)
else:
    out = second(first(x))
loss = out.mean()
"""


def test_branches_of_one_setting_that_are_written_twice() -> None:
    assert str(placement_of(held(executed(_HEAD + _MODELS), "loss"))) == "partial(mean)"


@pytest.mark.parametrize(
    "lines",
    [
        "z = x if which else {'a': x}\nout = z.to('cpu')",
        "z = x if which else [x]\nout = z.cuda()",
        "z = x if which else (x, x, x)\nout = torch.cat([x, z], dim=1)",
        "z = x if which else None\nout = torch.cat([x, z], dim=1)",
        "def f(v): return v\nz = f if which else (lambda a, b: [a])\nout = z(x)",
        "f = torch.utils.checkpoint if which else (lambda v: v)\nout = f(x)",
        "out = x\nif which:\n    out = torch.utils.data(x)",
        "d = {'z': x} if which else {}\nout = d['z']",
        "if which:\n    f = Nowhere()\nelse:\n    f = torch.relu\nout = f(x)",
        "def f(v):\n    if which:\n        net = Nowhere(4)\n    else:\n        net = torch.relu\n    return net(v)\nout = f(x)",
        "def g(v): return v\nif which:\n    f = Nowhere()\nelse:\n    f = globals()['g'] if 'g' in globals() else globals().get('g')\nout = f(x)",
    ],
)
def test_what_raises_is_left_out(lines: str) -> None:
    out = held(executed(f"{_HEAD}{lines}\n"), "out")
    assert placement_of(out).kind is Kind.ROWS, out


@pytest.mark.parametrize(
    "lines",
    [
        "out = Nowhere()(x)",
        "def f(v):\n    return Nowhere(v)\nout = f(x)",
        "if which:\n    f = Late()\nelse:\n    f = torch.relu\nout = f(x)\ndef later():\n    global Late\n    Late = 1",
        "if which:\n    f = Late()\nelse:\n    f = torch.relu\nout = f(x)\nglobals()['Late'] = 1",
        "d = {'a': x}\nout = d['z']",
    ],
)
def test_what_may_raise_everywhere_is_not_known(lines: str) -> None:
    """A name that nothing binds ends one way among others, not the only one; one that something may bind later is not known."""
    out = held(executed(f"{_HEAD}{lines}\n"), "out")
    assert placement_of(out).kind is Kind.UNKNOWN, out


def test_a_list_has_its_own_methods_beside_a_tensor() -> None:
    out = held(executed(f"{_HEAD}z = x if which else [1]\nz = z.copy() if which else z.index(1)\n"), "z")
    assert out


@pytest.mark.parametrize(
    ("lines", "placement"),
    [
        ("w = torch.ones(4, 4) if which else x\nout = (w * y[:, None]).mean()", "partial(mean)"),
        ("w = torch.ones(4, 4) if which else x\nout = torch.exp(w + x).mean()", "partial(mean)"),
        ("w = torch.ones(4) if which else x.sum()\nout = w * 2", "unknown"),
    ],
)
def test_what_is_the_same_on_all_ranks_on_some_ways(lines: str, placement: str) -> None:
    assert str(placement_of(held(executed(f"{_HEAD}{lines}\n"), "out"))) == placement


def test_shapes_in_tuples_are_compared() -> None:
    ex = executed(f"{_HEAD}b, f = x.shape\nout = x.shape != (b, 3)\nsame = x.shape == x.shape\n")
    assert not data(held(ex, "out"))
    assert not data(held(ex, "same"))


@pytest.mark.parametrize(
    ("layer", "asked", "answer"),
    [
        ("nn.BatchNorm2d(3)", "nn.modules.batchnorm._BatchNorm", "True"),
        ("nn.Conv2d(3, 3, 1)", "nn.modules.batchnorm._BatchNorm", "False"),
        ("nn.Conv2d(3, 3, 1)", "nn.Conv2d", "True"),
        ("nn.Conv2d(3, 3, 1)", "nn.Linear", "False"),
        ("nn.Conv2d(3, 3, 1)", "(nn.Linear, nn.Conv2d)", "True"),
        ("nn.ConvTranspose2d(3, 3, 1)", "nn.modules.conv._ConvNd", "True"),
        ("nn.LazyLinear(3)", "nn.Linear", "True"),
        ("nn.LSTM(3, 3)", "nn.RNNBase", "True"),
        ("nn.LSTMCell(3, 3)", "nn.RNNCellBase", "True"),
        ("nn.GRU(3, 3)", "nn.RNNCellBase", "False"),
        ("nn.InstanceNorm2d(3)", "nn.modules.batchnorm._NormBase", "True"),
        ("nn.Sequential()", "nn.Linear", "False"),
        ("nn.Linear(3, 3)", "nn.Module", "True"),
    ],
)
def test_layers_are_of_their_classes(layer: str, asked: str, answer: str) -> None:
    ex = executed(f"from torch import nn\nout = isinstance({layer}, {asked})\n")
    assert str(held(ex, "out")[0].value) == answer  # type: ignore[union-attr]
    import torch

    assert str(eval(f"isinstance({layer}, {asked})", {"nn": torch.nn})) == answer


def test_attributes_of_a_container_are_no_layers() -> None:
    lines = "net = nn.Sequential(nn.Linear(4, 4))\nnet.momentum = net.elsewhere\nout = net(x).mean()\n"
    assert str(placement_of(held(executed(_HEAD + lines), "out"))) == "partial(mean)"


def test_what_a_deep_model_holds_is_asked_once() -> None:
    """Layers that hold each other in many ways: the number of ways doubles with each."""
    lines = "class A:\n    pass\nlast = A()\n"
    for _ in range(40):
        lines += "new = A()\nnew.a = last\nnew.b = last\nlast = new\n"
    ex = executed(f"{_HEAD}{lines}out = unseen(last)\n")
    assert ex.trace.ended is None


def test_a_comprehension_over_lists_that_nothing_is_put_into() -> None:
    """A list that hooks fill is empty on paper; what is made of its elements misses no name."""
    text = "def make():\n    kept = []\n    return kept\none = make()\nother = make()\nout = [k[0] for k in (one if which else other)]\n"
    ex = executed(f"{_HEAD}{text}")
    assert list(ex.trace.missed) == []


_PICKS = """
class Picks:
    def fast(self, given):
        return sorted(given)
{method}
    def run(self, given, way):
        if way == "fast":
            found = self.fast(given)
        else:
            found = self.thorough(given)
        return found
{after}
picks = Picks()
found = picks.run([3, 1], which)
"""


def test_a_method_that_no_file_gives_ends_its_branch() -> None:
    m = executed(_HEAD + _PICKS.format(method="", after=""))
    assert "Unknown" not in repr(held(m, "found"))


@pytest.mark.parametrize(
    ("method", "after"),
    [
        pytest.param("    def __getattr__(self, name):\n        return print\n", "", id="asked for otherwise"),
        pytest.param("", "Picks.thorough = load(which)", id="bound to the class"),
        pytest.param("", "setattr(Picks, which, sorted)", id="set by a computed name"),
        pytest.param("", "@adds\nclass Picks(Picks):\n    pass", id="a decorator that may add it"),
        pytest.param("", "class Picks(Picks, load(which)):\n    pass", id="a base that is not seen"),
    ],
)
def test_a_method_that_something_may_give(method: str, after: str) -> None:
    m = executed(_HEAD + "from somewhere import adds, load\n" + _PICKS.format(method=method, after=after))
    assert not any(e for e in m.trace.of("no attribute") if e.values["name"] == const("thorough")) or "Unknown" in repr(held(m, "found"))


def test_what_an_object_lacks_is_told_by_its_name() -> None:
    m = executed(
        _HEAD + "class Net(nn.Module):\n    def __init__(self, kind):\n        super().__init__()\n        if kind == 'deep':\n            self.body = nn.Linear(4, 2)\n"
        "    def forward(self, x):\n        return self.body(x)\nout = Net('flat')(x)"
    )
    assert "Net has no attribute body here" in repr(held(m, "out"))


_ITEM = """
class Two(nn.Module):
    def __init__(self, which):
        super().__init__()
        self.which = which
    def forward(self, x):
        if self.which == "named":
            return {{"a": x}}
        if self.which == "two":
            return x, x
        return x * 2
out = Two(which)(x)
found = {read}
"""


@pytest.mark.parametrize("read", ["out.items()", "out.get('a')", "out.keys()", "out.pop('a')", "out.mean()"])
def test_what_dictionaries_have_alone_is_asked_of_no_tensor(read: str) -> None:
    m = executed(_HEAD + _ITEM.format(read=read))
    assert "Unknown" not in repr(held(m, "found"))


def test_what_sparse_tensors_have_too_may_be_asked_of_them() -> None:
    m = executed(_HEAD + _ITEM.format(read="out.values()"))
    assert "Unknown" in repr(held(m, "found"))


_SETTINGS = """
class Plain:
    def __init__(self):
        self.size = 3
class Wide:
    def __init__(self):
        self.size = 3
        {wide}
{after}
settings = Plain() if which == 'plain' else Wide()
width = settings.width
"""


def test_of_several_objects_those_that_have_been_given_an_attribute_are_left() -> None:
    m = executed(_HEAD + _SETTINGS.format(wide="self.width = 5", after=""))
    assert held(m, "width") == const(5)


@pytest.mark.parametrize(
    ("wide", "after"),
    [
        pytest.param("if which:\n            self.width = 5", "", id="perhaps given"),
        pytest.param("self.width = 5", "setattr(Plain, which, 4)", id="set by a computed name"),
        pytest.param("self.width = 5", "Plain.width = int(which)", id="of the class"),
    ],
)
def test_an_attribute_that_the_others_may_have(wide: str, after: str) -> None:
    m = executed(_HEAD + _SETTINGS.format(wide=wide, after=after))
    assert held(m, "width") != const(5)


@pytest.mark.parametrize(
    ("read", "told"),
    [
        ("pair.to('cpu')", "a tuple has no to(), so that the program ends here on one process too"),
        ("[x].to('cpu')", "a list has no to(), so that the program ends here on one process too"),
        ("{'a': x}.detach()", "a dict has no detach(), so that the program ends here on one process too"),
    ],
)
def test_what_no_container_has_is_told_as_the_end(read: str, told: str) -> None:
    m = executed(_HEAD + f"pair = (x, y)\nfound = {read}")
    assert told in repr(held(m, "found"))


@pytest.mark.parametrize("read", ["deque([x]).extendleft([y])", "Counter([x]).most_common()", "OrderedDict(a=x).move_to_end('a')"])
def test_other_containers_have_more(read: str) -> None:
    m = executed(_HEAD + f"from collections import Counter, OrderedDict, deque\nfound = {read}")
    assert "one process too" not in repr(held(m, "found"))


_CHOSEN = """
class Deep(nn.Module):
    def __init__(self, width, act=torch.relu):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.act = act
    def forward(self, x):
        return self.act(self.first(x))

class Part({base}):
    def __init__(self, act):
        super().__init__()
        self.act = act
    def forward(self, x):
        return self.act(x)
{more}
{after}
net = (Deep if which == 'deep' else Part){call}
out = net(x)
"""
_NEW = """
    def __new__(cls, *given):
        return super().__new__(cls, lambda v: load(v)) if given[1:] else nn.Module.__new__(cls)
"""


@pytest.mark.parametrize("call", ["(4, torch.tanh)", "(width=4)", "(*[4, torch.tanh])", "(**{'width': 4})"])
def test_a_class_that_cannot_be_made_so_is_none_of_those_chosen_from(call: str) -> None:
    """Of the classes that a name may mean, those whose ``__init__`` takes the arguments are left."""
    m = executed(_HEAD + _CHOSEN.format(base="nn.Module", more="", after="", call=call))
    assert [o.name for o in m.objects(held(m, "net"))] == ["Deep"]
    assert placement_of(held(m, "out")).kind is Kind.ROWS


@pytest.mark.parametrize(
    ("base", "more", "after", "call"),
    [
        pytest.param("nn.Module", "", "", "(4)", id="both take it"),
        pytest.param("nn.Module", "", "", "(*load(which))", id="a number of arguments that is not known"),
        pytest.param("nn.Module", "", "", "(**load(which))", id="names that are not known"),
        pytest.param("nn.Module", _NEW, "", "(4, torch.tanh)", id="a __new__ of its own"),
        pytest.param("nn.Module, metaclass=load('m')", "", "", "(4, torch.tanh)", id="a metaclass"),
        pytest.param("load('base')", "", "", "(4, torch.tanh)", id="a base that is not seen"),
        pytest.param("nn.Module", "", "Part.__init__ = load('init')", "(4, torch.tanh)", id="another __init__"),
        pytest.param("nn.Module", "", "setattr(Part, which, load(which))", "(4, torch.tanh)", id="set by a computed name"),
    ],
)
def test_a_class_that_may_be_made_so_stays(base: str, more: str, after: str, call: str) -> None:
    text = _CHOSEN.format(base=base, more=more, after=after, call=call)
    m = executed(_HEAD + "from somewhere import load\n" + text)
    assert "Part" in {o.name for o in m.objects(held(m, "net"))} or "Unknown" in repr(held(m, "net"))


_WRAPPED = """
class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.part = nn.Conv2d(1, 1, 3), Part()
    def forward(self, x):
        x = self.first(x)
        return self.part(x, x)
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Upsample(scale_factor=2)
    def forward(self, low, high{more}):
        return torch.nn.functional.pad(self.up(low), [1, 1, 1, 1])
if load('which') == 'whole':
    net = nn.DataParallel(Whole())
else:
    net = nn.DataParallel(Part())
for x, y in DataLoader(load('data'), 4):
    out = net(x)
"""


def test_a_wrapper_takes_what_its_model_takes() -> None:
    """Of several wrapped models those that can be called so are called, as of the bare ones."""
    m = executed(_HEAD + "from somewhere import load\n" + _WRAPPED.format(more=""))
    (out,) = data(held(m, "out"))
    assert (out.placement.kind, out.axes) == (Kind.ROWS, 4)


@pytest.mark.parametrize("more", ["=None", "=None, *rest"])
def test_a_wrapper_whose_model_may_be_called_so_is_called(more: str) -> None:
    m = executed(_HEAD + "from somewhere import load\n" + _WRAPPED.format(more=more))
    assert "which axes are padded" in repr(held(m, "out"))


@pytest.mark.parametrize(
    ("other", "left"),
    [
        pytest.param("[]", 1, id="a list"),
        pytest.param("{}", 1, id="a dictionary"),
        pytest.param("()", 1, id="a tuple"),
        pytest.param("DataLoader(TensorDataset(torch.ones(6, 4)), batch_size=3)", 2, id="another loader"),
    ],
)
def test_an_empty_container_in_the_place_of_a_loader_has_no_data_set(other: str, left: int) -> None:
    ex = executed(_HEAD + f"loader = DataLoader(TensorDataset(torch.ones(8, 4)), batch_size=4) if which else {other}\nfound = loader.dataset\n")
    assert len(held(ex, "found")) == left


def test_where_all_lack_it_the_program_ends_there() -> None:
    ex = executed(_HEAD + "box = [] if which else {}\nfound = box.dataset\n")
    assert all(ex.objects(held(ex, "box")))
    assert len(held(ex, "found")) == 2
