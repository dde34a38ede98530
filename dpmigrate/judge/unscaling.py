"""An execution that follows which gradients carry the scale of a GradScaler."""

from __future__ import annotations

from dpmigrate.execution.values import NOTHING, Value, const, data
from dpmigrate.judge.drawing import Drawing
from dpmigrate.judge.notes import BY_SCALER, NEW_SCALER
from dpmigrate.library.module_tree import owned
from dpmigrate.library.torch_amp import DONE


class Unscaling(Drawing):
    """Scalers, the optimizers that they step, and the gradients that they scale."""

    def _scaled(self, parameters: Value) -> bool:
        """Whether the gradients of parameters carry the scale of a GradScaler, which has not taken
        it off.
        """
        reached = {n for d in data(parameters) for n in d.reached}
        parts = {p for n in reached for p in owned(self, n)}
        passed = {o.number for p in parts for o in self.objects(self.heap.read((p, "grad")) or ())}
        losses = [d for n in passed for d in data(self.heap.read((n, "loss")) or ())]
        by = [{n for n in d.reached if self.heap.objects[n].kind == "scaler"} for d in losses]
        done = [
            held
            for n in set().union(*by)
            for name, held in list(self.heap.names(n))
            if str(name).startswith(DONE) and self._steps(str(name).removeprefix(DONE), parts)
        ]
        return bool(by) and all(by) and all(const("unscaled")[0] not in v for v in done)

    def _by_a_new_scaler(self, optimizer: Value, scaler: Value) -> bool:
        """Whether another scaler has stepped an optimizer before this one was made."""
        anew = False
        for made in self.objects(scaler):
            new = self.heap.read((made.number, NEW_SCALER)) == const(True)
            for stepped in self.objects(optimizer):
                held = self.heap.read((stepped.number, BY_SCALER)) or NOTHING  # a loop may have no turns
                anew = anew or (new and const(True)[0] in held)
                self.heap.write((stepped.number, BY_SCALER), const(True))
            self.heap.write((made.number, NEW_SCALER), const(False))
        return anew

    def _unscaled_before(self, loss: Value) -> bool:
        """Whether gradients that carry a scale come to such of which it was taken off."""
        scalers = {n for d in data(loss) for n in d.reached if self.heap.objects[n].kind == "scaler"}
        parts = {p for d in data(loss) for n in d.reached for p in owned(self, n)}
        return any(
            const("unscaled")[0] in held and self._steps(str(name).removeprefix(DONE), parts)
            for n in scalers for name, held in list(self.heap.names(n))
            if str(name).startswith(DONE)
        )  # fmt: skip

    def _steps(self, optimizer: str, parts: set[int]) -> bool:
        """Whether an optimizer, by its number, may step some of the parameters; one that is not
        followed may.
        """
        if not optimizer.isdigit():
            return True
        given = self.heap.read((int(optimizer), "parameters")) or NOTHING
        return any(owned(self, n) & parts for d in data(given) for n in d.reached)
