"""DPM302: means over something else than the samples."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found, hits, refused, whole

_STEP = "optimizer.zero_grad()\n{}\nloss.backward()\noptimizer.step()"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("loss = F.cross_entropy(model(x), y)", id="a plain mean"),
        pytest.param("loss = F.cross_entropy(model(x), y, label_smoothing=0.1)", id="smoothing"),
        pytest.param("loss = F.binary_cross_entropy_with_logits(model(x), y, weight=x)", id="weights that do not divide"),
        pytest.param("loss = F.mse_loss(model(x), y, reduction='sum') / len(x)", id="divided by the batch"),
        pytest.param("loss = F.cross_entropy(model(x), y)  # ignore_index=0", id="in a comment"),
        pytest.param("loss = F.mse_loss(model(x)[0], y[:, 0])", id="an index selects as many for every rank"),
        pytest.param("i = 0\nloss = F.mse_loss(model(x)[i], y[i])", id="an index in a variable"),
        pytest.param("loss = F.mse_loss(model(x).data, y.data)", id="the data of it"),
    ],
)
def test_nothing_to_say(line: str) -> None:
    assert found("DPM302", step=_STEP.format(line)) == []


@pytest.mark.parametrize(
    ("before", "line", "expected"),
    [
        pytest.param(
            "",
            "loss = F.cross_entropy(model(x), y, ignore_index=0)",
            "loss = ddp.weighted_mean(F.cross_entropy(model(x), y, ignore_index=0), ddp.weight_of(y, ignore_index=0))",
            id="ignore_index",
        ),
        pytest.param(
            "w = torch.ones(2)",
            "loss = F.cross_entropy(model(x), y.view(-1), w)",
            "loss = ddp.weighted_mean(F.cross_entropy(model(x), y.view(-1), w), ddp.weight_of(y.view(-1), weight=w))",
            id="weights by position",
        ),
        pytest.param(
            "",
            "loss = F.cross_entropy(input=model(x), target=y, ignore_index=0)",
            "loss = ddp.weighted_mean(F.cross_entropy(input=model(x), target=y, ignore_index=0), ddp.weight_of(y, ignore_index=0))",
            id="targets by keyword",
        ),
        pytest.param(
            "c = nn.CrossEntropyLoss(torch.ones(2))",
            "loss = c(model(x), y)",
            "loss = ddp.weighted_mean(c(model(x), y), ddp.weight_of(y, weight=c.weight, ignore_index=c.ignore_index))",
            id="module",
        ),
        pytest.param(
            "w = torch.ones(2)",
            "loss = nn.CrossEntropyLoss(weight=w, ignore_index=0)(model(x), y)",
            "loss = ddp.weighted_mean(nn.CrossEntropyLoss(weight=w, ignore_index=0)(model(x), y), ddp.weight_of(y, weight=w, ignore_index=0))",
            id="a loss object made in the call",
        ),
        pytest.param(
            "from torch.nn import NLLLoss as N\nc = N(weight=torch.ones(2))",
            "loss = 2 * c(model(x), y) + model(x).mean()",
            "loss = 2 * ddp.weighted_mean(c(model(x), y), ddp.weight_of(y, weight=c.weight, ignore_index=c.ignore_index)) + model(x).mean()",
            id="an alias, as a part of the loss",
        ),
        pytest.param(
            "c = nn.BCEWithLogitsLoss()",
            "i = torch.where(x[:, :2] > 0)\nout = model(x)\nloss = c(out[i], torch.ones_like(input=out[i]))",
            "loss = ddp.weighted_mean(c(out[i], torch.ones_like(input=out[i])), out[i].numel())",
            id="targets made for what is chosen",
        ),
        pytest.param(
            "",
            "mask = (y > 0).float()\nloss = (model(x)[:, 0] * mask).sum() / mask.sum()",
            "loss = (model(x)[:, 0] * mask).sum() / ddp.mean_count(mask.sum())",
            id="a mask",
        ),
        pytest.param(
            "",
            "mask = (y > 0).float()\nloss = (model(x)[:, 0] * mask).sum() / (mask.sum() + 1e-8)",
            "loss = (model(x)[:, 0] * mask).sum() / (ddp.mean_count(mask.sum()) + (1e-8 / ddp.world_size()))",
            id="a mask with a small number",
        ),
        pytest.param(
            "",
            "mask = (y > 0).float()\nloss = (model(x)[:, 0] * mask).sum() / max(mask.sum(), 1)",
            "loss = (model(x)[:, 0] * mask).sum() / max(ddp.mean_count(mask.sum()), 1 / ddp.world_size())",
            id="a mask or one",
        ),
        pytest.param(
            "",
            "mask = (y > 0).float()\nloss = (model(x)[:, 0] * mask).sum() / mask.sum().clamp(min=1)",
            "loss = (model(x)[:, 0] * mask).sum() / ddp.mean_count(mask.sum()).clamp(min=1 / ddp.world_size())",
            id="a mask, clamped",
        ),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_over_all_ranks(before: str, line: str, expected: str, module_level: bool) -> None:
    assert expected in whole(before=before, step=_STEP.format(line), module_level=module_level)


def test_in_a_class_and_a_function() -> None:
    defs = "class T:\n    def __init__(self):\n        self.c = nn.CrossEntropyLoss(ignore_index=0)\ndef f(c, a, b):\n    return c(a, b)"
    text = whole(defs=defs, before="t = T()", step=_STEP.format("loss = t.c(model(x), y)"))
    assert "loss = ddp.weighted_mean(t.c(model(x), y), ddp.weight_of(y, weight=t.c.weight, ignore_index=t.c.ignore_index))" in text
    text = whole(defs=defs, before="c = nn.CrossEntropyLoss(ignore_index=0)", step=_STEP.format("loss = f(c, model(x), y)"))
    assert "return ddp.weighted_mean(c(a, b), ddp.weight_of(b, weight=c.weight, ignore_index=c.ignore_index))" in text


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"before": "c = nn.NLLLoss(weight=torch.ones(2))", "step": _STEP.format("loss = c(model(x), make(y))")}, id="targets that are made on the way"),
        pytest.param({"step": _STEP.format("loss = nn.NLLLoss(weight=torch.ones(2))(model(x), y)")}, id="a loss object without a name, of weights without one"),
        pytest.param(
            {
                "defs": "class Own(nn.Module):\n    def forward(self, a, b):\n        return F.cross_entropy(a, b)",
                "before": "c = Own() if epochs else nn.NLLLoss(weight=torch.ones(2))",
                "setup": "epochs = int(os.environ['EPOCHS'])",
                "step": _STEP.format("loss = c(model(x), y)"),
            },
            id="a loss that may be of another class, without these attributes",
        ),
    ],
)
def test_where_it_is_built(parts: dict[str, str]) -> None:
    text = whole(**parts)
    assert "ddp.weighted_loss(nn.NLLLoss(weight=torch.ones(2)))" in text
    assert "ddp.weighted_mean" not in text


_EVALUATES = "for a, b in DataLoader(val_set):\n    print(f(c, model(a), b))"


@pytest.mark.parametrize(
    ("parts", "pointed"),
    [
        pytest.param({"step": _STEP.format("loss = F.nll_loss(model(x), make(y), torch.ones(2))")}, "F.nll_loss(model(x), make(y), torch.ones(2))", id="targets"),
        pytest.param({"step": _STEP.format("loss = F.nll_loss(model(x), y, torch.ones(2))")}, "F.nll_loss(model(x), y, torch.ones(2))", id="weights"),
        pytest.param(
            {"step": _STEP.format("out = model(x)\nloss = out.sum() / out.abs().sum()")}, "out.sum() / out.abs().sum()", id="divided by what the model gives"
        ),
    ],
)
def test_refused(parts: dict[str, str], pointed: str) -> None:
    assert refused("DPM302", **parts) == [pointed]


@pytest.mark.parametrize(
    ("lines", "target"),
    [
        pytest.param("m = y != 0\nloss = F.mse_loss(model(x)[m], y[m])", "y[m].numel()", id="a mask"),
        pytest.param("loss = F.mse_loss(model(x)[y > 0], y[y > 0])", "y[y > 0].numel()", id="a comparison"),
        pytest.param("m = ~y.bool()\nloss = F.mse_loss(model(x)[m], target=y[m])", "y[m].numel()", id="not, by keyword"),
        pytest.param("m = (y > 0) & (y < 9)\nloss = F.l1_loss(model(x)[m].view(-1), y[m].view(-1))", "y[m].view(-1).numel()", id="two at once, reshaped"),
        pytest.param("i = torch.where(y > 0)[0]\nloss = F.mse_loss(model(x)[i], y[i])", "y[i].numel()", id="the places where it holds"),
        pytest.param("i = (y > 0).nonzero()\nloss = F.mse_loss(model(x)[i], y[i])", "y[i].numel()", id="nonzero"),
        pytest.param("m = y > 0\nloss = F.mse_loss(model(x)[m].mean(-1), y[m] / 10)", "(y[m] / 10).numel()", id="computed with"),
        pytest.param("t = torch.masked_select(y, y > 0)\nloss = F.mse_loss(model(x)[y > 0], t)", "t.numel()", id="masked_select"),
        pytest.param("t = pack_padded_sequence(y, x)[0]\nloss = F.cross_entropy(model(x), t)", "ddp.weight_of(t)", id="a packed sequence"),
        pytest.param("t = pack_padded_sequence(y, x).data\nloss = F.cross_entropy(model(x), t)", "ddp.weight_of(t)", id="its data"),
        pytest.param("t, sizes = pack_padded_sequence(y, x)\nloss = F.cross_entropy(model(x), t)", "ddp.weight_of(t)", id="unpacked"),
    ],
)
def test_what_is_selected_of_the_batch(lines: str, target: str) -> None:
    got = whole(imports="from torch.nn.utils.rnn import pack_padded_sequence", step=_STEP.format(lines))
    assert f", {target})\n" in got


def test_a_selection_that_is_made_on_the_way_is_refused() -> None:
    line = "loss = F.mse_loss(model(x)[y > 0], torch.masked_select(y, y > 0))"
    assert refused("DPM302", step=_STEP.format(line)) == [line.removeprefix("loss = ")]


@pytest.mark.parametrize(
    ("lines", "counted"),
    [
        pytest.param("each = F.mse_loss(model(x), y, reduction='none')\nloss = each[each > 0.1].mean()", "each[each > 0.1].numel()", id="method"),
        pytest.param("each = (model(x) - y) ** 2\nm = y > 0\nloss = torch.mean(each[m])", "each[m].numel()", id="function, a mask by a name"),
        pytest.param("each = (model(x) - y) ** 2\nhard = each[each > 0.1]\nloss = hard.sqrt().mean()", "hard.numel()", id="by a name, computed with"),
        pytest.param("m = y > 0\nloss = ((model(x) - y)[m] ** 2).mean()", "m.sum()", id="made on the way"),
        pytest.param("loss = F.mse_loss(model(x), y, reduction='none')[(y > 0) & (y < 3)].mean()", "((y > 0) & (y < 3)).sum()", id="by two comparisons"),
        pytest.param("m = (y > 0).float()\nloss = F.mse_loss(model(x), y, reduction='none')[~m.bool()].mean()", "(~m.bool()).sum()", id="by a number that is made a truth"),
        pytest.param("m = y > 0\nz = model(x)\nloss = (z[m] - y[m]).abs().mean()", "z[m].numel()", id="of two"),
        pytest.param("z = model(x)\nz = z[y > 0]\nt = y[y > 0]\nloss = torch.log(z.gather(1, t)).mean()", "t.numel()", id="of two variables"),
        pytest.param("m = y > 0\nz = model(x)\nloss = torch.cat([z[m], z[m] ** 2]).mean()", "z[m].numel()", id="twice as many"),
        pytest.param("m = y > 0\nk = y > 3\nz = model(x)\nloss = (z[m] - y[k]).abs().mean()", "", id="by two masks"),
        pytest.param("m = y > 0\nz = model(x)\nloss = torch.cat([z[m], z]).mean()", "", id="beside all"),
        pytest.param("m = y > 0\nz = model(x)\nloss = torch.cat(tensors=[z[m], z]).mean()", "", id="beside all, by a keyword"),
        pytest.param("m = y > 0\nz = model(x)\nloss = torch.cat([z[m]] + [z]).mean()", "", id="beside all, in two lists"),
        pytest.param("m = y > 0\nz = model(x)\nloss = torch.stack((z[m].mean(), z[~m].mean())).mean()", "", id="a mean beside another one"),
        pytest.param("i = (y > 0).nonzero()\nloss = F.mse_loss(model(x), y, reduction='none')[i].mean()", "i.numel()", id="by places, made on the way"),
    ],
)
def test_means_of_what_is_selected(lines: str, counted: str) -> None:
    if counted:
        assert f", {counted})\n" in whole(step=_STEP.format(lines))
    else:
        assert len(refused("DPM302", step=_STEP.format(lines))) == 1


_EPOCH = """
criterion = nn.CrossEntropyLoss(ignore_index=0)
def part(a, b):
    return criterion(a, b)
def run(batches, train):
    total = 0.0
    for x, y in batches:
        out = model(x)
        loss = {loss}
        if train:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total / len(batches)
"""
_WEIGHTED = "ddp.weighted_mean(criterion(out, y), ddp.weight_of(y, weight=criterion.weight, ignore_index=criterion.ignore_index))"


def _by_flag(val: str, second: str = "run(val, False)", loss: str = "criterion(out, y)") -> dict[str, str | bool]:
    """A program whose one loop trains and evaluates, as its calls say."""
    return {
        "module_level": True,
        "before": f"val = DataLoader(val_set, {val})\n{_EPOCH.format(loss=loss)}",
        "epoch_start": f"run(loader, True)\n{second}",
        "batches": "if False:",
        "step": "pass",
    }


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(_by_flag("batch_size=16"), id="in order"),
        pytest.param(_by_flag("16, shuffle=False"), id="in order, said"),
        pytest.param(_by_flag("16, shuffle=True", "with torch.no_grad():\n    run(val, False)"), id="without gradients"),
        pytest.param(_by_flag("16, shuffle=True", "run(loader, False)"), id="over the training data"),
    ],
)
def test_in_a_loop_that_trains_and_evaluates(parts: dict[str, str]) -> None:
    """Every rank evaluates the same batches, of which the mean is the same, or nothing is exchanged."""
    text = whole(**parts)
    assert f"loss = {_WEIGHTED}" in text
    assert "total = ddp.mean_all(total, over=batches)" in text


def test_where_gradients_are_switched() -> None:
    parts = _by_flag("16, shuffle=True")
    parts["before"] = str(parts["before"]).replace(
        "        out = model(x)\n        loss", "        with torch.set_grad_enabled(train):\n            out = model(x)\n            loss"
    )
    assert f"    loss = {_WEIGHTED}" in whole(**parts)


def test_a_function_of_such_a_loop() -> None:
    text = whole(**_by_flag("batch_size=16", loss="part(out, y)"))
    assert "return ddp.weighted_mean(criterion(a, b), ddp.weight_of(b, weight=criterion.weight, ignore_index=criterion.ignore_index))" in text
    parts = _by_flag("batch_size=16", loss="part(out, y)")
    parts["before"] = str(parts["before"]).replace("def part(a, b):\n", "def part(a, b):\n    if len(a) > 99:\n        return part(a[:99], b[:99])\n")
    assert "return ddp.weighted_mean(criterion(a, b), " in whole(**parts)
    quiet = {"defs": "def f(c, a, b):\n    return c(a, b)", "before": "c = nn.NLLLoss(ignore_index=0)", "step": _STEP.format("loss = f(c, model(x), y)")}
    text = whole(**quiet, end="with torch.no_grad():\n    " + _EVALUATES.replace("\n", "\n    "))
    assert "return ddp.weighted_mean(c(a, b), ddp.weight_of(b, weight=c.weight, ignore_index=c.ignore_index))" in text


def test_a_mask_of_the_data() -> None:
    text = whole(batches="for x, (y, valid) in loader:", step=_STEP.format("loss = F.mse_loss(model(x)[valid], y[valid])"))
    assert ", y[valid].numel())\n" in text


@pytest.mark.parametrize("count", ["kept.size(0)", "len(kept)", "kept.shape[0]"])
def test_a_sum_over_the_number_of_what_is_selected_is_no_mean_over_the_batch(count: str) -> None:
    line = f"F.mse_loss(kept, y[y > 0], reduction='sum') / {count}"
    assert refused("DPM302", step=_STEP.format(f"kept = model(x)[y > 0]\nloss = {line}")) == [line]


@pytest.mark.parametrize(
    ("count", "new"),
    [
        pytest.param("m.sum().item()", "ddp.mean_count(m.sum().item())", id="a number"),
        pytest.param("max(m.sum().item(), 1)", "max(ddp.mean_count(m.sum().item()), 1 / ddp.world_size())", id="a number with a guard"),
    ],
)
def test_counts_that_are_numbers(count: str, new: str) -> None:
    mean = f"(F.cross_entropy(model(x), y, reduction='none') * m).sum() / {count}"
    step = f"optimizer.zero_grad()\ny = y.to('cpu')\nm = y > 0\nloss = {mean}\nloss.backward()\noptimizer.step()"
    assert any(new in line for line in after(step=step))
    named = step.replace(count, "n").replace("m = y > 0", f"m = y > 0\nn = {count}")
    assert any("ddp.mean_count(" in line for line in after(step=named))


def test_a_loss_that_takes_the_name_of_what_it_is_made_of() -> None:
    step = "optimizer.zero_grad()\nm = y > 0\nloss = F.cross_entropy(model(x), y, reduction='none') * m\nloss = loss.sum() / m.sum()\nloss.backward()\noptimizer.step()"
    assert any("loss = loss.sum() / ddp.mean_count(m.sum())" in line for line in after(step=step))
    twice = step.replace("* m", "* m.sum()")
    assert not any("ddp.mean_count(" in line for line in after(step=twice))


def test_class_weights_that_are_given_later() -> None:
    step = _STEP.format("loss = c(model(x), y)")
    for later in ("c.weight = torch.ones(2)", "c.ignore_index = 1"):
        (one,) = hits("DPM302", before=f"c = nn.CrossEntropyLoss()\n{later}", step=step)
        assert one.edits
        assert "ddp.weight_of(y, weight=c.weight, ignore_index=c.ignore_index)" in whole(before=f"c = nn.CrossEntropyLoss()\n{later}", step=step)


@pytest.mark.parametrize(
    ("loss", "new"),
    [
        pytest.param("F.cross_entropy(model(x), y)", "ddp.weighted_mean(F.cross_entropy(model(x), y), ddp.weight_of(y))", id="function"),
        pytest.param("c(model(x), y)", "ddp.weighted_mean(c(model(x), y), ddp.weight_of(y, weight=c.weight, ignore_index=c.ignore_index))", id="object"),
    ],
)
def test_targets_of_minus_100_are_left_out(loss: str, new: str) -> None:
    """torch's default for ignore_index, which programs for masked language models write into their targets."""
    step = _STEP.format(f"y[x[:, 0] > 0] = -100\nloss = {loss}")
    assert any(new in line for line in after(before="c = nn.CrossEntropyLoss()", step=step))
    assert not any("weight" in line for line in after(before="c = nn.CrossEntropyLoss()", step=step.replace("-100", "-1")))


def test_one_loss_of_two_backwards_is_changed_once() -> None:
    line = "loss = F.cross_entropy(model(x), y, ignore_index=0)\nif epoch:\n    loss.backward()\nelse:\n    loss.backward()"
    step = f"optimizer.zero_grad()\n{line}\noptimizer.step()"
    assert len(hits("DPM302", step=step)) == 1


_MASKED = """
class Masked(nn.Module):
    def forward(self, out, y, mask):
        return (F.cross_entropy(out, y, reduction="none") * mask).sum() / mask.sum()
class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.masked = Masked()
    def forward(self, out, y):
        return self.masked(out, y, y.float())
"""
_COUNTED = "/ ddp.mean_count(mask.sum())"


@pytest.mark.parametrize(("made", "called"), [("Masked()", "c(model(x), y, y.float())"), ("Both()", "c(model(x), y)")])
def test_in_a_loss_module(made: str, called: str) -> None:
    """It is called beside the model, as a function is."""
    parts = {"defs": _MASKED, "before": f"c = {made}", "step": _STEP.format(f"loss = {called}")}
    assert _COUNTED in whole(**parts)
    quiet = f"with torch.no_grad():\n    for x, y in DataLoader(val_set):\n        print({called})"
    assert _COUNTED in whole(**parts, end=quiet)


def test_in_a_module_that_the_model_calls() -> None:
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc, self.c = nn.Linear(8, 2), Both()\n"
    net += "    def forward(self, x, y):\n        return self.c(self.fc(x), y)"
    assert refused("DPM302", defs=_MASKED, net=net, step=_STEP.format("loss = model(x, y)"))


_PADDED = """
class Masked(nn.Module):
    def __init__(self, pad={default}):
        super().__init__()
        self.pad = {held}
    def forward(self, out, y):
        mask = (y != self.pad).float()
        return (F.cross_entropy(out, y, reduction="none") * mask).sum() / mask.sum()
"""


@pytest.mark.parametrize(
    ("held", "made", "written"),
    [
        pytest.param("pad", "Masked()", True, id="a default"),
        pytest.param("pad", "Masked(1)", True, id="a number that is given"),
        pytest.param("int(pad)", "Masked(pad=1)", True, id="a number that is computed"),
        pytest.param("nn.Parameter(torch.ones(1))", "Masked()", False, id="a parameter"),
        pytest.param("pad", "Masked(model(torch.ones(1, 8)).argmax())", False, id="of the model"),
    ],
)
def test_what_a_loss_module_holds_goes_into_the_count(held: str, made: str, written: bool) -> None:
    parts = {"defs": _PADDED.format(default=0, held=held), "before": f"c = {made}", "step": _STEP.format("loss = c(model(x), y)")}
    if written:
        assert _COUNTED in whole(**parts)
    else:
        assert refused("DPM302", **parts)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("loss = torch.sqrt(F.mse_loss(model(x), y))", "loss = torch.sqrt(ddp.weighted_mean(F.mse_loss(model(x), y), y.numel()))", id="a root"),
        pytest.param("loss = ((model(x) - y) ** 2).mean() ** 0.5", "loss = ddp.weighted_mean(((model(x) - y) ** 2).mean(), y.numel()) ** 0.5", id="a power"),
        pytest.param("loss = torch.mean((model(x) - y) ** 2).sqrt()", "loss = ddp.weighted_mean(torch.mean((model(x) - y) ** 2), y.numel()).sqrt()", id="a method"),
        pytest.param("loss = F.l1_loss(model(x), y)\nloss = torch.log(1 + loss)", "loss = ddp.weighted_mean(F.l1_loss(model(x), y), y.numel())\n            loss = torch.log(1 + loss)", id="of a variable"),
        pytest.param("m = y > 0\nloss = torch.sqrt(F.mse_loss(model(x)[m], y[m]))", "loss = torch.sqrt(ddp.weighted_mean(F.mse_loss(model(x)[m], y[m]), y[m].numel()))", id="of chosen samples"),
    ],
)  # fmt: skip
def test_a_function_of_a_mean(line: str, expected: str) -> None:
    assert expected in whole(step=_STEP.format(line))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("loss = torch.sqrt((model(x) - y) ** 2 + 1).mean()", id="a mean of roots"),
        pytest.param("loss = torch.sqrt(((model(x) - y) ** 2).mean(dim=1)).mean()", id="roots of each sample's mean"),
        pytest.param("loss = F.mse_loss(model(x).exp(), y.exp())", id="of the data"),
    ],
)
def test_functions_of_each_sample(line: str) -> None:
    assert found("DPM302", step=_STEP.format(line)) == []


def test_a_root_of_what_is_divided_by_hand_is_refused() -> None:
    loss = "loss = torch.sqrt(((model(x) - y) ** 2).sum() / len(x))"
    assert refused("DPM302", step=_STEP.format(loss)) == ["torch.sqrt(((model(x) - y) ** 2).sum() / len(x))"]


_OWN, _NEXT = "BertForTokenClassification", "GPT2LMHeadModel"
_LABELS = "ddp.weight_of(labels)"


def _of_model(line: str, made: str = f"transformers.{_OWN}.from_pretrained('a')", batches: str = "for ids, labels in loader:", **more: str) -> dict[str, str]:
    return {"imports": "import transformers", "model": f"model = {made}", "batches": batches, "step": _STEP.format(line), **more}


@pytest.mark.parametrize(
    ("parts", "new"),
    [
        pytest.param(_of_model("out = model(ids, labels=labels)\nloss = out.loss"), f"loss = ddp.weighted_mean(out.loss, {_LABELS})", id="attribute"),
        pytest.param(_of_model("loss = model(ids, labels=labels).loss / 2"), f"loss = ddp.weighted_mean(model(ids, labels=labels).loss, {_LABELS}) / 2", id="at once"),
        pytest.param(_of_model("out = model(ids, labels=labels)\nloss = out[0]"), f"loss = ddp.weighted_mean(out[0], {_LABELS})", id="by place"),
        pytest.param(_of_model("out = model(ids, labels=labels)\nloss = out['loss']"), f"loss = ddp.weighted_mean(out['loss'], {_LABELS})", id="by name"),
        pytest.param(
            _of_model("loss = model(ids, labels=labels.cuda()).loss"),
            "loss = ddp.weighted_mean(model(ids, labels=labels.cuda()).loss, ddp.weight_of(labels.cuda()))", id="moved",
        ),
        pytest.param(
            _of_model("loss = model(**batch).loss", batches="for batch in loader:"),
            'loss = ddp.weighted_mean(model(**batch).loss, ddp.weight_of(batch["labels"]))', id="a dictionary",
        ),
        pytest.param(
            _of_model("loss = model(ids, labels=labels).loss", f"transformers.{_NEXT}.from_pretrained('a')"),
            "loss = ddp.weighted_mean(model(ids, labels=labels).loss, ddp.weight_of(labels[..., 1:]))", id="the next tokens",
        ),
        pytest.param(
            _of_model("loss = model(**batch).loss", "transformers.AutoModelForCausalLM.from_config(c)", "for batch in loader:"),
            'loss = ddp.weighted_mean(model(**batch).loss, ddp.weight_of(batch["labels"][..., 1:]))', id="the next tokens, a dictionary",
        ),
        pytest.param(
            _of_model("out = model(ids, labels=labels)\nloss = out.loss.mean()", f"nn.DataParallel(transformers.{_OWN}.from_pretrained('a'))"),
            f"loss = ddp.weighted_mean(out.loss, {_LABELS}).mean()", id="under DataParallel",
        ),
    ],
)  # fmt: skip
def test_losses_of_models_of_transformers(parts: dict[str, str], new: str) -> None:
    assert new in [line.strip() for line in whole(**parts).splitlines()]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(_of_model("loss = model(ids, labels=labels).loss", "transformers.BertForSequenceClassification.from_pretrained('a')"), id="a mean over samples"),
        pytest.param(_of_model("loss = F.cross_entropy(model(ids).logits, labels)"), id="the program's own loss"),
        pytest.param(_of_model("loss = model(ids, labels=labels)[1].mean()"), id="another part"),
        pytest.param(_of_model("loss = model(ids, labels=labels).loss", "other.LMHeadModel()"), id="of another library"),
        pytest.param(_of_model("loss = total.loss\ntotal = loss"), id="no call"),
        pytest.param(_of_model("loss = OUT.loss"), id="of somewhere"),
    ],
)  # fmt: skip
def test_other_losses_of_models(parts: dict[str, str]) -> None:
    assert found("DPM302", **parts) == []


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(_of_model("loss = model(ids, labels).loss"), id="labels by place"),
        pytest.param(_of_model("loss = model(ids, labels=made(labels)).loss"), id="labels that are computed"),
    ],
)
def test_labels_that_are_not_seen_are_refused(parts: dict[str, str]) -> None:
    assert refused("DPM302", **parts)


_ASKED = """
def masked(out, y):
    mask = (y > 0).float()
    {}
"""


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        pytest.param(
            "n = mask.sum()\n    if n.item() == 0:\n        return out.sum() * 0\n    return (out[:, 0] * mask).sum() / n",
            ["n = ddp.batch_sum(mask.sum())", "return ddp.batch_sum((out[:, 0] * mask).sum()) / n"],
            id="a return before it",
        ),
        pytest.param(
            "n = max(mask.sum().item(), 1)\n    if n < 2:\n        return out.sum() * 0\n    return (out[:, 0] * mask).sum() / n",
            ["n = max(ddp.batch_sum(mask.sum().item()), 1)", "return ddp.batch_sum((out[:, 0] * mask).sum()) / n"],
            id="a number with a guard",
        ),
        pytest.param(
            "n = mask.sum()\n    total = (out[:, 0] * mask).sum()\n    return total / n if n > 0 else total * 0",
            ["n = ddp.batch_sum(mask.sum())", "total = ddp.batch_sum((out[:, 0] * mask).sum())", "return total / n if n > 0 else total * 0"],
            id="a sum in a variable",
        ),
        pytest.param(
            "total = (out[:, 0] * mask).sum()\n    if mask.sum() > 0:\n        total = total / mask.sum()\n    return total",
            ["total = ddp.batch_sum((out[:, 0] * mask).sum())", "if ddp.batch_sum(mask.sum()) > 0:", "total = total / ddp.batch_sum(mask.sum())"],
            id="written twice",
        ),
        pytest.param(
            "n = mask.sum()\n    if n == 0:\n        return out.sum() * 0\n    hit = (mask * (out[:, 0] > 0)).sum() / n\n    print(hit)\n    return (out[:, 0] * mask).sum() / n",
            ["hit = ddp.batch_sum((mask * (out[:, 0] > 0)).sum()) / n"],
            id="another number that is divided by it",
        ),
    ],
)
def test_a_count_that_a_test_asks_for(body: str, lines: list[str]) -> None:
    text = whole(defs=_ASKED.format(body), step=_STEP.format("loss = masked(model(x), y)"))
    assert [one for one in lines if one not in [written.strip() for written in text.splitlines()]] == []
    assert "mean_count" not in text


def test_a_count_that_no_test_of_its_function_asks_for() -> None:
    text = whole(defs=_ASKED.format("n = mask.sum()\n    return (out[:, 0] * mask).sum() / n"), step=_STEP.format("n = 3\nif n > 2:\n    loss = masked(model(x), y)"))
    assert "return (out[:, 0] * mask).sum() / ddp.mean_count(n)" in text


def test_a_mask_that_a_test_asks_for_is_no_count() -> None:
    body = "if mask.any():\n        return (out[:, 0] * mask).sum() / mask.sum()\n    return out.sum() * 0"
    text = whole(defs=_ASKED.format(body), step=_STEP.format("loss = masked(model(x), y)"))
    assert "mask = (y > 0).float()\n" in text
