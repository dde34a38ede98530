"""DPM107: what the wrapper does not answer is asked of the module."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found, whole

_NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        return self.fc(x)

    def names(self):
        return [n for n, _ in self.fc.named_parameters()]
"""


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"end": "print(list(model.parameters()))"}, id="the wrapper has it too"),
        pytest.param({"end": "model.eval()"}, id="a mode of both"),
        pytest.param({"before": "print(model.fc)"}, id="read before the wrap, which comes after it"),
        pytest.param({"model": "model = nn.DataParallel(Net())", "end": "print(model.module.fc)"}, id="already through .module"),
        pytest.param({"model": "model = nn.DataParallel(Net())", "end": "model.best = 3\nprint(model.best)\nsetattr(model, 'last', 4)\nprint(getattr(model, 'last'))"}, id="what the program sets on its DataParallel"),
        pytest.param({"end": "other = Net()\nprint(other.fc)"}, id="a model that is not trained"),
        pytest.param({"end": "print('model.fc')  # model.fc"}, id="in a string and a comment"),
        pytest.param({"net": _NET}, id="inside the class of the model"),
        pytest.param({"end": "print(optimizer.state_dict())"}, id="the optimizer's own state"),
        pytest.param({"end": "print(model.training)"}, id="the mode, which train() gives both"),
        pytest.param({"end": "print(hasattr(model, 'module'))"}, id="a question that the wrapper answers"),
        pytest.param({"model": "model = nn.DataParallel(Net())", "end": "print(model.__class__)"}, id="the class of a wrapper, as before"),
        pytest.param({"end": "print(len(val_set), val_set[0])"}, id="length and items of something else"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM107", **parts) == []


@pytest.mark.parametrize(
    ("parts", "pointed", "line"),
    [
        pytest.param({"end": "print(model.fc)"}, "model.fc", "print(model.module.fc)", id="attribute"),
        pytest.param({"end": "print(model.__class__.__name__)"}, "model.__class__", "print(model.module.__class__.__name__)", id="class"),
        pytest.param({"end": "model.tag = 3"}, "model.tag", "model.module.tag = 3", id="attribute that is set"),
        pytest.param(
            {"model": "model = Net()\nif torch.cuda.device_count() > 1:\n    model = nn.DataParallel(model)", "end": "model.best = 3"},
            "model.best", "model.module.best = 3", id="set on what may be the model itself",
        ),
        pytest.param({"end": "model.training = False"}, "model.training", "model.module.training = False", id="the mode of the model alone"),
        pytest.param({"end": "setattr(model, 'training', False)"}, "setattr(model, 'training', False)", "setattr(model.module, 'training', False)", id="the same by its name"),
        pytest.param({"end": "model.load_state_dict({})"}, "model.load_state_dict", "model.module.load_state_dict({})", id="load_state_dict"),
        pytest.param({"net": _NET, "end": "print(model.names())"}, "model.names", "print(model.module.names())", id="method of the model"),
        pytest.param({"end": "net = model\nprint(net.fc)"}, "net.fc", "print(net.module.fc)", id="other name"),
        pytest.param({"module_level": True, "end": "print(model.fc)"}, "model.fc", "print(model.module.fc)", id="module level"),
        pytest.param({"defs": "def show(m):\n    print(m.fc)", "end": "show(model)"}, "m.fc", "print(m.module.fc)", id="parameter of a function"),
        pytest.param({"end": "print(getattr(model, 'fc'))"}, "getattr(model, 'fc')", "print(getattr(model.module, 'fc'))", id="getattr"),
        pytest.param(
            {"end": "print(getattr(model, '_orig_mod', model))"},
            "getattr(model, '_orig_mod', model)",
            "print(getattr(model.module, '_orig_mod', model.module))",
            id="getattr with the model itself else",
        ),
        pytest.param({"end": "print(getattr(model, 'fc', None))"}, "getattr(model, 'fc', None)", "print(getattr(model.module, 'fc', None))", id="getattr else None"),
        pytest.param({"end": "print(len(model))"}, "len(model)", "print(len(model.module))", id="length"),
        pytest.param({"end": "print(model[0])"}, "model[0]", "print(model.module[0])", id="item of a Sequential"),
        pytest.param({"end": "for part in model:\n    pass"}, "model", "for part in model.module:", id="loop over a Sequential"),
        pytest.param({"end": "print([p for p in model])"}, "model", "print([p for p in model.module])", id="comprehension over a Sequential"),
    ],
)
def test_found_and_fixed(parts: dict[str, str], pointed: str, line: str) -> None:
    assert found("DPM107", **parts) == [pointed]
    assert line in after(**parts)


def test_self_attribute() -> None:
    trainer = """
    class Trainer:
        def __init__(self, loader):
            self.loader = loader
            self.model = Net()
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

        def run(self):
            for epoch in range(2):
                for x, y in self.loader:
                    self.optimizer.zero_grad()
                    loss = F.cross_entropy(self.model(x), y)
                    loss.backward()
                    self.optimizer.step()
            torch.save(self.model.state_dict(), "m.pt")
    """
    parts = {"defs": trainer, "model": "", "optimizer": "", "epochs": "if True:", "batches": "if True:", "step": "Trainer(loader).run()"}
    assert found("DPM107", **parts) == ["self.model.state_dict"]
    assert 'ddp.save(self.model.module.state_dict(), "m.pt")' in after(**parts)


_HOOK = """
class Saver(Hook):
    def after_epoch(self, trainer):
        torch.save(trainer.model.{}, "a.pt")

class Trainer:
    def __init__(self, loader):
        self.loader = loader
        self.model = Net()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def run(self):
        for epoch in range(2):
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = F.cross_entropy(self.model(x), y)
                loss.backward()
                self.optimizer.step()
            {}
"""
_HOOKED = {
    "imports": "from hooks import Hook, call",
    "model": "",
    "optimizer": "",
    "epochs": "if True:",
    "batches": "if True:",
    "step": "Trainer(loader).run()",
}


@pytest.mark.parametrize(
    ("attribute", "calls", "line"),
    [
        pytest.param("state_dict()", "call(self, [Saver()])", "ddp.save(ddp.unwrap(trainer.model).state_dict(), 'a.pt')", id="a hook that a library calls"),
        pytest.param("name", "call(self, [Saver()])", "ddp.save(trainer.model.name, 'a.pt')", id="another attribute may be anything's"),
        pytest.param("state_dict()", "getattr(Saver(), 'after_epoch')(self)", "ddp.save(trainer.model.module.state_dict(), 'a.pt')", id="called by name"),
    ],
)
def test_hooks(attribute: str, calls: str, line: str) -> None:
    assert line in [new.replace('"', "'") for new in after(**_HOOKED, defs=_HOOK.format(attribute, calls))]


def test_where_it_may_be_either_unwrap_is_written() -> None:
    """A function that is given the bare model in one call and the wrapper in another."""
    defs = "def show(m):\n    print(m.fc)"
    assert "print(ddp.unwrap(m).fc)" in after(defs=defs, model="model = nn.DataParallel(Net())", end="show(model)\nshow(model.module)")


_REGISTRY = """
class Registry:
    def __init__(self, {parameter}):
        self.parts = {held}

    def save(self):
        return {{k: v.state_dict() for k, v in self.parts.items()}}

    def load(self, state):
        for k, v in self.parts.items():
            v.load_state_dict(state[k])
"""


@pytest.mark.parametrize(
    ("parameter", "held", "made"),
    [
        pytest.param("**parts", "parts", "Registry(net=model, optimizer=optimizer)", id="star arguments"),
        pytest.param("**parts", "dict(parts)", "Registry(**{'net': model, 'optimizer': optimizer})", id="a dict with stars, copied"),
        pytest.param("**parts", "dict(**parts)", "Registry(net=model, optimizer=optimizer)", id="star arguments handed on to dict"),
        pytest.param("parts", "parts", "Registry(dict(net=model, optimizer=optimizer))", id="a dict"),
        pytest.param("net, optimizer", "{'net': net, 'optimizer': optimizer}", "Registry(net=model, optimizer=optimizer)", id="a dict made by the class"),
        pytest.param("parts", "parts", "Registry(dict([('net', model), ('optimizer', optimizer)]))", id="pairs"),
        pytest.param("*parts", "dict(enumerate(parts))", "Registry(model, optimizer)", id="by number"),
    ],
)
def test_a_registry_of_modules_and_optimizers(parameter: str, held: str, made: str) -> None:
    parts = {"defs": _REGISTRY.format(parameter=parameter, held=held), "model": "model = nn.DataParallel(Net())", "end": f"r = {made}\nr.load(r.save())"}
    assert after(**parts)[:2] == [
        "return {k: ddp.unwrap(v).state_dict() for k, v in self.parts.items()}",
        "ddp.unwrap(v).load_state_dict(ddp.clean_keys(state[k]))",
    ]


@pytest.mark.parametrize(
    ("line", "new"),
    [
        pytest.param("a = [p.state_dict() for p in [model]]", "a = [p.module.state_dict() for p in [model]]", id="wrappers alone"),
        pytest.param("a = [p.state_dict() for p in [model, None]]", "a = [p.module.state_dict() for p in [model, None]]", id="or None"),
        pytest.param("a = [p.state_dict() for p in (model, optimizer)]", "a = [ddp.unwrap(p).state_dict() for p in (model, optimizer)]", id="an optimizer too"),
        pytest.param(
            "for i, p in enumerate([model, optimizer]):\n    p.state_dict()", "ddp.unwrap(p).state_dict()", id="an optimizer too, with numbers"
        ),
        pytest.param("for n, p in zip('ab', [model, optimizer]):\n    p.state_dict()", "ddp.unwrap(p).state_dict()", id="an optimizer too, with names"),
        pytest.param("e = copy.deepcopy(model) if c else model\ne.fc", "ddp.unwrap(e).fc", id="a copy or the wrapper"),
        pytest.param("if c:\n    e = copy.deepcopy(model)\nelse:\n    e = model\ne.fc", "ddp.unwrap(e).fc", id="a copy in one branch"),
        pytest.param("if c:\n    e = model\nelse:\n    e = copy.deepcopy(model)\nshow(net=e)", "return ddp.unwrap(net).fc", id="a copy in the other branch, handed on"),
    ],
)  # fmt: skip
def test_what_may_be_something_else(line: str, new: str) -> None:
    assert new in after(imports="import copy", defs="def show(net):\n    return net.fc", setup="c = os.environ.get('C')", end=line)


_LAYERS = """\
def layers(module):
    found = [module] if isinstance(module, nn.Linear) else []
    for child in {children}:
        found += layers(child)
    return found
"""


def test_a_function_that_goes_down_a_model_meets_its_parts_too() -> None:
    """The wrapper comes first, and then what is in it: both have children, and what is found of them is either."""
    text = whole(defs=_LAYERS.format(children="module.children()"), epoch_end="for layer in layers(model):\n    print(layer.weight.norm())")
    assert "for child in ddp.unwrap(module).children():" in text and "ddp.unwrap(layer).weight" in text and "module.module" not in text


def test_a_function_that_does_not_go_down_has_the_wrapper() -> None:
    defs = "def parts(net):\n    return [c for c in net.children()]"
    assert "net.module.children()" in whole(defs=defs, epoch_end="print(parts(model))")


@pytest.mark.parametrize(
    ("end", "changed"),
    [
        ('setattr(model, "temperature", 2.0)', 'setattr(model.module, "temperature", 2.0)'),
        ('vars(model)["temperature"] = 2.0', 'vars(model.module)["temperature"] = 2.0'),
        ('delattr(model, "temperature")', 'delattr(model.module, "temperature")'),
        ('name = input()\nsetattr(model, name, 2.0)', "setattr(model.module, name, 2.0)"),
    ],
)
def test_what_is_set_by_name(end: str, changed: str) -> None:
    assert changed in whole(end=end)


def test_what_a_data_parallel_holds_stays_on_it() -> None:
    text = whole(model="model = nn.DataParallel(Net())", end='vars(model)["temperature"] = 2.0\nmodel.__dict__["scale"] = 3.0')
    assert 'vars(model)["temperature"] = 2.0' in text and 'model.__dict__["scale"] = 3.0' in text


_COUNTING = """
def begin(self):
    self.register_forward_hook(print)


def add(net):
    net.begin = begin.__get__(net)
    net.again = types.MethodType(begin, net)
"""


def test_what_a_function_becomes_a_method_of() -> None:
    """Hooks that it registers on the wrapper would not run where an evaluation calls the model inside."""
    text = whole(imports="import types", defs=_COUNTING, epoch_end="add(model)\nmodel.begin()")
    assert "net.module.begin = begin.__get__(net.module)" in text and "net.module.again = types.MethodType(begin, net.module)" in text
    kept = whole(imports="import types", defs=_COUNTING, model="model = nn.DataParallel(Net())", epoch_end="add(model)")
    assert "net.begin = begin.__get__(net)" in kept
