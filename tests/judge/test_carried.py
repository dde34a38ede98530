"""What earlier steps have left of a rank's own batches, and where training would go by it without a word."""

from __future__ import annotations

import pytest

from dpmigrate.judge import carried
from dpmigrate.judge.trial import Trial, executed
from tests.judge.trained import result

_OWN = "best = 0.9 * best + 0.1 * loss.item()"
_WHOLE = "best = 0.9 * best + 0.1 * ddp.mean_all(loss.item())"
#: a step of its own, before that of the template
_STEP = "nn.functional.cross_entropy(model(x), y).backward()\n{}\noptimizer.step()\noptimizer.zero_grad()"
_TEACHER = "with torch.no_grad():\n    for a, b in zip(teacher.parameters(), net.parameters()):\n        a.mul_(best).add_(b)"
#: where training goes by the number, with what stands above, before and after the step
_WAYS = {
    "a bound of gradients": {"step": _STEP.format("nn.utils.clip_grad_norm_(model.parameters(), best)")},
    "a bound by name": {"step": _STEP.format("nn.utils.clip_grad_value_(model.parameters(), clip_value=best)")},
    "gradients in place": {"step": _STEP.format("for p in model.parameters():\n    p.grad.mul_(best)")},
    "a hook": {"step": "handle = net.weight.register_hook(lambda grad: grad * best)\n" + _STEP.format("handle.remove()")},
    "an attribute of a layer": {"epoch": "drop = nn.Dropout(0.1)", "step": "drop.p = best\nx = drop(x)"},
    "the weights of a teacher": {"epoch": "teacher = nn.Linear(2, 2)", "turn": _TEACHER},
    "a draw": {"step": "if random.random() < best:\n    x = x * 2"},
    "noise": {"step": "x = x + best * random.random()"},
}


def _faults(parts: dict[str, str], moved: str) -> list[str]:
    case = Trial(executed(result(**{**parts, "turn": f"{parts.get('turn', '')}\n{moved}"})))
    return [f.words for f in carried.faults(case)]


@pytest.mark.parametrize("parts", _WAYS.values(), ids=_WAYS)
def test_numbers_of_a_rank(parts: dict[str, str]) -> None:
    assert _faults(parts, _OWN)


@pytest.mark.parametrize("parts", _WAYS.values(), ids=_WAYS)
def test_numbers_of_all_ranks(parts: dict[str, str]) -> None:
    assert _faults(parts, _WHOLE) == []


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"step": "x = x * random.random()"}, id="a draw alone"),
        pytest.param({"turn": "print(best)"}, id="it is only shown"),
        pytest.param({"epoch": "teacher = nn.Linear(2, 2)", "turn": _TEACHER.replace("best", "0.9")}, id="a teacher by a constant"),
        pytest.param({"step": _STEP.format("nn.utils.clip_grad_norm_(model.parameters(), 1.0)")}, id="a constant bound"),
        pytest.param({"step": _STEP.format("best = nn.utils.clip_grad_norm_(model.parameters(), 1.0)")}, id="the norm of averaged gradients"),
    ],
)
def test_nothing_goes_by_them(parts: dict[str, str]) -> None:
    assert _faults(parts, _OWN) == []


@pytest.mark.parametrize(
    "begin, move, read",
    [
        pytest.param("kept = {'p': 0.5}", "kept['p'] = 0.9 * kept['p'] + loss.item()", "kept['p']", id="a dict"),
        pytest.param("kept = [0.5]", "kept.append(loss.item())", "sum(kept) / len(kept)", id="a history"),
        pytest.param("class Kept:\n    p = 0.5", "Kept.p = Kept.p + (0.1 if loss.item() > 0.6 else -0.1)", "Kept.p", id="a class, by a decision"),
        pytest.param("def kept(): pass\nkept.p = 0.5", "kept.p = max(kept.p, loss.item())", "kept.p", id="a function"),
        pytest.param("kept = Meter()", "kept.update(loss.item())", "kept.avg", id="an object"),
    ],
)
def test_wherever_it_is_kept(begin: str, move: str, read: str) -> None:
    parts = {"epoch": begin, "step": _STEP.format(f"nn.utils.clip_grad_norm_(model.parameters(), {read})")}
    assert _faults(parts, move)
    assert _faults(parts, move.replace("loss.item()", "ddp.mean_all(loss.item())")) == []


#: a function of the program's own between the model and the loss
_FUNCTION = """\
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, label):
        ctx.factor, ctx.count = 0.5, z.size(0)
        ctx.save_for_backward(z, label, torch.tensor(z.size(0)))
        return 0.5 * z
    @staticmethod
    def backward(ctx, grad):
        z, label, size = ctx.saved_tensors
        return {}, None
"""
_APART = """\
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(z, label):
        return 0.5 * z
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.z, ctx.label = inputs
    @staticmethod
    def backward(ctx, grad):
        z, label = ctx.z, ctx.label
        return {}, None
"""
_THROUGH = "nn.functional.cross_entropy(Scaled.apply(model(x), y), y).backward()\noptimizer.step()\noptimizer.zero_grad()"


@pytest.mark.parametrize("function", [_FUNCTION, _APART], ids=["with a context", "with a context apart"])
@pytest.mark.parametrize(
    ("gradient", "told"),
    [
        pytest.param("grad * 0.5", False, id="a factor"),
        pytest.param("grad * z.abs()", False, id="of each sample"),
        pytest.param("grad / z.size(0)", False, id="of a mean"),
        pytest.param("grad / (label == 1).sum()", True, id="by the samples of a class"),
        pytest.param("grad / torch.bincount(label, minlength=2)[label].view(-1, 1)", True, id="by those of its class"),
        pytest.param("grad * z.std()", True, id="by a statistic"),
    ],
)
def test_what_functions_of_its_own_give_back(function: str, gradient: str, told: bool) -> None:
    case = Trial(executed(result(epoch=function.format(gradient), step=_THROUGH)))
    assert bool(list(carried.faults(case))) is told


@pytest.mark.parametrize("kept", ["ctx.factor", "size", "ctx.count"])
def test_what_a_context_keeps(kept: str) -> None:
    case = Trial(executed(result(epoch=_FUNCTION.format(f"grad / {kept}"), step=_THROUGH)))
    assert not list(carried.faults(case))


_MANUAL = "nn.functional.cross_entropy(model(x), y).backward()\nfor p in model.parameters():\n    {}\noptimizer.step()\noptimizer.zero_grad()"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param("p.grad = p.grad.clamp(-1, 1)", False, id="of that of all ranks"),
        pytest.param("p.grad = None", False, id="none"),
        pytest.param("p.grad = torch.zeros_like(p)", False, id="zeros"),
        pytest.param("p.grad = p.grad + x.mean()", True, id="with a mean of the batch"),
        pytest.param("p.grad = p.grad.clamp(-x.max(), x.max())", True, id="bounded by the batch"),
        pytest.param("p.grad.data = p.grad.data * x.mean()", True, id="its elements"),
        pytest.param("p.grad = p.grad * random.random()", True, id="times a draw"),
        pytest.param("p.grad.mul_(random.random())", True, id="times a draw, in place"),
        pytest.param("with ddp.same_stream():\n        p.grad = p.grad * random.random()", False, id="times a draw of all ranks"),
        pytest.param("grads = [p.grad, -p.grad]\n    random.shuffle(grads)\n    p.grad = grads[0]", True, id="chosen by a draw"),
    ],
)
def test_gradients_that_a_step_gives(change: str, told: bool) -> None:
    case = Trial(executed(result(step=_MANUAL.format(change))))
    assert bool(list(carried.faults(case))) is told
