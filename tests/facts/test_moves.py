"""Moves of a wrapped model, which belong before the wrap."""

from __future__ import annotations

import pytest

from dpmigrate.facts.moves import moved_later, unknown_move
from tests.pipeline import script
from tests.rules.program import STEP, program, whole

_DP = "if torch.cuda.device_count() > 1:\n    model = nn.DataParallel(model)"
_DEVICE = "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')"


def moved(before: str, setup: str = _DEVICE, model: str = f"model = Net()\n{_DP}") -> str | None:
    found = script(program(setup=setup, model=f"{model}\n{before}"))
    (wrap,) = found.wraps.wraps
    return moved_later(found.roles, wrap)


@pytest.mark.parametrize(
    ("line", "model"),
    [
        pytest.param("", f"model = Net()\n{_DP}", id="no move"),
        pytest.param("x = train_set[0][0].to(device)", f"model = Net()\n{_DP}", id="of something else"),
        pytest.param("", f"model = Net().to(device)\n{_DP}", id="moved before"),
        pytest.param("", "model = Net()\nmodel.to(device)", id="moved before a wrap of our own"),
        pytest.param("", "model = nn.DataParallel(Net()).to(device)", id="moved with the call"),
        pytest.param("print(model.to('cpu').state_dict())", "model = nn.DataParallel(Net()).to(device)", id="moved with the call, and away at the end"),
        pytest.param("model.to(torch.float64)", f"model = Net()\n{_DP}", id="another type"),
        pytest.param("model.to(memory_format=torch.channels_last)", f"model = Net()\n{_DP}", id="another layout"),
        pytest.param("model.to('cpu')", f"model = Net().cuda()\n{_DP}", id="moved before, and away later"),
        pytest.param("def later():\n    pass\nlater().cuda()", f"model = Net()\n{_DP}", id="no variable"),
    ],
)
def test_nothing_to_move(line: str, model: str) -> None:
    assert moved(line, model=model) is None


@pytest.mark.parametrize(
    ("line", "text"),
    [
        pytest.param("model.to(device)", ".to(device)", id="positional"),
        pytest.param("model = model.to(device=device)", ".to(device)", id="keyword"),
        pytest.param("model.to(args.device)", ".to(args.device)", id="a setting"),
        pytest.param("model.cuda()", ".cuda()", id="cuda"),
        pytest.param("if args.cuda:\n    model.cuda()", '.to("cuda" if args.cuda else "cpu")', id="cuda under a test"),
        pytest.param("if torch.cuda.is_available():\n    model = model.cuda()", '.to("cuda" if torch.cuda.is_available() else "cpu")', id="cuda where there is one"),
        pytest.param("if args.cpu:\n    pass\nelse:\n    model.cuda()", '.to("cuda" if not args.cpu else "cpu")', id="under else"),
        pytest.param(
            "if args.cuda and torch.cuda.is_available():\n    model.cuda()",
            '.to("cuda" if args.cuda and torch.cuda.is_available() else "cpu")',
            id="a test of two words",
        ),
        pytest.param("if args.cuda:\n    if not args.cpu:\n        model.cuda()", '.to("cuda" if args.cuda and (not args.cpu) else "cpu")', id="two tests"),
        pytest.param("if len(args.cuda) > 1:\n    model.cuda()", "", id="a test that is computed"),
        pytest.param("if args.cuda:\n    model.to(device)", "", id="under a test"),
        pytest.param("model.to('cuda:1')", "", id="a fixed GPU"),
        pytest.param("where = 'cuda'\nmodel.to(where)", "", id="a variable of later"),
        pytest.param("model.to(unknown)", "", id="a variable of which nothing is known"),
    ],
)  # fmt: skip
def test_the_move_in_words(line: str, text: str) -> None:
    assert moved(line) == text


@pytest.mark.parametrize(
    ("step", "text"),
    [
        pytest.param("x = x.cuda()", "", id="batches are moved"),
        pytest.param("x = x.double()", None, id="nothing is moved"),
    ],
)
def test_a_model_that_dataparallel_moves(step: str, text: str | None) -> None:
    found = script(program(model="model = nn.DataParallel(Net())", step=f"{step}\n{STEP}"))
    (wrap,) = found.wraps.wraps
    assert moved_later(found.roles, wrap) == text


def test_at_module_level() -> None:
    found = script(program(setup=_DEVICE, model=f"model = Net()\n{_DP}\nif args.cuda:\n    model.cuda()", module_level=True))
    (wrap,) = found.wraps.wraps
    assert moved_later(found.roles, wrap) == '.to("cuda" if args.cuda else "cpu")'


def test_in_the_function_that_trains() -> None:
    defs = "def train(model, loader, device):\n    model.to(device)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    for x, y in loader:\n"
    defs += "        optimizer.zero_grad()\n        F.cross_entropy(model(x), y).backward()\n        optimizer.step()"
    text = program(defs=defs, setup=_DEVICE, model="model = nn.DataParallel(Net())", optimizer="", batches="train(model, loader, device)", step="")
    found = script(text)
    (wrap,) = found.wraps.wraps
    assert moved_later(found.roles, wrap) == ""


@pytest.mark.parametrize(
    ("model", "line"),
    [
        pytest.param(f"model = Net()\n{_DP}\nmodel.to(device)", "model = ddp.wrap(model.to(device))", id="after the test"),
        pytest.param("model = nn.DataParallel(Net())\nmodel.to(device)", "model = ddp.wrap(Net().to(device))", id="in place"),
        pytest.param("net = Net()\nmodel = nn.DataParallel(module=net)\nmodel.cuda()", "model = ddp.wrap(model=net.cuda())", id="by keyword"),
        pytest.param("model = nn.DataParallel(Net())\nmodel.to('cuda:0')", "model = ddp.wrap(Net().to(ddp.device()))", id="a fixed GPU"),
    ],
)
def test_it_is_written_at_the_wrap(model: str, line: str) -> None:
    assert line in whole(setup=_DEVICE, model=model)


_LATER = "def run(net, where):\n    net.to(where)\n    for x, y in loader:\n        opt.zero_grad()\n        loss = F.cross_entropy(net(x), y)\n        loss.backward()\n        opt.step()\n"


@pytest.mark.parametrize(
    ("place", "known"),
    [
        pytest.param("torch.device('cuda' if torch.cuda.is_available() else 'cpu')", True, id="asks for a GPU"),
        pytest.param("'cuda:0'", True, id="a GPU"),
        pytest.param("chosen()", True, id="a function that asks"),
        pytest.param("json.loads(sys.argv[1])['device']", False, id="data"),
        pytest.param("foreign.place()", False, id="code that is not seen"),
    ],
)
def test_a_device_that_is_known_only_after_the_wrap(place: str, known: bool) -> None:
    text = (
        "import json\nimport sys\nimport foreign\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F\nfrom torch.utils.data import DataLoader\n"
        "def chosen():\n    return 'cuda' if torch.cuda.is_available() else 'cpu'\n"
        "loader = DataLoader(foreign.data, batch_size=4, shuffle=True)\nmodel = nn.Linear(3, 2)\nopt = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        f"{_LATER}for epoch in range(3):\n    where = {place}\n    run(model, where)\n"
    )
    found = script(text)
    (wrap,) = found.wraps.wraps
    assert (unknown_move(found.roles, wrap) is None) is known
    assert any("nothing here says which device" in told.words for _, told in found.wraps.problems) is not known


@pytest.mark.parametrize(
    ("test", "known"),
    [
        pytest.param("torch.cuda.is_available()", True, id="whether there is a GPU"),
        pytest.param("torch.cuda.device_count() > 0", True, id="how many there are"),
        pytest.param("args.cuda", True, id="a setting, which is written at the wrap"),
        pytest.param("len(args.cuda) > 1", False, id="something else"),
        pytest.param("len(args.cuda) and torch.cuda.is_available()", False, id="something else too"),
    ],
)
def test_a_move_under_a_test(test: str, known: bool) -> None:
    found = script(program(setup=_DEVICE, model=f"model = Net()\n{_DP}\nif {test}:\n    model.cuda()"))
    told = [problem.words for _, problem in found.wraps.problems if "which device" in problem.words]
    assert told == ([] if known else [f"model is moved where {test} only after its wrap, and nothing here says which device that is"])
