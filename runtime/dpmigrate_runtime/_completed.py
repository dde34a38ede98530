"""Each backward ends with averaged gradients, whichever parameters it has left out.

DistributedDataParallel averages when every parameter has its gradient, and waits for those that get
none: the averaging of that step never ends, and the next forward raises. With
``find_unused_parameters`` it walks the graph of what forward has returned. That is the wrong graph
where a loss uses a parameter beside forward, and where several passes go into one loss ("marked as
ready twice"). And gradients of a second backward through one forward are averaged in neither mode.

Here the end of the backward decides. Hooks on the same nodes as DDP's note which parameters have
got a gradient; when autograd is through, the others are marked as ready (they count as zero), so
that DDP averages and finishes before ``backward()`` returns. A backward that comes when DDP has
finished already, as the second one of a forward, is averaged anew: what had been averaged is the
same on all ranks, and its mean is itself.

A parameter that no rank has used keeps no gradient, since an optimizer passes over None, and not
over zero. So the ranks exchange, after each averaging, a byte for each parameter. They do it
whether they have left out something or not, since one rank does not know of another. Only a rank
with a missing gradient waits for the answer.

DDP sends its buckets one after the other, so one parameter without a gradient holds up those behind
it until the end. With ``search`` autograd is asked at the beginning which nodes it will not come
to, and these are marked at once. What a backward of its own recomputes (``checkpoint`` with
``use_reentrant``) is not in that graph: where there is such a thing, the end decides alone.
(torch.nn.parallel.DistributedDataParallel, "Internal Design"; torch.autograd.graph.Node)
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.autograd.graph import Node, get_gradient_edge
from torch.nn.parallel import DistributedDataParallel

from ._nets import note_recomputing
from ._state import STATE, capturing


def complete_backwards(wrapped: DistributedDataParallel, search: bool) -> None:
    """From now on finish what backwards leave open; ``search``: look for it when they begin."""
    note_recomputing()
    STATE.completed[wrapped] = Completed(wrapped, search)
    wrapped.register_forward_hook(_forwarded)


@torch._disable_dynamo  # type: ignore[attr-defined]
def _forwarded(module: Any, args: Any, output: Any) -> None:
    """A hook that can be pickled and copied with the wrapper, of whose copies nothing is known.

    It also runs where the wrapper is compiled: torch runs that one's own code as it stands.
    """
    completed = STATE.completed.get(module)
    if completed is not None:
        completed.forwarded(module, output)


class Completed:
    """What the backwards through one wrapper have come to."""

    def __init__(self, wrapped: DistributedDataParallel, search: bool) -> None:
        # in the order of DDP's own numbers
        self.parameters, self.sparse = wrapped._build_params_for_reducer()  # type: ignore[no-untyped-call]
        self.wrapped = weakref.ref(wrapped)
        self.nodes = [get_gradient_edge(parameter).node for parameter in self.parameters]
        #: parameters that the backward has come to, and those that it will not come to
        self.reached: set[int] = set()
        self.early: set[int] = set()
        #: of the latter, those that had no gradient before
        self.missing: set[int] = set()
        #: a forward has told DDP to average the next backward
        self.expects = False
        #: of what it has returned not all can be looked into
        self.hidden = False
        #: autograd calls ``finish`` at the end of this backward
        self.begun = False
        self.task = -1
        self.search = search
        self.sent: dist.Work | None = None
        for number, node in enumerate(self.nodes):
            node.register_hook(_reach(weakref.ref(self), number))

    def forwarded(self, wrapped: DistributedDataParallel, output: Any) -> None:
        """After a pass through the wrapper: backwards that go through its results are noted."""
        if not (torch.is_grad_enabled() and wrapped.require_backward_grad_sync):
            return
        self.expects, self.begun = True, False
        self.reached.clear()
        begin = _begin(weakref.ref(self))
        nodes: set[Node] = set()
        self.hidden = not _collect(output, nodes)
        for node in nodes:
            node.register_prehook(begin)

    def reach(self, number: int) -> None:
        """A parameter has got its gradient."""
        self.reached.add(number)
        if not self.begun:
            # no result of forward was seen on the way here
            if self.expects or self.hidden:
                self.begin()
        elif torch._C._current_graph_task_id() != self.task:
            STATE.recomputes = True

    def begin(self) -> None:
        """A backward comes to the wrapper."""
        if self.begun:
            return
        self.begun, self.task = True, torch._C._current_graph_task_id()
        _at_the_end(self.finish)
        self.early, self.missing = set(), set()
        wrapped = self.wrapped()
        if wrapped is not None and self.search and self.expects and not STATE.recomputes:
            self.early = self.passed_over()
            self.missing = {n for n in self.early if self.parameters[n].grad is None}
            self.mark(wrapped, self.early)

    def passed_over(self) -> set[int]:
        """The parameters that this backward will not come to; none where it comes to none at all."""
        try:
            comes = [torch._C._will_engine_execute_node(node) for node in self.nodes]
        except RuntimeError:  # autograd.grad of parameters gives them no gradient
            return set()
        return {n for n, yes in enumerate(comes) if not yes} - self.reached if any(comes) else set()

    def mark(self, wrapped: DistributedDataParallel, numbers: Iterable[int]) -> None:
        """Tell DDP that these parameters are ready."""
        for number in sorted(numbers):
            parameter = self.parameters[number]
            if self.sparse[number] and parameter.grad is None:
                # DDP takes no zero for these
                parameter.grad = torch.zeros_like(parameter, layout=torch.sparse_coo)
            wrapped.reducer._autograd_hook(number)  # type: ignore[attr-defined]

    def finish(self) -> None:
        """The backward is at its end: DDP gets what it waits for, and averages."""
        self.begun = False
        wrapped = self.wrapped()
        if wrapped is None or not self.reached:
            return
        if self.expects:
            ready = self.reached | self.early
        else:
            # DDP was through when this backward came
            wrapped.reducer._rebuild_buckets()
            wrapped.reducer.prepare_for_backward([])
            ready = set()
        left = set(range(len(self.nodes))) - ready
        # also those that autograd came to without a gradient
        missing = self.missing | {n for n, p in enumerate(self.parameters) if p.grad is None}
        self.expects, self.early = False, set()
        self.reached.clear()
        self.mark(wrapped, left)
        if capturing():  # a captured step has the same gradients each time
            return
        used = torch.ones(len(self.nodes), dtype=torch.uint8)
        used[sorted(missing)] = 0
        used = self.exchanged(wrapped.process_group, used)
        if missing:
            _at_the_end(lambda: self.drop(used, missing))

    def exchanged(self, group: dist.ProcessGroup, used: torch.Tensor) -> torch.Tensor:
        """Where the answer of all ranks will stand: which parameters any of them has used."""
        if self.sent is not None:
            self.sent.wait()
        if dist.get_backend(group) == "nccl":
            used = used.to(self.parameters[0].device)
        self.sent = dist.all_reduce(used, dist.ReduceOp.MAX, group=group, async_op=True)
        return used

    def drop(self, used: torch.Tensor, missing: set[int]) -> None:
        """Take away the zeros of parameters that no rank has used; DDP has finished by now."""
        if self.sent is not None:
            self.sent.wait()
        any_rank = used.tolist()
        for number in missing:
            if not any_rank[number]:
                self.parameters[number].grad = None


#: containers in containers
_DEEP = 8
_PLAIN = (str, bytes, int, float, complex, bool, type(None), torch.dtype, torch.device, torch.Size)


def _collect(value: Any, nodes: set[Node], deep: int = _DEEP) -> bool:
    """Collect the nodes that the tensors in a result come from. Returns whether all of it was seen."""
    if isinstance(value, torch.Tensor):
        if value.grad_fn is not None:
            nodes.add(value.grad_fn)
        return True
    if isinstance(value, (*_PLAIN, nn.Module, type)):
        return True
    parts: Iterable[Any]
    if isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        parts = value
    elif type(value).__module__ != "builtins" and hasattr(value, "__dict__") and not hasattr(type(value), "__slots__"):
        parts = vars(value).values()
    else:
        return False
    seen = [deep > 0 and _collect(part, nodes, deep - 1) for part in parts]
    return all(seen)


def _reach(one: weakref.ref[Completed], number: int) -> Callable[..., None]:
    """A hook of the node that gives a parameter its gradient, which may outlive the wrapper."""

    def reach(*_: Any) -> None:
        completed = one()
        if completed is not None:
            completed.reach(number)

    return reach


def _begin(one: weakref.ref[Completed]) -> Callable[..., None]:
    """A hook of a node that a result of forward comes from."""

    def begin(*_: Any) -> None:
        completed = one()
        if completed is not None:
            completed.begin()

    return begin


def _at_the_end(call: Callable[[], None]) -> None:
    """Let autograd call this when the backward that it is in is through."""
    torch.autograd.Variable._execution_engine.queue_callback(call)
