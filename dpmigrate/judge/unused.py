"""Every parameter of a wrapped model gets a gradient of some loss, or ``find_unused`` is written;
so it is where parameters are frozen after the wrap.

That is less than DDP wants, which is a gradient in every backward: models of which one loss
reaches one part and another loss the rest are not told. A parameter without one makes
DistributedDataParallel stop in the next forward
(https://docs.pytorch.org/docs/stable/notes/ddp.html). ``ddp.wrap`` goes on: ``find_unused`` lets
the gradients of such a step be exchanged while backward runs, and not at its end. With DDP's own
``find_unused_parameters`` it looks for the parameters that what forward gives is made of, and takes
the others for ready. One that a loss is made of all the same, beside forward or by an earlier pass
(``overtaken``), gets a gradient after that, and DDP stops ("marked as ready twice").
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from dpmigrate.execution import going
from dpmigrate.execution.objects import Object
from dpmigrate.execution.values import Data, Ref, const, data
from dpmigrate.judge.notes import COMPLETED, FROZEN, LATE
from dpmigrate.judge.trial import Fault, Trial
from dpmigrate.library.modules import MODEL
from dpmigrate.library.vision_parts import own_parts

NAME = "every parameter of a wrapped model is used"


def faults(trial: Trial) -> Iterator[Fault]:
    """Layers of wrapped models that no loss reaches."""
    objects = trial.result.heap.objects
    reached: dict[int, set[int]] = {}
    for _, loss in trial.losses():
        for number in loss.reached:
            if objects[number].kind == "wrapper":
                reached.setdefault(number, set()).update(_parts(trial, loss))
    for wrapper, seen in sorted(reached.items()):
        if trial.held(wrapper, "find_unused") not in ((), const(False)):
            if objects[wrapper].name not in COMPLETED:
                yield from _beside(trial, wrapper)
                yield from _overtaken(trial, wrapper)
            continue
        for made, why in _without_gradient(trial, wrapper, seen):
            words = why.format(f"{made.name} (made in {trial.line(made.node)})")
            yield trial.fault(objects[wrapper].node, NAME, words)
            break


def _beside(trial: Trial, wrapper: int) -> Iterator[Fault]:
    """Parameters of a wrapper that a loss is made of and no result of its forward."""
    inside: set[int] = set()
    for event in trial.result.trace.of("through"):
        if Ref(wrapper) in event.values["module"]:
            inside |= {n for d in data(event.values["given"]) for n in d.reached}
    objects = trial.result.heap.objects
    for node, loss in trial.losses():
        direct = (loss.reached & trial.owned(wrapper)) - inside - {wrapper}
        for number in sorted(n for n in direct if trial.has_parameters(objects[n])):
            made = objects[number]
            words = (
                f"the loss is made of {made.name} (made in {trial.line(made.node)}) beside forward: "
                "with find_unused DDP takes it for unused, and stops (marked as ready twice)"
            )
            yield trial.fault(node, NAME, words)
            break


def _overtaken(trial: Trial, wrapper: int) -> Iterator[Fault]:
    """Parameters of a wrapper that its last pass before a backward is not made of, but an earlier
    one that the loss is made of.
    """
    for event in trial.backwards:
        held = sorted({o.number for o in trial.objects(event.values["overtaken"])})
        for number in (n for n in held if n in trial.owned(wrapper)):
            made = trial.result.heap.objects[number]
            if trial.has_parameters(made):
                words = (
                    f"the last pass through the wrapper before this is not made of {made.name} (made in "
                    f"{trial.line(made.node)}), and the loss is, by an earlier one: with find_unused DDP "
                    "takes it for unused, and stops (marked as ready twice)"
                )
                yield trial.fault(event.node, NAME, words)
                break


def _without_gradient(trial: Trial, wrapper: int, seen: set[int]) -> Iterator[tuple[Object, str]]:
    """The layers of a wrapped model that DDP would wait for, each with the reason."""
    for number in sorted(trial.owned(wrapper)):
        made = trial.result.heap.objects[number]
        if const(True)[0] in trial.held(number, LATE) and trial.has_parameters(made):
            yield made, "{} is frozen after the wrap: DDP would wait for its gradient"
    for made in _left_out(trial, wrapper, seen):
        yield made, "no loss reaches {}: DDP would stop in the second step"
    for made in _of_libraries(trial, wrapper, seen):
        words = "only parts of {}, a model of a library, are seen to be used, perhaps not all: "
        yield made, words + "DDP would stop in the second step"
    for made, name, whole in _hung_on(trial, wrapper):
        words = f"{whole.name} (made in {trial.line(whole.node)}) has no part {name} that its own code would use: "
        yield made, words + "{} gets no gradient, and DDP would stop in the second step"
    for made, container in _perhaps(trial, wrapper, seen):
        chosen = f"of {container.name} (made in {trial.line(container.node)})"
        words = f"some layers {chosen} may be left out, perhaps {{}}: DDP would stop in the second step"
        yield made, words


def _of_libraries(trial: Trial, wrapper: int, seen: set[int]) -> Iterator[Object]:
    """The models of libraries in a wrapped model that are not called themselves, but parts of them:
    which parts there are beside these is not seen, as the last layer of a classifier.
    """
    for number in sorted(trial.owned(wrapper) - seen):
        made = trial.result.heap.objects[number]
        if made.extra == MODEL and len(trial.owned(number)) > 1 and _waited_for(trial, number):
            yield made


def _hung_on(trial: Trial, wrapper: int) -> Iterator[tuple[Object, Hashable, Object]]:
    """Layers that the program gives a model of a library under a name that is none of its parts
    (``resnet.classifier = nn.Linear(…)``), and that the program does not call.
    """
    objects = trial.result.heap.objects
    called = {a.object for e in trial.result.trace.of("forward") for a in e.values["module"] if isinstance(a, Ref)}
    for whole in (objects[n] for n in sorted(trial.owned(wrapper)) if objects[n].extra == MODEL):
        own = own_parts(whole.name)
        for name, held in trial.result.heap.names(whole.number) if own else ():
            for made in trial.objects(held) if isinstance(name, str) and name.isidentifier() and name not in own else ():
                if made.extra != MODEL and made.number not in called and _waited_for(trial, made.number):
                    yield made, name, whole


def _perhaps(trial: Trial, wrapper: int, seen: set[int]) -> Iterator[tuple[Object, Object]]:
    """A trained layer of each container of which no place is seen to go through all layers, though
    one takes some, with the container.
    """
    for number, taken in sorted(trial.result.taken_parts.items()):
        parts = [p for p, witnesses in taken.items() if any(w <= seen for w in witnesses)]
        if number not in trial.owned(wrapper) or going.complete(parts):
            continue
        inside = {n for n in trial.owned(number) - {number} if n in seen and _waited_for(trial, n)}
        lost = len(parts) < len(taken) or going.NOT_SEEN in parts
        if inside and (not _apart(trial, number) or lost):
            objects = trial.result.heap.objects
            yield objects[min(inside)], objects[number]


def _apart(trial: Trial, number: int) -> bool:
    """Whether the layers of a container are kept apart, so that it is seen which of them are used."""
    held = [(k, v) for k, v in trial.result.heap.names(number) if k == "*" or str(k).isdigit()]
    found = [a.object for _, v in held for a in v if isinstance(a, Ref)]
    return all(k != "*" for k, _ in held) and len(set(found)) == len(found)


def _waited_for(trial: Trial, number: int) -> bool:
    """Whether DDP waits for a gradient of an object: parameters that are not frozen on all ways."""
    frozen = trial.result.heap.read((number, FROZEN)) == const(True)
    return trial.has_parameters(trial.result.heap.objects[number]) and not frozen


def _parts(trial: Trial, loss: Data) -> set[int]:
    """What a loss reaches; ``model.parameters()`` in a loss comes to all that the model holds."""
    objects = trial.result.heap.objects
    return set().union(*(trial.owned(n) for n in loss.reached if objects[n].kind != "wrapper"))


def _left_out(trial: Trial, whole: int, seen: set[int]) -> Iterator[Object]:
    """What holds parameters in a model or a wrapper, is trained, and is not in ``seen``."""
    for number in sorted(trial.owned(whole) - seen):
        if _waited_for(trial, number) and len(trial.owned(number)) == 1:
            yield trial.result.heap.objects[number]
