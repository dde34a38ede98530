"""What means the batch size of a training loader: other names of the setting, and arguments that stand in a dict."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found, refused, whole

_ARGS = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--bs', type=int, default=16)"


# ------------------------------------------------------------------ other names of the setting
@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"step": "n = args.bs\nz = torch.randn(n, 8)\n" + STEP}, id="in the loop"),
        pytest.param({"before": "n = args.bs", "step": "z = torch.randn(n, 8)\n" + STEP}, id="above the loops"),
        pytest.param({"before": "n, m = args.bs, 3", "step": "z = torch.randn(n, 8)\n" + STEP}, id="one of several"),
        pytest.param({"before": "n = int(args.bs)", "step": "z = torch.randn(n, 8)\n" + STEP}, id="as a number"),
    ],
)
def test_another_name_of_the_setting(parts: dict[str, str]) -> None:
    parts = {"imports": _ARGS, "setup": "args = parser.parse_args()", "loader": "loader = DataLoader(train_set, batch_size=args.bs, shuffle=True)", **parts}
    assert "z = torch.randn(ddp.local_batch(n), 8)" in after(**parts)


def test_an_attribute_that_holds_the_setting() -> None:
    step = (
        "self.optimizer.zero_grad()\n            loss = F.cross_entropy(self.model(x + z), y)\n            loss.backward()\n            self.optimizer.step()"
    )
    defs = f"""\
    class Trainer:
        def __init__(self, config, loader, model, optimizer):
            self.n, self.config = config.bs, config
            self.loader, self.model, self.optimizer = loader, model, optimizer
            self.z = torch.ones(config.bs, 8)

        def fit(self):
            for x, y in self.loader:
                z = torch.zeros(self.n, 8) + self.z + torch.zeros(self.config.bs, 8)
                {step.replace("            ", "                ")}
    """
    end = "Trainer(args, loader, model, optimizer).fit()"
    parts = {"imports": _ARGS, "setup": "args = parser.parse_args()", "loader": "loader = DataLoader(train_set, args.bs, True)"}
    new = whole(defs=defs, epochs="", batches="", step="", end=end, **parts)
    assert "self.z = torch.ones(ddp.local_batch(config.bs), 8)" in new
    assert "z = torch.zeros(ddp.local_batch(self.n), 8) + self.z + torch.zeros(ddp.local_batch(self.config.bs), 8)" in new


_STARRED = "loader = DataLoader(train_set, **params)"


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param("bs = 16\nparams = {'batch_size': bs, 'shuffle': True}", id="a literal"),
        pytest.param("bs = 16\nparams = dict(batch_size=bs, shuffle=True)", id="dict()"),
        pytest.param("bs = 16\nparams = dict({'batch_size': bs}, shuffle=True)", id="a dict given to dict()"),
        pytest.param("bs = 16\nparams = {**{'batch_size': bs}, 'shuffle': True}", id="a dict in a dict"),
        pytest.param("bs = 16\nparams = {'shuffle': True}\nparams['batch_size'] = bs", id="put in later"),
        pytest.param("bs = 16\nparams = {'shuffle': True}\nparams.update(batch_size=bs)", id="update with a keyword"),
        pytest.param("bs = 16\nparams = {'shuffle': True}\nparams.update({'batch_size': bs})", id="update with a dict"),
        pytest.param("bs = 16\nown = {'batch_size': bs}\nparams = dict(**own)", id="by another name"),
    ],
)
def test_the_size_is_in_star_arguments(setup: str) -> None:
    parts = {"setup": setup, "loader": _STARRED, "step": f"h = torch.zeros(bs, 2)\n{STEP}"}
    assert found("DPM203", **parts) == ["bs"]
    assert "h = torch.zeros(ddp.local_batch(bs), 2)" in after(**parts)


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param("bs = 16\nparams = {'num_workers': bs, 'batch_size': 8}", id="under another key"),
        pytest.param("bs = 16\nparams = make()", id="a dict from somewhere"),
        pytest.param(
            "bs = 16\nparams = {'batch_size': 8}\nother = {'batch_size': bs}\nother['batch_size'] = bs\nother.update(batch_size=bs)", id="another dict"
        ),
    ],
)
def test_no_size_in_star_arguments(setup: str) -> None:
    parts = {"defs": "from lib import make", "setup": setup, "loader": _STARRED, "step": f"h = torch.zeros(bs, 2)\n{STEP}"}
    assert found("DPM203", **parts) == []


def test_a_model_is_given_the_size_of_star_arguments() -> None:
    net = "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.n, self.fc = n, nn.Linear(8, 2)\n"
    parts = {"net": net + "    def forward(self, x):\n        return self.fc(x.view(self.n, -1))", "model": "model = Net(bs)"}
    assert refused("DPM203", setup="bs = 16\nparams = dict(batch_size=bs)", loader=_STARRED, **parts) == ["bs"]
