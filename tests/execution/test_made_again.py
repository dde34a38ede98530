"""Lists and dictionaries that a loop makes in each turn: what the new ones hold, and what is read of the earlier ones."""

from __future__ import annotations

import pytest

from tests.execution.paper import executed, placed

_HEAD = "import os, time\nx = 0\n"
_LOOP = "for i in range(int(os.environ['N'])):"

#: what is made in a turn may read what an earlier one has made, in which a clock was stored since
READ: dict[str, str] = {
    "a dictionary reads itself": "m = {'a': 1}\nLOOP\n    m = {'a': 5, 't': m['a']}\n    x = m['t']\n    m['a'] = time.time()\n",
    "a list reads itself": "m = [1, 2]\nLOOP\n    m = [5, m[0]]\n    x = m[1]\n    m[0] = time.time()\n",
    "a comprehension": "m = {'a': 1}\nLOOP\n    m = {k: m['a'] if k == 't' else 5 for k in ['a', 't']}\n    x = m['t']\n    m['a'] = time.time()\n",
    "a nested one": "m = {'s': {'b': 0}, 't': 1}\nLOOP\n    m = {'s': {'b': 5}, 't': m['s']['b']}\n    x = m['t']\n    m['s']['b'] = time.time()\n",
    "held in a list": "l = []\nLOOP\n    m = {'s': {'b': 5}}\n    l.append(m)\n    x = l[0]['s']['b']\n    m['s']['b'] = time.time()\n",
    "its part in a list": "l = [{'b': 1}]\nLOOP\n    m = {'s': {'b': 5}}\n    x = l[-1]['b']\n    m['s']['b'] = time.time()\n    l.append(m['s'])\n",
    "under another name": "n = {'s': {'b': 5}}\nLOOP\n    m = {'s': {'b': 5}}\n    x = n['s']['b']\n    m['s']['b'] = time.time()\n    n = m\n",
    "under another name alone": "n = {'s': {'b': 5}}\nLOOP\n    m = {'s': {'b': 5}}\n    x = n['s']['b']\n    m['s']['b'] = time.time()\n    n = m\n    del m\n",
    "its part under another name": "s = {'b': 1}\nLOOP\n    m = {'s': {'b': 5}}\n    x = s['b']\n    m['s']['b'] = time.time()\n    s = m['s']\n",
    "in an attribute": "class A: pass\na = A()\na.m = {'s': {'b': 5}}\nLOOP\n    m = {'s': {'b': 5}}\n    x = a.m['s']['b']\n    m['s']['b'] = time.time()\n    a.m = m\n",
    "made by a function": (
        "def make():\n    return {'s': {'b': 5}}\nl = []\nLOOP\n    m = make()\n    l.append(m)\n    x = l[0]['s']['b']\n    m['s']['b'] = time.time()\n"
    ),
    "in a tuple": "n = ({'b': 5},)\nLOOP\n    m = ({'b': 5},)\n    x = n[0]['b']\n    m[0]['b'] = time.time()\n    n = m\n",
    "gone through": "m = {'s': [5]}\nLOOP\n    it = iter(m['s'])\n    m = {'s': [5]}\n    x = next(it)\n    m['s'][0] = time.time()\n",
}  # fmt: skip


@pytest.mark.parametrize("text", READ.values(), ids=READ.keys())
def test_what_is_read_of_an_earlier_one(text: str) -> None:
    assert placed(executed(_HEAD + text.replace("LOOP", _LOOP)), "x") == "per rank"


#: what a turn makes holds nothing of what an earlier one held, where nothing but a variable that it is given anew does
ANEW: dict[str, str] = {
    "a dictionary": "{'b': i}|m['b']",
    "in a dictionary": "{'s': {'b': i}}|m['s']['b']",
    "in a list": "[{'b': i}]|m[0]['b']",
    "a list in a dictionary": "{'s': [i]}|m['s'][0]",
    "by a comprehension": "{'s': {k: v for k, v in d.items()}}|m['s']['b']",
    "deeper": "{'s': {'t': {'b': i}}}|m['s']['t']['b']",
}


@pytest.mark.parametrize("text", ANEW.values(), ids=ANEW.keys())
def test_what_was_held_by_an_earlier_one_is_gone(text: str) -> None:
    made, read = text.split("|")
    head = f"{_HEAD}d = {{'b': 3}}\nm = None\n"
    ex = executed(f"{head}{_LOOP}\n    m = {made}\n    x = {read}\n    {read} = time.time()\n")
    assert placed(ex, "x") == "uniform"
