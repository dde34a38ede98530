"""Which framework trains or distributes a program: by what the program uses of it, not by its import.

A metric, a scheduler or a helper for seeds of such a framework works in any training loop. What takes the loop or the processes over is an object that
the program constructs, derives from or calls.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dpmigrate.contract import MODULE
from dpmigrate.facts.dormant import is_dormant
from dpmigrate.facts.names import FunctionNode, Names

_ANYTHING = r"\w+"
#: the word for a program that has been migrated
RUNTIME = "the dpmigrate runtime"


@dataclass(frozen=True, slots=True)
class _Framework:
    """``package``: the dotted name under which it is imported; ``parts``: what of its members trains or distributes."""

    package: str
    word: str
    parts: str = _ANYTHING
    starred: str = ""  # what a star import surely brings, where ``parts`` are names that programs make up as well

    def brought(self, name: str) -> bool:
        """Whether a star import of the package brings a name that no file of the program binds, and that counts."""
        dotted = f"{self.package}.{name}"
        return self.takes_over(dotted) and (not self.starred or re.fullmatch(self.starred, name) is not None)

    def takes_over(self, dotted: str) -> bool:
        """Whether the dotted name means the package itself, where any of it counts, or one of the parts in it."""
        if dotted == self.package:
            return self.parts is _ANYTHING
        rest = dotted.removeprefix(f"{self.package}.")
        return rest != dotted and any(re.fullmatch(self.parts, word) for word in rest.split("."))


_LIGHTNING = r"Trainer|Lightning(Module|Lite|CLI)|Fabric"
_FRAMEWORKS = (
    _Framework("torch.nn.parallel.DistributedDataParallel", "DistributedDataParallel"),
    _Framework("torch.nn.parallel.distributed.DistributedDataParallel", "DistributedDataParallel"),
    _Framework("torch.distributed.init_process_group", "torch.distributed"),
    _Framework("torch.distributed.fsdp", "FSDP"),
    _Framework("torch.distributed.pipelining", "pipeline parallelism"),
    _Framework("torch.distributed.rpc", "torch.distributed.rpc"),
    _Framework("apex.parallel.DistributedDataParallel", "apex DistributedDataParallel"),
    _Framework(MODULE, RUNTIME),
    _Framework(
        "accelerate", "Accelerate", r"Accelerator(State)?|PartialState|\w+_launcher|dispatch_model|load_checkpoint_and_dispatch|(cpu|disk)_offload"
    ),
    _Framework("pytorch_lightning", "Lightning", _LIGHTNING),
    _Framework("lightning", "Lightning", _LIGHTNING),
    _Framework("lightning_fabric", "Lightning Fabric", _LIGHTNING),
    _Framework("deepspeed", "DeepSpeed", r"initialize|init_\w+|DeepSpeed\w*Engine|PipelineModule|comm|zero"),
    _Framework("horovod", "Horovod"),
    _Framework("colossalai", "Colossal-AI", r"launch\w*|initialize|[Bb]ooster"),
    _Framework("composer", "Composer", r"Trainer|ComposerModel"),
    _Framework("ignite", "Ignite", r"\w*Engine|create_supervised_\w+|distributed"),
    _Framework("fairscale", "FairScale", r"\w+DataParallel|OSS|(Async)?Pipe"),
    _Framework("transformers", "the Hugging Face Trainer", r"\w*Trainer", r"(Seq2Seq)?Trainer"),
    _Framework("ray.train", "Ray Train"),
    _Framework("catalyst", "Catalyst", r"\w*Runner"),
    _Framework("fastai", "fastai", r"\w*[Ll]earner|create_cnn"),
)  # fmt: skip
#: the frameworks by their top-level package
_IN = {top: [f for f in _FRAMEWORKS if f.package.partition(".")[0] == top] for top in {f.package.partition(".")[0] for f in _FRAMEWORKS}}


def used(names: Names, unused: frozenset[ast.AST]) -> Iterator[tuple[ast.AST, str]]:
    """Where the program uses what trains or distributes it, each place with the word for that; ``unused`` are definitions that nothing uses."""
    starred = [f for f in _FRAMEWORKS for s in names.stars if f.parts is not _ANYTHING and f"{s}.".startswith(f"{f.package}.")]
    for node in names.nodes:
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load) or isinstance(names.parent[node], ast.Attribute):
            continue
        dotted = names.dotted(node)
        word = _word(dotted) or next((f.word for f in starred if dotted.startswith("?.") and f.brought(dotted.removeprefix("?."))), "")
        if word and not _only_asked(names, node) and not is_dormant(names, node, unused):
            yield node, word


def _word(dotted: str) -> str:
    return next((f.word for f in _IN.get(dotted.partition(".")[0], ()) if f.takes_over(dotted)), "")


def distributes(dotted: str) -> bool:
    """Whether the dotted name is one of torch's own that wraps a model for several processes or sets them up."""
    return any(f.takes_over(dotted) for f in _IN["torch"])


def _only_asked(names: Names, node: ast.expr) -> bool:
    """Whether the class is read for a question alone: in an annotation, by ``isinstance``, beside ``type(x)``, in an ``except``."""
    inner: ast.AST = node
    for a in names.ancestors(node):
        if isinstance(a, ast.arg | ast.AnnAssign) and inner is a.annotation:
            return True
        if isinstance(a, FunctionNode) and inner is a.returns:
            return True
        if isinstance(a, ast.ExceptHandler):
            return inner is a.type
        if isinstance(a, ast.Call):
            return inner in a.args[1:] and names.dotted(a.func) in ("?.isinstance", "?.issubclass")
        if isinstance(a, ast.Compare):
            return isinstance(a.left, ast.Call) and names.dotted(a.left.func) == "?.type"
        if isinstance(a, ast.stmt):
            return False
        inner = a
    return False
