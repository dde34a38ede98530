"""What asks for the class of a model gets that of the model, and not of its wrapper."""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.execution.objects import Object
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import Ref, Value
from dpmigrate.judge.trial import Fault, Trial

NAME = "the class asked for is that of the model"


def faults(trial: Trial) -> Iterator[Fault]:
    """``model.__class__``, ``type(model)`` and ``isinstance(model, Net)`` of wrappers, in programs
    that had no wrapper there before.
    """
    if trial.original is not None and any(_asked_of_wrappers(Trial(trial.original))):
        return
    for event in _asked_of_wrappers(trial):
        yield trial.fault(event.node, NAME, "this is the class of the wrapper, not of the model")


def _asked_of_wrappers(trial: Trial) -> Iterator[Event]:
    for event in trial.result.trace.of("class read", "class asked"):
        wrappers = [o for o in trial.objects(event.values["of"]) if o.kind == "wrapper"]
        classes = event.values.get("classes")
        if any(classes is None or _answer_changed(trial, w, classes) for w in wrappers):
            yield event


def _answer_changed(trial: Trial, wrapper: Object, classes: Value) -> bool:
    """Whether the wrapped model is an instance of one of the program's own classes that are
    asked for.
    """
    wanted = {a.object for a in classes if isinstance(a, Ref)}
    inner = trial.objects(trial.held(wrapper.number, "module"))
    made = (trial.result.class_of(o) for o in inner if o.kind == "instance")
    return any(wanted & set(cls.extra.order) for cls in made if cls is not None)
