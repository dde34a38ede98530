"""From what was found in a program to the new texts of its files, checked. Nothing is written here."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dpmigrate.alive import only_alive
from dpmigrate.contract import ALIAS, MODULE, OF_GRADIENTS
from dpmigrate.edit import AddImport, Edit
from dpmigrate.model import File, Finding, Problem, Span, left
from dpmigrate.originals import originals
from dpmigrate.program import Part, Program, placed
from dpmigrate.source import Source

if TYPE_CHECKING:
    from dpmigrate.facts.buffers import Update
    from dpmigrate.facts.script import Script
    from dpmigrate.facts.wraps import Wrap
    from dpmigrate.judge import Defaults, Fault, Judgement
    from dpmigrate.result import Fault as InResult

#: the new text of each file that changes
Texts = Mapping[Part, str]


#: codes of findings that say what a loss does that is none of each sample by itself
_TELL_OF_COUPLING = frozenset({"DPM303", "DPM305", "DPM331"})
#: codes of findings that say which totals are those of rank 0's share
_TELL_OF_TOTALS = frozenset({"DPM602"})
#: the group of rules of which a user may want none
_SIDE_EFFECTS = "DPM5"
#: what to do about a result that is not shown to be right
PROVE = "Prove it by running it (dpmigrate apply --verify), or take it as it is (--unproven)"
#: how a refusal begins of a result that is known to be wrong
WRONG = "the result would be wrong, so nothing was written"
#: how notes begin that say of a loss that it may be no mean over the samples, and what else is not shown
NOT_ESTABLISHED = "Not established"
_OTHER_MODELS = (
    "BatchNorm, where a model that the options choose has it, takes its statistics from a rank's part of the batch, not from the whole batch: other numbers "
    "than on one GPU; --sync-bn keeps them (on GPUs)."
)
BY_DEFAULT = "Shown to be right for the defaults of the options"


class Judged(dict[Part, str]):
    """The new texts of a program, with what the judge says of them; ``bent``, ``draws``, ``made_first`` and ``buffers`` as in ``Shown``."""

    def __init__(self, texts: Texts, judgement: Judgement, shown: Shown) -> None:
        super().__init__(texts)
        self.judgement = judgement
        self.bent = shown.bent
        self.draws = shown.draws
        self.made_first = shown.made_first
        self.buffers = shown.buffers


@dataclass(frozen=True, slots=True)
class Shown(Problem):
    """A result that is not right, and what its execution shows that the rules may not know: wraps of models of which some layer gets no gradient, each with
    the reason; calls of losses that are means over valid targets or weights of classes; sums and means over a rank's part of the batch that a loss is a
    function of, each with the call of the runtime that makes of it what the global batch gives; ``loud``: whether such functions are in the wrong
    place, as in an evaluation that records gradients; ``coupled``: whether a loss may not take each sample by itself;
    ``by_default``: whether what a loss is a function of is that of the options' defaults; ``draws``: tests by a draw of each rank's own, by which a step
    makes one thing or another of its batch; ``waits``: statements before which the ranks must wait for each other, since one of them changes files
    that the others read; ``questions``: calls that ask for files and of which all ranks must have rank 0's answer; ``made_first``: calls that
    give what rank 0 has made and must give to the others, and places of variables that hold it, with their texts; ``buffers``: what gives buffers
    something of a rank's own part of the batches; ``judgement``: what the judge says of it, if it came to be asked.
    """

    wraps: tuple[tuple[Wrap, str], ...] = ()
    over_weights: tuple[ast.Call, ...] = ()
    bent: tuple[tuple[ast.expr, str], ...] = ()
    loud: bool = False
    coupled: bool = False
    by_default: bool = False
    draws: tuple[ast.expr, ...] = ()
    waits: tuple[ast.stmt, ...] = ()
    questions: tuple[ast.expr, ...] = ()
    made_first: tuple[tuple[ast.expr, str], ...] = ()
    buffers: tuple[Update, ...] = ()
    judgement: Judgement | None = None


def files(program: Program, found: Sequence[Finding], texts: Texts | None = None) -> tuple[File, ...]:
    """What is said of each file, and its new text; the script first, then the others of which there is something to say."""
    from dpmigrate.rewrite.compose import span_of

    new = texts or {}
    edited = {program.part(span_of(e)) for f in found for e in f.edits if not isinstance(e, AddImport)}
    said: dict[Part, list[Finding]] = {p: [] for p in reversed(program.parts)}
    for f in found:
        part = program.part(f.span)
        said[part].append(replace(f, span=part.own(f.span)))
    script, *others = said
    shown = [script, *(p for p in reversed(others) if said[p] or p in new or p in edited)]
    return tuple(File(p.source.name, tuple(said[p]), p.source.text, new.get(p), p in edited) for p in shown)


def half_done(script: Script) -> str:
    """What to do about a program whose files were rewritten with another script and that does not start the ranks itself; '' for any other."""
    program, names = script.program, script.names
    if not any(MODULE.encode() in p.source.data for p in program.parts):
        return ""
    used = {program.part(Span.of(n)) for n in names.nodes if isinstance(n, ast.Name | ast.Attribute) and names.dotted(n).startswith(f"{MODULE}.")}
    done = [p for p in program.parts if p in used]
    own = program.parts[-1] in used
    if not done or (own and script.entry is None) or any(True for _ in script.calls(f"{MODULE}.setup", "torch.distributed.init_process_group")):
        return ""
    told = "it was migrated as a module of another script" if own else f"{done[0].source.name} was migrated with another script"
    return f"{told}, and nothing here calls {ALIAS}.setup(): undo that (dpmigrate undo THAT_SCRIPT), and give both scripts at once"


def rewritten(script: Script, found: Sequence[Finding], comments: Sequence[Finding] = ()) -> Judged | Problem:
    """The migrated texts after all self-checks, or what stood in the way."""
    from dpmigrate import judge
    from dpmigrate.result import Migrated, faults

    texts = carried_out(script.program, (*found, *comments))
    if isinstance(texts, Problem):
        return texts
    again = _again(script, texts)
    wrong = again.message if isinstance(again, Problem) else _recheck(again)
    if isinstance(again, Problem) or wrong:
        return Problem(f"the result failed a self-check, please report it: {wrong}")
    wrong_as_text = list(faults(Migrated(script, again, texts)))
    for fault in (f for f in wrong_as_text if f.unless is None):
        return _refused(fault)
    divided = script.settings.batch == "global"
    codes = {f.code for f in left(found)}
    # what is given the numbers of the global batch has to be shown to make a mean of each loss
    told = codes & _TELL_OF_COUPLING if not script.shown_bent or script.settings.unproven else frozenset()
    settled = {
        judge.COUPLED: bool(told), judge.APART: bool(told - {"DPM305"}), judge.ALONE: script.silences(_SIDE_EFFECTS),
        judge.TOTALS: True,  # told in own_totals
    }  # fmt: skip
    # of a loss of which a part is not known, the rest may be no mean either
    shown = [judge.COUPLED] if told == {"DPM305"} else []
    own = script.own_totals() if codes & _TELL_OF_TOTALS else frozenset[str]()
    judged = partial(judge.judged, again.program, divided=divided, settled=[name for name, yes in settled.items() if yes], shown=shown, told=own)
    judgement = judged(judge.before(script.program))
    for fault in (f for f in wrong_as_text if f.unless not in judgement.together):
        return _refused(fault)
    wrong_on_paper = [f for f in judgement.faults if f.established]
    if not wrong_on_paper and judgement.doubts and not script.settings.unproven:
        narrower = _narrowed(script, lambda which: judged(judge.executed(script.program, by_default=which), by_default=which))
        usual = narrower[-1] if narrower and narrower[-1].trains else None
        if usual is None or usual.faults:
            message = (verdict(usual) if usual is not None else "") or verdict(judgement)
            both = (judgement,) if usual is None else (judgement, usual)
            of_both = _shown(script, message, *both)
            alone = _shown(script, message, usual).bent if usual is not None else ()
            return replace(of_both, bent=alone, by_default=True) if alone else of_both
        judgement = _by_default(script, (judgement, *narrower[:-1]), usual)
    if not wrong_on_paper:
        return Judged(texts, judgement, _shown(script, "", judgement))
    unused = [f for f in wrong_on_paper if f.invariant == judge.unused.NAME]
    wraps = tuple((w, f.words) for f in unused for w in _wraps(script, judgement.program, f.node))
    return replace(_shown(script, verdict(judgement), judgement), wraps=wraps)


def _narrowed(script: Script, judged: Callable[[Defaults], Judgement]) -> list[Judgement]:
    """The result for fewer and fewer values of the program's options: the defaults of those that are texts, as the name of a model, and the defaults of all.
    It ends with the first for which it is known to be right or wrong. Empty for a program without options, which has no other defaults to be asked for.
    Where the program does not train with the last of them, as it asks for an option that has no default, they say nothing of it.
    """
    options = list(script.methods("add_argument"))
    tried: list[Judgement] = []
    given = (k.value for c, _ in options for k in c.keywords if k.arg == "default")
    if any(isinstance(d, ast.Constant) and isinstance(d.value, str) for d in given):
        tried.append(found := judged("texts"))
        if found.trains and (not found.faults or any(f.established for f in found.faults)):
            return tried
    return [*tried, judged("all")] if options else []


def _by_default(script: Script, wider: Sequence[Judgement], usual: Judgement) -> Judgement:
    """What is known of a result that is right with the defaults of its options, ``usual``, and of which that is not established with more values of them:
    where these are not followed, what is said of the defaults holds for them alone, and the models that options choose may normalise over the batch.
    """
    every = (*wider, usual)
    said = dict.fromkeys(s for j in every for s in j.assumed)
    for s in list(said):
        if (certain := s.replace(" may tell ", " tells ", 1)) != s and certain in said:
            del said[s]
    if not script.settings.sync_bn and not any("BatchNorm" in s for s in said) and script.normalises:
        said[_OTHER_MODELS] = None
    which = " that are texts" if usual.by_default == "texts" else ""
    note = f"{BY_DEFAULT}{which}; with others it is not established: {doubted(next(j for j in reversed(wider) if j.doubts))}. Prove those that you use."
    return replace(
        wider[0], assumed=(*said, note), own_totals=tuple(dict.fromkeys(s for j in every for s in j.own_totals)), faults=(), means=usual.means,
        drawn=next((j.drawn for j in every if j.drawn), ""), drawn_in_full=next((j.drawn_in_full for j in every if j.drawn_in_full), ""),
        by_default=usual.by_default,
    )  # fmt: skip


def of_other_options(program: Program, found: Sequence[Finding]) -> tuple[str, ...]:
    """Notes on what stands against a program that is right with the defaults of its options, and may be wrong with others."""
    return tuple(f"With other options than the defaults it may be wrong: {program.where(f.span)}: {f.message} ({f.code})." for f in found)


def _refused(fault: InResult) -> Shown:
    return Shown(f"{WRONG}: {fault.place}: {fault.words}", loud=fault.loud)


def verdict(judgement: Judgement) -> str:
    """Why a result is not written; '' where nothing stands against it."""
    for first in (f for f in judgement.faults if f.established):
        return f"{WRONG}: {first.place}: {first.words}"
    return f"the result is not shown to be right, so nothing was written: {doubted(judgement)}. {PROVE}" if judgement.doubts else ""


def standing(first: Judgement, last: Judgement) -> str:
    """Why a result is not written where none that was planned with more edits is right either: of its faults the first that the ``last`` of these has as well,
    in the same place, in the words of the last: what it has mended is no reason. What only the others have is the doing of their edits, and no reason
    either. '' where the last has mended all of them.
    """
    there = {(f.invariant, f.place): f for f in last.faults}
    left = tuple(_of_both(f, there[f.invariant, f.place]) for f in first.faults if (f.invariant, f.place) in there)
    return verdict(replace(first, faults=left))


def _of_both(first: Fault, last: Fault) -> Fault:
    """A fault of two results in the words of the last, unless they are about what its edits have made."""
    from dpmigrate import judge

    return last if first.invariant == judge.APART and "_all of" not in last.words and first.established == last.established else first


def doubted(judgement: Judgement) -> str:
    """What is not established of a result: the first of it, and how much more there is."""
    first, *others = judgement.doubts
    return first + (f", and {len(others)} more" if others else "")


def _wraps(script: Script, result: Program | None, node: ast.AST | None) -> tuple[Wrap, ...]:
    """The wraps of a program that a call of ``ddp.wrap`` in its result may be."""
    if result is None:
        return ()
    found = [n for p in result.parts for n in ast.walk(p.tree) if isinstance(n, ast.Call) and ast.unparse(n.func) == f"{script.ddp}.wrap"]
    found.sort(key=lambda n: (n.lineno, n.col_offset))
    return script.wraps_at(found.index(node), [ast.unparse(n.args[0]) for n in found]) if isinstance(node, ast.Call) and node in found else ()


def _shown(script: Script, message: str, *judgements: Judgement) -> Shown:
    """What the execution of a result shows of losses, by the expressions of the program."""
    from dpmigrate import judge

    there: dict[ast.expr, str] = {}
    calls: dict[ast.expr, None] = {}
    draws: dict[ast.expr, None] = {}
    waits: dict[ast.stmt, None] = {}
    questions: dict[ast.expr, None] = {}
    made: dict[tuple[ast.expr, str], None] = {}
    buffers: dict[tuple[ast.stmt, str], Update] = {}
    for j in judgements:
        if j.program is None:  # the execution ended early
            continue
        bent = {b.node: b.call for b in j.bent}
        wanted = {*bent, *j.over_weights, *j.draws, *j.questions, *(n for n, _ in j.made_first)}
        found = originals(script.program, script.names.nodes, j.program, wanted, script.ddp)
        there |= {found[n]: call for n, call in bent.items() if n in found}
        calls |= {found[n]: None for n in j.over_weights if n in found}
        draws |= {found[n]: None for n in j.draws if n in found}
        questions |= {found[n]: None for n in j.questions if n in found}
        made |= {(found[n], text): None for n, text in j.made_first if n in found}
        waits |= dict.fromkeys(_statements(script, j.program, j.waits) if j.waits else ())
        buffers |= {(b.node, b.name): b for b in _buffers(script.program, j)}
    loud = any(f.of_gradients or _of_gradients(f.node, script.ddp) for j in judgements for f in j.faults)
    coupled = any(f.invariant in (judge.COUPLED, judge.APART) for j in judgements for f in j.faults)
    return Shown(
        message, loud=loud, coupled=coupled, over_weights=tuple(n for n in calls if isinstance(n, ast.Call)), bent=tuple(there.items()),
        draws=tuple(draws), waits=tuple(waits), questions=tuple(questions), made_first=tuple(made),
        buffers=tuple(buffers.values()), judgement=judgements[0],
    )  # fmt: skip


def _statements(script: Script, result: Program, nodes: Iterable[ast.AST]) -> Iterator[ast.stmt]:
    """The statements of the program that those of a result were: whole, with the tests and loops in whose heads the nodes stand."""
    lines = _by_place(script.program)
    turns = [n for p in result.parts for n in ast.walk(p.tree) if isinstance(n, ast.With) and _in_turn(n)]
    for node in nodes:
        line = getattr(node, "lineno", 0)
        # ranks that take turns wait for each other before that
        line = next((t.body[0].lineno for t in turns if t.body[0].lineno <= line <= (t.end_lineno or 0)), line)
        found = lines.get(result.place(line))
        while isinstance(found, ast.If) and isinstance(above := script.names.parent[found], ast.If) and above.orelse == [found]:
            found = above  # it may be an elif
        if found is not None:
            yield script.outside_of_loops(found)


def _by_place(program: Program) -> dict[str, ast.stmt]:
    """The statements of a program by the places of their heads."""
    lines: dict[str, ast.stmt] = {}
    for n in (n for p in program.parts for n in ast.walk(p.tree) if isinstance(n, ast.stmt)):
        last = n.end_lineno or n.lineno
        inner = [s.lineno for name in ("body", "orelse", "handlers", "finalbody") for s in getattr(n, name, ())]
        for line in range(n.lineno, min([last, *(i - 1 for i in inner)]) + 1):
            lines.setdefault(program.place(line), n)
    return lines


def _buffers(program: Program, judgement: Judgement) -> Iterator[Update]:
    """What gives buffers something of a rank's own, by the statements and classes of the program."""
    from dpmigrate.facts.buffers import Update

    result = judgement.program
    if result is None or not judgement.buffers:
        return
    lines = _by_place(program)
    for b in judgement.buffers:
        nodes = [stmt for n in b.nodes if (stmt := lines.get(result.place(n.lineno))) is not None]
        cls = lines.get(result.place(b.cls.lineno)) if b.cls is not None else None
        if nodes:
            yield Update(nodes[0], cls if isinstance(cls, ast.ClassDef) else None, b.name, not b.wrapped, own=frozenset(nodes))


def _in_turn(block: ast.With) -> bool:
    """``with ddp.main_first():``"""
    called = (i.context_expr.func for i in block.items if isinstance(i.context_expr, ast.Call))
    return any(isinstance(c, ast.Attribute) and c.attr == "main_first" for c in called)


def _of_gradients(node: ast.AST | None, ddp: str) -> bool:
    """Whether it is a call of the runtime that exchanges numbers where gradients are recorded."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) in {f"{ddp}.{name}" for name in (*OF_GRADIENTS, "sum_term")}


def carried_out(program: Program, found: Sequence[Finding], *, only_comments: bool = False) -> Texts | Problem:
    """The new text of every file that has edits, each checked by itself."""
    texts: dict[Part, str] = {}
    for part, own in _by_file(program, found).items():
        text = _in_one_file(part.source.text, own, only_comments=only_comments)
        if isinstance(text, Problem):
            several = len(program.parts) > 1
            return replace(text, message=f"{part.source.name}: {text.message}") if several else text
        texts[part] = text
    return texts


def _by_file(program: Program, found: Sequence[Finding]) -> dict[Part, list[Finding]]:
    """The findings with the edits that each file gets; an import goes to every file whose new code uses what it brings."""
    from dpmigrate.rewrite.compose import span_of

    out: dict[Part, list[Finding]] = {}
    imports = [(f, e) for f in found for e in f.edits if isinstance(e, AddImport)]
    for f in found:
        mine: dict[Part, list[Edit]] = {}
        for edit in f.edits:
            if not isinstance(edit, AddImport):
                part = program.part(span_of(edit))
                mine.setdefault(part, []).append(_moved(edit, part))
        for part, edits in mine.items():
            out.setdefault(part, []).append(replace(f, edits=tuple(edits)))
    for f, wanted in imports:
        name = wanted.code.split()[-1]
        users = [p for p, own in out.items() if any(_uses(e, name) for o in own for e in o.edits)]
        for part in users or ([program.parts[-1]] if f.edits == (wanted,) else []):
            out.setdefault(part, []).append(replace(f, edits=(wanted,)))
    return out


def _moved(edit: Edit, part: Part) -> Edit:
    """The edit with its spans as the file alone counts."""
    spans: dict[str, Any] = {f.name: part.own(value) for f in fields(edit) if isinstance(value := getattr(edit, f.name), Span)}
    return replace(edit, **spans)


def _uses(edit: Edit, name: str) -> bool:
    """Whether the edit brings in code in which the name stands."""
    code = [value for f in fields(edit) if isinstance(value := getattr(edit, f.name), str)]
    return any(re.search(rf"\b{re.escape(name)}\b", text) for text in code)


def _in_one_file(text: str, found: Sequence[Finding], *, only_comments: bool) -> str | Problem:
    from dpmigrate.rewrite.apply import Refused, apply
    from dpmigrate.rewrite.compose import Conflict, compose
    from dpmigrate.rewrite.verify import verify

    try:
        plan = compose(found, text)
        after = apply(text, plan)
    except Conflict as e:
        return Problem(f"two rules disagree, please report it: {e}")
    except Refused as e:
        where = f"line {e.span.line}: " if e.span is not None else ""
        return Problem(f"{where}{e.message}")
    wrong = verify(text, after, plan)
    if not wrong and only_comments and ast.dump(ast.parse(text)) != ast.dump(ast.parse(after)):
        wrong = ("the comments changed the program",)
    return Problem(f"the result failed a self-check, please report it: {wrong[0]}") if wrong else after


def _again(script: Script, texts: Texts) -> Script | Problem:
    """The facts of the result, as a second run finds them."""
    from dpmigrate.facts.script import Script

    again = anew(script.program, texts)
    return again if isinstance(again, Problem) else Script.running(again, script.settings)


def _recheck(again: Script) -> str:
    """What is wrong with the result as a program, which only a fault of the tool can have made; '' if nothing is."""
    from dpmigrate.rewrite.guards import collectives_under_guards

    program = again.program
    files = [(p.tree, _own_names(program, i)) for i, p in enumerate(program.parts)]
    for sentence in collectives_under_guards(files, lambda line: program.where(Span(line, 0, line, 0))):
        return sentence
    return "" if again.exempt else "a second run would not recognise the result as migrated"


def _own_names(program: Program, index: int) -> Mapping[str, str]:
    """The names that a file imports from others of the program, each with its name there."""
    own: dict[str, str] = {}
    for node in ast.walk(program.parts[index].tree):
        if isinstance(node, ast.Import):
            own |= {a.asname or a.name.partition(".")[0]: a.name for a in node.names if (index, a.name) in program.links}
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            inside = f"{base}." if node.module else base
            own |= {a.asname or a.name: a.name for a in node.names if {(index, base), (index, inside + a.name)} & program.links.keys()}
    return own


def anew(program: Program, texts: Texts) -> Program | Problem:
    """The program with the new texts in their places, as a second run reads it: what nothing can run is left as it was, and is no part of it."""
    parts, first = [], 0
    for part in program.parts:
        source = part.source.rewritten(texts.get(part, part.source.text))
        if isinstance(source, Problem):
            return source
        changed = part.source.text if part in texts else None
        parts.append(placed(source, first, main=part is program.parts[-1], word=part.word, former=changed))
        first = parts[-1].end
    return only_alive(Program(tuple(parts), program.links, computed=program.computed))


def encoded(texts: Texts) -> list[tuple[Source, bytes]] | Problem:
    """The bytes of the new texts, each in its file's encoding."""
    out = []
    for part, text in texts.items():
        data = part.source.encode(text)
        if isinstance(data, Problem):
            return replace(data, message=f"{part.source.name}: {data.message}")
        out.append((part.source, data))
    return out
