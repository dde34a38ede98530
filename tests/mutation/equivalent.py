"""Mutants that are as right as the right result, by rules that are checked on both programs on paper.

A rule holds for some edits and ways to spoil them, says why such a program is right all the same, and
what must hold for that: the mutant and the right result are executed, and their traces are compared.
What no rule covers counts as wrong.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from dpmigrate import migration
from dpmigrate.execution import placements
from dpmigrate.execution.engine import Execution
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import Const, Data, Foreign, Items, Ref, Unbound, Unknown, Value, const, data, placement_of
from dpmigrate.judge import left_on_cpu
from dpmigrate.judge.files import names_of_wrapper
from dpmigrate.judge.notes import DROPPING, TOLD_OF
from dpmigrate.judge.totals import in_full
from dpmigrate.judge.trial import Trial, before, executed
from dpmigrate.library.streams import SEEDED
from dpmigrate.migration import Texts
from dpmigrate.model import Problem
from tests.mutation.mutants import Described
from tests.mutation.subjects import Subject


@dataclass(frozen=True)
class Pair:
    """The right result and the mutant, executed, and what is said of the mutant."""

    said: Described
    original: Execution
    right: Execution
    spoiled: Execution


#: what a program does to its model and its files, and what it tells: with how all of it lies across the ranks
_COURSE = (
    "backward", "step", "schedule", "clip", "scaler step", "in place", "requires grad", "load state",
    "print", "write", "save", "save by rank 0", "load", "open", "files", "typed", "judge pass",
    "draw", "wrap", "judge moved", "judge away", "judge thawed",
)  # fmt: skip
#: values of events that say where runtime calls stand, or what a trace calls its objects
_LEFT_OUT = frozenset({"over", "numbers", "gradients", "of", "sole", "alike", "target", "written"})
#: questions that a file system may answer differently a moment later
_ASKED = re.compile(r"\b(exists|isfile|isdir|listdir|scandir|glob|iterdir|is_file|is_dir|stat)\(")
_CLOCK = re.compile(r"\b(time|now|today|strftime|input|choice|random)\(")


def same_course(pair: Pair) -> bool:
    """Whether both train, write and tell the same, as far as a trace shows it."""
    return _course(pair.right) == _course(pair.spoiled)


def nothing_drawn(pair: Pair) -> bool:
    """Whether neither draws random numbers while it trains, nor in its evaluations, and what rank 0
    tells is the same, or that of all ranks.
    """
    lost, new = (_course(x) - _course(y) for x, y in ((pair.right, pair.spoiled), (pair.spoiled, pair.right)))
    told = not {k[0] for k in lost} - {"print"} and all(k[0] == "print" and _of_all_ranks(k) for k in new)  # type: ignore[index]
    return not any(_draws(e) for e in (pair.right, pair.spoiled)) and told


def _of_all_ranks(told: object) -> bool:
    """Whether all ranks have what is told."""
    values = [v for name, v in told[2:] if name == "value"]  # type: ignore[index]
    return all(a == "Setting" or (isinstance(a, tuple) and a[1] == "uniform") for v in values for a in v)


def single_numbers(pair: Pair) -> bool:
    """Whether all that is drawn otherwise while it trains are single numbers of the streams of Python and
    NumPy, which are the same on all ranks as there is one for a batch of one process.
    """
    drawn = [
        Counter({k: n for k, n in _course(x).items() if k[0] == "draw"})  # type: ignore[index]
        for x in (pair.right, pair.spoiled)
    ]  # fmt: skip
    each = (dict(k[2:]) for k in (drawn[0] - drawn[1]) + (drawn[1] - drawn[0]))  # type: ignore[index]
    single = all(_NO_STREAM_OF_TORCH & d["stream"] and repr(const(True)[0]) not in d["of a sample"] for d in each)
    shared = all(_alike(dict(k[2:])["own"]) for k in drawn[1] - drawn[0])  # type: ignore[index]
    rest = [_course(x) - d for x, d in zip((pair.right, pair.spoiled), drawn, strict=True)]
    return single and shared and not any(_drops(x) for x in (pair.right, pair.spoiled)) and rest[0] == rest[1]


_NO_STREAM_OF_TORCH = frozenset(repr(Const("str", name)) for name in ("random", "numpy"))


def _alike(own: object) -> bool:
    """Whether a number comes from a stream that is the same on all ranks."""
    return own == _shape_of(False)


def _drops(execution: Execution) -> bool:
    """Whether a layer drops while it trains."""
    events = execution.trace.of("forward")
    return any(o.name.startswith(DROPPING) for e in events for o in execution.objects(e.values["module"]))


def streams_alike(pair: Pair) -> bool:
    """Whether every number is drawn from a stream of the same kind, one that all ranks have alike or
    each rank's own. How often the ranks' streams begin does not matter: ``seed_ranks`` gives other
    ones each time, and leaves those of rank 0 as they are.
    """
    drops = [
        Counter(
            (ast.unparse(e.node), _shape(x, e.values.get("own", ()))) for e in x.trace.of("forward")
            if any(o.name.startswith(DROPPING) for o in x.objects(e.values["module"]))
        )
        for x in (pair.right, pair.spoiled)
    ]  # fmt: skip
    return drops[0] == drops[1] and same_course(pair)


def agreed(pair: Pair) -> bool:
    """Whether rank 0 is asked for what all ranks have made of the same numbers, and not of a file
    system, a clock or a stream that each asks for itself.
    """
    asked = pair.said.edit + pair.said.instead
    found = [e for e in pair.right.trace.of("rank 0 decides") if ast.unparse(e.node) in _texts(pair)]
    # an event that both have says nothing of the one that is spoiled
    lost = [placement_of(e.values["given"]).kind in placements.EQUAL for e in found]
    gone = _ASKED.search(_lost(pair)) or _CLOCK.search(_lost(pair))
    return bool(asked) and all(lost) and not gone and _steering(pair)


def asked_of_rank_0(pair: Pair) -> bool:
    """Whether rank 0 is still asked for all that a file system, a clock, a stream or somebody answers, and
    what is made of its answers beside it is the same on all ranks.
    """
    asked = [
        Counter(
            n.func.attr if isinstance(n.func, ast.Attribute) else ast.unparse(n.func)
            for e in x.trace.of("rank 0 decides") for n in ast.walk(e.node)
            if isinstance(n, ast.Call) and not ast.unparse(n.func).endswith(("from_main", "int", "float", "str"))
        )
        for x in (pair.right, pair.spoiled)
    ]  # fmt: skip
    return asked[0] == asked[1] and same_course(pair)


def _tells_unknown(execution: Execution) -> bool:
    """Whether something is told of which it is not known how it lies."""
    told = [a for e in execution.trace.of(*TOLD_OF) for v in e.values.values() for a in v]
    return any(isinstance(a, Unknown) or (isinstance(a, Data) and a.placement.kind is Kind.UNKNOWN) for a in told)


def met_before(pair: Pair) -> bool:
    """Whether the ranks have met since rank 0 wrote, wherever all of them read a file, and read the same files."""
    loads = list(pair.spoiled.trace.of("load"))
    read = any(e.kind == "open" and "w" not in str(e.values.get("mode")) for e in pair.spoiled.trace.of("open"))
    return bool(loads) and not read and all(map(_other_file, loads)) and same_course(pair)


def _other_file(load: Event) -> bool:
    """Whether what rank 0 may still be writing is known, and is not what is loaded."""
    paths, written = ([a for a in load.values[name] if isinstance(a, Const)] for name in ("path", "written"))
    nothing = load.values["written"] == const(None)
    return nothing or (len(paths) == len(load.values["path"]) and len(written) == len(load.values["written"]) and not {*paths} & {*written})


def clips_as_before(pair: Pair) -> bool:
    """Whether the original clips gradients that carry the scale of its own scaler."""
    return any(e.values["scaled"] == const(True) for e in pair.original.trace.of("clip"))


def put_together_elsewhere(pair: Pair) -> bool:
    """Whether what is not put together is neither told nor decides anything: it is of data, whose
    placement would show there, and no count of turns.
    """
    lost = [e for e in pair.right.trace.of("reduce") if ast.unparse(e.node) in _texts(pair)]
    counts = any(not isinstance(a, Data) for e in lost for a in e.values["given"])
    unknown = _tells_unknown(pair.spoiled)
    asserts = any(isinstance(n, ast.Assert) for p in pair.spoiled.program.parts for n in ast.walk(p.tree))
    return bool(lost) and not (counts or unknown or asserts) and same_course(pair)


def exchanges_nothing(pair: Pair) -> bool:
    """Whether wrappers are called without gradients where all ranks come equally often."""
    calls = [
        e for e in pair.spoiled.trace.of("forward")
        if any(o.kind == "wrapper" for o in pair.spoiled.objects(e.values["module"]))
    ]  # fmt: skip
    return bool(calls) and all(e.parted is None or e.values["grad"] != const(False) for e in calls)


def statistics_alike(pair: Pair) -> bool:
    """Whether no model is evaluated on a rank's part with running statistics of the rank's own. Rank 0's
    are those that all would have: what it makes of data in full, which it alone tells, stays the same.
    """
    own = (
        const(True)[0] in e.values["own"] and not all(_by_all(pair.spoiled, d) for d in data(e.values["given"]))
        for e in pair.spoiled.trace.of("judge statistics")
    )  # fmt: skip
    told = _told_apart(pair.right) == _told_apart(pair.spoiled)
    return not any(own) and told


def _by_all(execution: Execution, d: Data) -> bool:
    """Whether all ranks have data, or go through their loaders in full."""
    return d.placement.kind in placements.EQUAL or in_full(execution, d)


def _told_apart(execution: Execution) -> Counter[object]:
    """The course, where a number of rank 0's own counts as one of all where rank 0 tells it."""
    return Counter({k: n for k, n in _course(execution).items() if k[0] not in ("print", "write")})  # type: ignore[index]


def has_no_scaler(pair: Pair) -> bool:
    """Whether the original scales nothing, so that its checkpoints hold no scale to go on with."""
    return not any(True for _ in pair.original.trace.of("scaler step"))



def no_old_names(pair: Pair) -> bool:
    """Whether the program never saved or loaded the names of a wrapper."""
    return not names_of_wrapper(Trial(pair.original))


def same_making(pair: Pair) -> bool:
    """Whether models are made, moved, cast, frozen, loaded, wrapped and called in the same order, but
    for that of wraps which follow each other.
    """
    casts = re.compile(r"\.(half|double|bfloat16|type)\(")
    cast = any(casts.search(p.source.text) for p in pair.spoiled.program.parts)
    return _making(pair.right) == _making(pair.spoiled) and not cast and same_course(pair)


def _making(execution: Execution) -> list[tuple[str, ...]]:
    """What happens to models; attributes of other objects are none of it."""
    made: list[tuple[str, ...]] = []
    for e in execution.trace.of("wrap", "move", "requires grad", "attribute", "load state", "forward", "state"):
        owners = execution.objects(e.values["owner"]) if e.kind == "attribute" else []
        if e.kind == "attribute" and not any(o.kind in ("module", "container", "parameter", "wrapper") for o in owners):
            continue
        if e.kind == "wrap" and made and made[-1][0] == "wrap":
            made[-1] = ("wrap", *sorted((*made[-1][1:], ast.unparse(e.node))))
        else:
            made.append((e.kind, ast.unparse(e.node)))
    return made


def never_shuffled(pair: Pair) -> bool:
    """Whether no sampler of the result shuffles, and nothing else differs than that they are told of an epoch."""
    made = [o for o in pair.right.heap.objects.values() if o.name.endswith("DistributedSampler")]
    still = bool(made) and all(pair.right.heap.read((o.number, "shuffle")) == const(False) for o in made)
    passes = [
        Counter(k for k in _course(x).elements() if k[0] != "judge pass")  # type: ignore[index]
        for x in (pair.right, pair.spoiled)
    ]  # fmt: skip
    return still and passes[0] == passes[1]


def read_in_turn(pair: Pair) -> bool:
    """Whether nothing differs but whether the ranks take turns where they read."""
    courses = [
        Counter(tuple(v for v in k if not (isinstance(v, tuple) and v[0] == "in turn")) if k[0] == "open" else k for k in _course(x).elements())  # type: ignore[index, attr-defined]
        for x in (pair.right, pair.spoiled)
    ]  # fmt: skip
    return courses[0] == courses[1]


def only_told(pair: Pair) -> bool:
    """Whether handlers that raise again where there are ranks do so still, and only print beside it."""
    handlers = [
        [n.body for p in x.program.parts for n in ast.walk(p.tree) if isinstance(n, ast.ExceptHandler)]
        for x in (pair.right, pair.spoiled)
    ]  # fmt: skip
    ends = [[sorted(map(ast.unparse, body)) for body in found] for found in handlers]
    moved = [body for body, other in zip(*handlers, strict=True) if list(map(ast.dump, body)) != list(map(ast.dump, other))] if ends[0] == ends[1] else []
    return bool(moved) and all(any(map(_raises, body)) and all(_raises(n) or _tells(n) for n in body) for body in moved)


def _raises(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Raise)


def _tells(node: ast.stmt) -> bool:
    tells = re.compile(r"(\w+\.)*(print|print_exc|print_exception|exception|error|warning|info)\(")
    return isinstance(node, ast.Expr) and tells.match(ast.unparse(node)) is not None


def without_seed(pair: Pair) -> bool:
    """Whether a seed alone is left out."""
    seed, dropping = ([word in t for t in (pair.said.edit, pair.said.instead)] for word in ("seed=", "drop_last="))
    return seed == [True, False] and dropping[0] == dropping[1] and same_course(pair)


def older_name(pair: Pair) -> bool:
    """Whether the edit brings the present name of what torch has under an older one as well."""
    return pair.said.code == "DPM316" and same_course(pair)


def moved_by_wrapper(pair: Pair) -> bool:
    """Whether the batch that is not moved goes into wrappers alone, which move it."""
    gone = _moving(pair.right) - _moving(pair.spoiled)
    return bool(gone) and all(wrapped for _, wrapped in gone) and same_course(pair)


def moved_before(pair: Pair) -> bool:
    """Whether what is moved to the rank's device in the right result comes to no model without having been moved."""
    bare = list(pair.spoiled.trace.of("judge bare"))
    return bool(bare) and not any(left_on_cpu.left(pair.spoiled, e) for e in bare) and same_course(pair)


def _moving(execution: Execution) -> Counter[tuple[str, bool]]:
    """The calls that are given what was moved to the rank's device, and whether a wrapper is called."""
    found: dict[ast.AST, bool] = {}
    for event in execution.trace.of("forward"):
        given = [ast.unparse(a) for a in getattr(event.node, "args", ())]
        if any(text.endswith(".to(ddp.device())") for text in given):
            wrapper = any(o.kind == "wrapper" for o in execution.objects(event.values["module"]))
            found[event.node] = found.get(event.node, False) or wrapper
    return Counter((ast.unparse(node), wrapper) for node, wrapper in found.items())


def weights_seen(pair: Pair) -> bool:
    """Whether the judge, which has found nothing, has seen by what each loss is a mean whose weights
    are counted.
    """
    seen = {e.node for e in pair.spoiled.trace.of("mean over weights")}
    calls = [e.node for e in pair.spoiled.trace.of("judge runtime") if e.values["name"] == const("weighted_mean")]
    counted = [n for n in calls if isinstance(n, ast.Call) and any("weight_of" in ast.unparse(a) for a in n.args[1:])]
    return all(n.args[0] in seen for n in counted) and same_course(pair)


def linear_in_loss(pair: Pair) -> bool:
    """Whether the loss whose mean is taken is multiplied by a number that stands there: the mean is as well."""
    found = [
        [n for p in x.program.parts for n in ast.walk(p.tree) if isinstance(n, ast.Call) and ast.unparse(n.func).endswith("weighted_mean")]
        for x in (pair.right, pair.spoiled)
    ]
    before = Counter((ast.unparse(n.args[0]), ast.unparse(n.args[1])) for n in found[0])
    after = Counter((ast.unparse(_factor_gone(n.args[0])), ast.unparse(n.args[1])) for n in found[1])
    return before == after and same_course(pair)


def _factor_gone(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.Constant):
        return node.right
    return node


def same_products(pair: Pair) -> bool:
    """Whether both are one program but for the order of factors."""
    return _factored(pair.right) == _factored(pair.spoiled)


def _factored(execution: Execution) -> list[str]:
    return [ast.unparse(_Products().visit(ast.parse(p.source.text))) for p in execution.program.parts]


class _Products(ast.NodeTransformer):
    """Products as calls with their factors in the order of their texts."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if not isinstance(node.op, ast.Mult):
            return self.generic_visit(node)
        factors: list[ast.expr] = [node]
        while product := [f for f in factors if isinstance(f, ast.BinOp) and isinstance(f.op, ast.Mult)]:
            first = product[0]
            factors.remove(first)
            factors += [first.left, first.right]
        return ast.Call(ast.Name("*"), sorted((self.visit(f) for f in factors), key=ast.unparse), [])


def same_parts(pair: Pair) -> bool:
    """Whether both are one program but for the order of factors, and which of them is divided by the ranks."""
    trees = [[_Undivided().visit(ast.parse(p.source.text)) for p in x.program.parts] for x in (pair.right, pair.spoiled)]
    right, spoiled = ([ast.unparse(_Products().visit(t)) for t in each] for each in trees)
    return right == spoiled


class _Undivided(ast.NodeTransformer):
    """Batch sizes without their division."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return node.args[0] if ast.unparse(node.func) == "ddp.local_batch" and node.args else node


def clears_gradients(pair: Pair) -> bool:
    """Whether blocks under ``autocast`` hold no more statements than those that clear gradients."""
    held = [
        Counter(ast.unparse(b) for p in x.program.parts for n in ast.walk(p.tree) if isinstance(n, ast.With) and "autocast" in ast.unparse(n.items[0]) for b in n.body)
        for x in (pair.right, pair.spoiled)
    ]  # fmt: skip
    more = held[1] - held[0]
    return bool(more) and all(text.endswith(".zero_grad()") for text in more) and same_course(pair)


def judged_as_right(pair: Pair) -> bool:
    """Whether both train alike, by losses of the global batch."""
    wholes = all(d.whole for x in (pair.right, pair.spoiled) for _, d in Trial(x).losses())
    return wholes and same_course(pair)


def judged(pair: Pair) -> bool:
    """The judge, which has found nothing, sees all that it needs."""
    return True


@dataclass(frozen=True)
class Rule:
    """Which mutants it is about, why they are right, and what must hold for that."""

    labels: str
    ways: str
    why: str
    holds: Callable[[Pair], bool] = same_course

    def applies(self, said: Described) -> bool:
        """Whether it is about a mutant."""
        return bool(re.fullmatch(self.labels, said.label) and re.fullmatch(self.ways, said.way))


_ELSEWHERE = "other side|too early|too late|one level out|one level in"
_STREAMS = r"ddp\.(seed_ranks|own_streams|same_stream)"
RULES = (
    Rule(_STREAMS, ".*", "nothing random is drawn while the program trains", nothing_drawn),
    Rule(_STREAMS, ".*", "single numbers that decide something are drawn alike on all ranks, as there is one for a batch on one process", single_numbers),
    Rule(_STREAMS, ".*", "every number is drawn from a stream of the same kind, the ranks' own or one of all", streams_alike),
    Rule(r"ddp\.(setup|cleanup)", "one level out",
         "the file is started and not imported, and the runtime does nothing in workers that import it"),
    Rule(r"ddp\.(setup|cleanup|barrier)|\.GradScaler\(\)|\.(update|load_state_dict)\(\)",
         _ELSEWHERE, "what runs between the two places does not need it"),
    Rule(r"ddp\.barrier", f"missing|{_ELSEWHERE}", "the ranks have met since rank 0 wrote what they read", met_before),
    Rule(r"\.unscale_\(\)", "missing|other side", "the program clips gradients with their scale as it did before", clips_as_before),
    Rule(r"\.unscale_\(\)", "one level in", "what clips gets gradients without the scale, and a step takes it off itself", judged),
    Rule(r"ddp\.wrap", _ELSEWHERE, "what runs between the two places does not need it", same_making),
    Rule(r"ddp\.(sum_all|mean_all|gather_all)", _ELSEWHERE,
         "the same numbers are put together: a mean of what all have is itself"),
    Rule(r"ddp\.(from_main|mean_all)|DPM610", "missing|finding missing|one level in|one level out",
         "all ranks have made what is asked of the same numbers", agreed),
    Rule(r"ddp\.from_main", "one level in|one level out", "rank 0 is asked for the same, and what is made of it is the same on all ranks",
         asked_of_rank_0),
    Rule(r"ddp\.any_rank", "missing", "all ranks have made what is asked of the same numbers", agreed),
    Rule(r"ddp\.(sum_all|mean_all)", "missing|part missing", "what every rank has in full needs no putting together, and nobody reads the rest",
         put_together_elsewhere),
    Rule("sampler=", "part missing", "without a seed of its own a sampler takes torch's, which all ranks have alike",
         without_seed),
    Rule("without shuffle=", "missing", "the loader is told not to shuffle"),
    Rule(r"ddp\.weighted_mean", "part missing", "the loss has no such weights, and leaves out the label that weight_of leaves out without a word",
         weights_seen),
    Rule(r"ddp\.batch_rows", "one level in|one level out", "the rows of all samples, of which each by itself is made the same", judged_as_right),
    Rule(r"ddp\.local_batch", "one level in", "a whole number of times the rank's part of a batch size", same_parts),
    Rule(r"ddp\.weighted_mean", "one level out", "a number times the mean is the mean of so many times the loss", linear_in_loss),
    Rule(r"ddp\.worker_number", "one level out", "it adds the same to the sum as to the worker's number", judged),
    Rule(r"ddp\.world_size", "one level in", "a product has its factors in any order", same_products),
    Rule("DPM601", "finding missing", "every rank evaluates the full set, which is exact", judged),
    Rule(r"ddp\.shard", "missing", "every rank evaluates the full set, which is exact", same_course),
    Rule(r"ddp\.shard", "one level out", "what is no loader is read in full, and each rank takes its turns of it",
         judged),
    Rule(r"ddp\.sync_buffers", f"missing|{_ELSEWHERE}",
         "the model keeps no statistics of its own, or rank 0 alone tells what its model gives", statistics_alike),
    Rule(r"\.module", "missing", "without gradients a wrapper's forward sends its buffers at most", exchanges_nothing),
    Rule(r"\.module", "one level out", "the copy of a wrapper holds a copy of its model"),
    Rule(r"\.autocast\(\)", "missing|part missing|a statement less",
         "the numbers are more exact, or those of another half precision"),
    Rule(r"\.autocast\(\)", "a statement more", "what it is entered for beside the loss takes no numbers", clears_gradients),
    Rule(r"\['scaler'\]=|\.load_state_dict\(\)", "missing",
         "the program had no scaler, and a new one finds its scale in a few steps; that it begins again is told", has_no_scaler),
    Rule("Replace", "missing", "the older name of the same", older_name),
    Rule(r"ddp\.accumulate", "missing|a statement (less|more)",
         "gradients are averaged more often than needed, to the same sum; forward alone counts"),
    Rule(r"ddp\.clean_keys", "missing", "the files of this program never had the names of a wrapper", no_old_names),
    Rule(r"\.set_epoch\(\)|ddp\.next_epoch", ".*",
         "the sampler does not shuffle, or is told before each pass all the same"),
    Rule(r"\.set_epoch\(\)", ".*", "no sampler shuffles", never_shuffled),
    Rule(r"\.to\(\)", "missing|one level out", "the wrapper moves what it is given", moved_by_wrapper),
    Rule(r"\.to\(\)", "missing|one level out", "the batch was moved before", moved_before),
    Rule(r"ddp\.(is_main|main_first|main_only)", "one level out|a statement more",
         "rank 0 alone does the same"),
    Rule(r"ddp\.main_first", "a statement more", "what is read is read in turn as well", read_in_turn),
    Rule("raise", "other side", "it stops before it makes ranks"),
    Rule("raise", "other side|too early|too late", "a handler ends the program all the same, and else only tells of the error", only_told),
    Rule("Hoist", "missing", "the same is written in another way"),
    Rule(r"ddp\.distribute|ddp\.whole", ".*", "the loader is the same, or is asked for its length alone"),
)  # fmt: skip


def reason(subject: Subject, right: Execution, said: Described, texts: Texts, *, told: bool = False) -> str:
    """Why a mutant is as right as the right result; '' where no rule shows it. Of one of which the user is
    ``told`` something the judge has found more than nothing.
    """
    rules = [rule for rule in RULES if rule.applies(said) and not (told and rule.holds is judged)]
    if not rules:
        return ""
    program = migration.anew(subject.script.program, texts)
    if isinstance(program, Problem):
        return ""
    pair = Pair(said, before(subject.script.program), right, executed(program))
    if told and _tells_unknown(pair.spoiled):
        return ""
    return next((rule.why for rule in rules if rule.holds(pair)), "")


def right_one(subject: Subject) -> Execution:
    """The right result, executed."""
    program = migration.anew(subject.script.program, subject.texts)
    assert not isinstance(program, Problem), program
    return executed(program)


#: how the stream lies that seeds the workers of a pass: what they draw is compared by itself
_OF_WORKERS = ("judge pass", "stream")


def _course(execution: Execution) -> Counter[object]:
    return Counter(
        (
            e.kind, e.parted is None,
            *((k.rstrip(" 0123456789"), _seen(execution, k, v)) for k, v in sorted(e.values.items()) if k not in _LEFT_OUT and (e.kind, k) != _OF_WORKERS),
        )
        for e in execution.trace.of(*_COURSE)
    )  # fmt: skip


def _seen(execution: Execution, name: str, v: Value) -> object:
    """What is compared of a value: a stream that all ranks have seeded alike is one that none has seeded."""
    return _shape_of(False) if name == "own" and v in (SEEDED, const(False)) else _shape(execution, v)


def _shape_of(plain: bool) -> object:
    return frozenset({repr(const(plain)[0])})


def _steering(pair: Pair) -> bool:
    """Whether both train alike, and nobody parts where the other does not."""
    kinds = ("backward", "step", "schedule", "in place", "load state", "collective", "save by rank 0")
    parted = [
        Counter((e.kind, e.parted is None) for e in x.trace.of(*kinds) if e.kind != "collective")
        for x in (pair.right, pair.spoiled)
    ]
    return parted[0] == parted[1]


def _texts(pair: Pair) -> set[str]:
    """The calls of the right result that the mutant has not."""
    calls = [
        {ast.unparse(n) for p in x.program.parts for n in ast.walk(p.tree) if isinstance(n, ast.Call)}
        for x in (pair.right, pair.spoiled)
    ]
    return calls[0] - calls[1]


def _lost(pair: Pair) -> str:
    return "\n".join(t for t in _texts(pair) if t.startswith("ddp."))


def _draws(execution: Execution) -> bool:
    begun = next((e.number for e in execution.trace.of("judge pass")), 0)
    for event in execution.trace.of("draw", "forward"):
        layers = {o.name for o in execution.objects(event.values.get("module", ()))}
        drops = any(name.startswith(DROPPING) for name in layers)
        of_sample = const(True)[0] in event.values.get("of a sample", ())
        if drops or (event.kind == "draw" and (of_sample or event.number > begun)):
            return True
    return False


def _shape(execution: Execution, v: Value) -> object:
    """How a value lies, without what tells two runs apart."""
    return frozenset(_atom(execution, a) for a in v if not isinstance(a, Unbound))


def _atom(execution: Execution, atom: object) -> object:
    if isinstance(atom, Data):
        # the mean of all ranks is one number, which every rank has
        lying = "uniform" if atom.whole and atom.gradient == "none" else str(atom.placement)
        shared = atom.kind == "text" and lying == "uniform"  # what the ranks have put together, or what all have made
        return "Setting" if shared else (atom.kind, lying, atom.gradient)
    if isinstance(atom, Ref):
        made = execution.heap.objects[atom.object]
        return made.kind, made.name
    if isinstance(atom, Items):
        return tuple(_shape(execution, v) for v in atom.items)
    if isinstance(atom, Const | Foreign):
        return repr(atom)
    return type(atom).__name__
