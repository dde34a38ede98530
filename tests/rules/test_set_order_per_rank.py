"""DPM208: the order of a set is that of rank 0."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found, refused

_LABELS = "labels = ['b', 'a', 'b']"


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param("c = sorted(set(labels))", id="sorted"),
        pytest.param("c = sorted(list(set(labels)))", id="a list that is sorted"),
        pytest.param("n = len(list(set(labels)))", id="counted"),
        pytest.param("c = list(set(labels))\nc.sort()", id="sorted in the next statement"),
        pytest.param("c = [w for w in set(labels)]\nc.sort(reverse=True)", id="a comprehension that is sorted in the next statement"),
        pytest.param("c = list(labels)", id="a list"),
        pytest.param("c = list()", id="empty"),
        pytest.param("c = set(labels)\nprint('a' in c)", id="asked only"),
        pytest.param("c = set(labels)\nc |= {'z'}\nc = labels\nd = list(c)", id="a name that is also something else"),
        pytest.param("print('list(set(labels))')  # list(set(labels))", id="in a string and a comment"),
        pytest.param("import lib\nc = lib.list(set(labels))", id="another library's list"),
        pytest.param("import numpy as np\nnp.save('a', list(set(labels)))", id="only rank 0 runs it"),
        pytest.param("n = sum(len(w) for w in set(labels))", id="a sum"),
        pytest.param("n = sum(1 for w in set(labels))", id="a count"),
        pytest.param("n = {w.upper() for w in list(set(labels))}", id="another set"),
        pytest.param("s = set(labels)\ns = sorted(s)\nc = {w: i for i, w in enumerate(s)}", id="the name means a sorted list by then"),
        pytest.param("s = load()\nc = list(s | {'a'})", id="an operand that may be no set"),
        pytest.param("s = {'a': 1}\nc = list(s)", id="a dict"),
        pytest.param("s = {'a': sorted(set(labels))}\nfor k in s['a']:\n    pass", id="a sorted list in a dict"),
        pytest.param("for i in range(3):\n    pass\nc = [x for x in labels]", id="other loops"),
        pytest.param("c = []\nc.extend(sorted(set(labels)))\nc += labels", id="added in order"),
        pytest.param("c = list({'a': 1}.keys())", id="keys in order"),
        pytest.param("c = {'b'}\nc |= set(labels)\nc.update(set(labels))", id="sets of sets"),
        pytest.param("p = os.path.join('a', *labels)", id="a path"),
        pytest.param("c = list(set(labels))\nprint('missing:', len(c), ', '.join(c))\nfor w in c:\n    print('  ' + w)", id="printed only"),
        pytest.param("for w in set(labels):\n    print('  {}'.format(w))", id="printed at once"),
    ],
)
def test_nothing_to_say(setup: str) -> None:
    assert found("DPM208", setup=f"{_LABELS}\n{setup}") == []


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param("c = list(set(labels))\nprint(c)\nd = c[0]", id="printed, and used as well"),
        pytest.param("c = list(set(labels))\nprint(c.pop())", id="a part is taken out as it is printed"),
        pytest.param("for w in set(labels):\n    print(w)\nd = w", id="the last that the loop came to"),
        pytest.param("c = list(set(labels))\nprint(*c, file=open('f', 'w'))", id="into a file"),
    ],
)
def test_what_is_not_only_printed(setup: str) -> None:
    assert len(found("DPM208", setup=f"{_LABELS}\n{setup}")) == 1


@pytest.mark.parametrize(
    "defs",
    [
        pytest.param("class D:\n    def names(self, y):\n        return list(set(y))", id="a method"),
        pytest.param("def collate(batch):\n    return list(set(batch))", id="a function that only a loader calls"),
        pytest.param(
            "def collate(batch):\n    return list(set(batch))\nclass L:\n    def __init__(self, f):\n        self.f = f\nL(collate)\ncollate('a')",
            id="handed on",
        ),
        pytest.param(
            "class D:\n    def f(self):\n        return list(set('a'))\n    def __getitem__(self, i):\n        return self.f()\nD().f()", id="workers"
        ),
        pytest.param("class D:\n    def f(self, y):\n        return list(set('a'))\nprint(D().f('a'), map(D().f, 'a'))", id="a method handed on"),
        pytest.param("class M(nn.Module):\n    def __init__(self):\n        self.names = list(set('a'))\nM()", id="a model"),
    ],
)
def test_where_ranks_do_not_go_together(defs: str) -> None:
    assert found("DPM208", defs=defs) == []


def test_inside_training() -> None:
    assert found("DPM208", step="k = list(set(y))\noptimizer.zero_grad()\nloss = F.cross_entropy(model(x), y)\nloss.backward()\noptimizer.step()") == []


@pytest.mark.parametrize(
    ("line", "pointed", "new"),
    [
        pytest.param("c = list(set(labels))", "list(set(labels))", "c = ddp.from_main(list(set(labels)))", id="list"),
        pytest.param("c = tuple({'a', 'b'})", "tuple({'a', 'b'})", "c = ddp.from_main(tuple({'a', 'b'}))", id="display"),
        pytest.param("c = list({x for x in labels})", "list({x for x in labels})", "c = ddp.from_main(list({x for x in labels}))", id="comprehension"),
        pytest.param("c = list(frozenset(labels))", "list(frozenset(labels))", "c = ddp.from_main(list(frozenset(labels)))", id="frozenset"),
        *(
            pytest.param(f"c = list(set(labels))\n{then}", "list(set(labels))", "c = ddp.from_main(list(set(labels)))", id=f"not sorted: {then}")
            for then in ("c.sort(key=len)", "print(c)\nc.sort()", "labels.sort()", "c.reverse()", "sort(c)")
        ),
        pytest.param("v = set(labels)\nc = list(v)", "list(v)", "c = ddp.from_main(list(v))", id="through a name"),
        pytest.param(
            "v = set(labels)\nc = {w: i for i, w in enumerate(v)}", "enumerate(v)", "c = {w: i for i, w in enumerate(ddp.from_main(list(v)))}", id="a vocabulary",
        ),
        pytest.param("c = {}\nfor w in set(labels):\n    c[w] = len(c)", "set(labels)", "for w in ddp.from_main(list(set(labels))):", id="loop"),
        pytest.param("c = dict((w, i) for i, w in enumerate(set(labels)))", "enumerate(set(labels))", "c = dict((w, i) for i, w in enumerate(ddp.from_main(list(set(labels)))))", id="dict of pairs"),
        pytest.param("c = dict(zip(set(labels), range(9)))", "zip(set(labels), range(9))", "c = dict(zip(ddp.from_main(list(set(labels))), range(9)))", id="zip"),
        pytest.param("c = {w: 0 for w in set(labels)}", "{w: 0 for w in set(labels)}", "c = {w: 0 for w in ddp.from_main(list(set(labels)))}", id="dict comprehension"),
        pytest.param("c = [*set(labels), 'z']", "[*set(labels), 'z']", "c = [*ddp.from_main(list(set(labels))), 'z']", id="unpacked"),
        pytest.param("c = ' '.join(w for w in set(labels))", "(w for w in set(labels))", "c = ' '.join(w for w in ddp.from_main(list(set(labels))))", id="joined"),
        pytest.param("c = sorted(set(labels), key=len)", "sorted(set(labels), key=len)", "c = sorted(ddp.from_main(list(set(labels))), key=len)", id="sorted by a key that may be equal"),
        pytest.param("c = list(set(labels) | {'z'})", "list(set(labels) | {'z'})", "c = ddp.from_main(list(set(labels) | {'z'}))", id="united"),
        pytest.param("c = list(set(labels).union(['z']))", "list(set(labels).union(['z']))", "c = ddp.from_main(list(set(labels).union(['z'])))", id="united by a method"),
        pytest.param("s = {'a': {w for w in labels}}\nc = list(s['a'])", "list(s['a'])", "c = ddp.from_main(list(s['a']))", id="in a dict"),
        pytest.param("s = {'a': set(labels)}\nc = [list(v) for k, v in s.items()]", "list(v)", "c = [ddp.from_main(list(v)) for k, v in s.items()]", id="the values of a dict"),
        pytest.param("s = load()\ns = set(s)\nc = list(s)", "list(s)", "c = ddp.from_main(list(s))", id="a name that was something else before"),
        pytest.param("s = set()\nfor w in labels:\n    s.add(w)\nc = list(s)", "list(s)", "c = ddp.from_main(list(s))", id="filled"),
        pytest.param("c = []\nc.extend(set(labels))", "c.extend(set(labels))", "c.extend(ddp.from_main(list(set(labels))))", id="added to a list"),
        pytest.param("c = ['z']\nc += set(labels)", "set(labels)", "c += ddp.from_main(list(set(labels)))", id="added by a sign"),
        pytest.param("c = ' '.join(set(labels))", "' '.join(set(labels))", "c = ' '.join(ddp.from_main(list(set(labels))))", id="joined, no generator"),
        pytest.param("d = {'a': 1}\nc = list(d.keys() - {'b': 2}.keys())", "list(d.keys() - {'b': 2}.keys())", "c = ddp.from_main(list(d.keys() - {'b': 2}.keys()))", id="keys without others"),
        pytest.param("from itertools import chain\nc = list(chain(['z'], set(labels)))", "chain(['z'], set(labels))", "c = list(chain(['z'], ddp.from_main(list(set(labels)))))", id="chained"),
        pytest.param("c = [w for w in set(labels)]", "[w for w in set(labels)]", "c = [w for w in ddp.from_main(list(set(labels)))]", id="list comprehension"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(line: str, pointed: str, new: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"setup": f"{_LABELS}\n{line}", "module_level": module_level}
    assert found("DPM208", **parts) == [pointed]
    assert after(**parts) == [new]


def test_in_a_function_that_the_program_calls() -> None:
    assert after(defs="def names(y):\n    return list(set(y))", setup="c = names(['a'])") == ["return ddp.from_main(list(set(y)))"]


_NUMBERS = """
class Words(torch.utils.data.Dataset):
    def __init__(self, labels):
        self.labels = labels
        self.names = set(labels)
        self.number = {name: i for i, name in enumerate(self.names)}
    def __getitem__(self, i):
        return self.number[self.labels[i]]
"""


def test_in_the_constructor_of_a_data_set_and_in_an_attribute() -> None:
    assert after(defs=_NUMBERS, setup="words = Words(labels=['a'])") == ["self.number = {name: i for i, name in enumerate(ddp.from_main(list(self.names)))}"]


@pytest.mark.parametrize("call", ["number(set(['a']))", "number(words=set(['a']))", "number(unique(['a']))"])
def test_a_set_that_a_function_is_given(call: str) -> None:
    defs = "def unique(y):\n    return set(y)\ndef number(words):\n    return {w: i for i, w in enumerate(words)}"
    assert after(defs=defs, setup=f"c = {call}") == ["return {w: i for i, w in enumerate(ddp.from_main(list(words)))}"]


def test_a_name_that_is_given_its_own_list() -> None:
    assert after(setup=f"{_LABELS}\nlabels = set(labels)\nlabels = list(labels)") == ["labels = ddp.from_main(list(labels))"]


def test_a_function_that_gives_nothing() -> None:
    assert found("DPM208", defs="def f(x):\n    if x:\n        return\n    return set('a')", setup="c = list(f(3))") == []


def test_a_name_that_the_next_turn_gives_another_value() -> None:
    assert found("DPM208", setup="c = set('a')\nfor i in range(3):\n    d = list(c)\n    c = ['b']") == []


def test_where_rank_0_goes_first_it_cannot_wait() -> None:
    defs = _NUMBERS.replace("labels):", "labels, download=False):")
    assert refused("DPM208", defs=defs, setup="words = Words(['a'], download=True)") == ["enumerate(self.names)"]


def test_refused_where_perhaps_not_all_ranks_come() -> None:
    assert refused("DPM208", setup="try:\n    open('f')\nexcept OSError:\n    c = list(set('ab'))") == ["list(set('ab'))"]


@pytest.mark.parametrize(
    "each",
    [
        pytest.param("1 / counts[w]", id="a quotient"),
        pytest.param("0.5 * counts[w]", id="a part"),
        pytest.param("math.log(counts[w])", id="a logarithm"),
    ],
)
def test_a_sum_that_is_rounded(each: str) -> None:
    """Its last digit depends on the order, and so may what is sorted by it."""
    setup = f"{_LABELS}\nimport math\ncounts = {{'a': 3, 'b': 7}}\nown = set(labels)\nscore = sum({each} for w in own)"
    assert f"score = sum({each} for w in ddp.from_main(list(own)))" in after(setup=setup)


_MAKES = "def names(labels):\n    return list(set(labels))\ndef upper(labels):\n    return labels\n"


@pytest.mark.parametrize(
    ("defs", "call"),
    [
        pytest.param("MAKES = {'a': names, 'b': upper}", "MAKES[input()](labels)", id="a table"),
        pytest.param("MAKES = {'a': names, 'b': upper}\ndef maker(kind):\n    return MAKES[kind]", "maker(input())(labels)", id="a function that looks it up"),
        pytest.param("MAKES = {'a': names}", "MAKES.get(input())(labels)\nprint(sorted(MAKES), list(MAKES.keys()), 'a' in MAKES)", id="asked for its keys"),
    ],
)
def test_a_function_that_is_looked_up_and_called(defs: str, call: str) -> None:
    got = after(defs=_MAKES + defs, setup=f"{_LABELS}\nc = {call}")
    assert "return ddp.from_main(list(set(labels)))" in got


@pytest.mark.parametrize(
    ("defs", "call"),
    [
        pytest.param("MAKES = {'a': names}", "list(map(MAKES['a'], [labels]))", id="looked up for a library"),
        pytest.param("MAKES = {'a': names}", "DataLoader(train_set, collate_fn=MAKES['a'])", id="for the workers"),
        pytest.param("MAKES = {'a': names}", "register(MAKES)", id="a table that is handed on"),
        pytest.param("MAKES = {'a': names}\ndef maker(kind):\n    return MAKES[kind]", "register(maker)", id="what looks it up is handed on"),
    ],
)
def test_a_function_that_is_looked_up_and_handed_on(defs: str, call: str) -> None:
    setup = f"{_LABELS}\nmake = MAKES['a']\nd = make(labels)\nc = {call}"
    assert found("DPM208", defs=_MAKES + defs, setup=setup) == []
