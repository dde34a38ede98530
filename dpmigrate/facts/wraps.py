"""Where each model is, or will be, wrapped for data parallelism.

Three cases. A DataParallel call that always runs becomes the wrap in its place. One under a test (``if cuda``, ``if n_gpu > 1``)
is taken out and the wrap follows the ``if``: under DDP a model must be wrapped on every device. A model that no call wraps
gets one after the last statement of its set-up that needs the bare model (moved, initialised, loaded), so that loading comes
first and later code meets the wrapper. A wrap of the first two kinds also follows a change of the model's type that comes after it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, takewhile

from dpmigrate.facts.after_training import follows_training, reaches_loop
from dpmigrate.facts.casts import casts
from dpmigrate.facts.definitions import SAME
from dpmigrate.facts.library import GROWS, MUTATORS
from dpmigrate.facts.moves import moved, unknown_move
from dpmigrate.facts.names import FunctionNode, Names, of_self, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.objects import leaves, wrap_argument
from dpmigrate.facts.passes import Pass
from dpmigrate.facts.roles import Asked, Roles
from dpmigrate.facts.taken_out import maker
from dpmigrate.facts.told import PLACE, Told
from dpmigrate.facts.values import NONE, Key, Val, Vals, Values, WrapSite
from dpmigrate.facts.without import branches, without
from dpmigrate.model import is_main_guard

#: what may be done to a model before or after the wrap alike
_NEUTRAL = frozenset({"parameters", "train", "eval", "zero_grad", "training"})


_HELD = "let the class that holds models and optimizers be no nn.Module, or train the whole of it by one optimizer and call it as model(x)"


@dataclass(frozen=True, eq=False, slots=True)
class Wrap:
    """One wrap of the migrated program.

    ``how``: ``call`` (a DataParallel call replaced where it stands), ``value`` (the assigned value of ``stmt`` is wrapped),
    ``after`` / ``before`` (a new statement beside ``stmt``), ``part`` (an element of a container is wrapped where it is made: ``{"g": Net()}``).
    ``own``: a model that trains itself in a method gets a wrapper there, in a variable ``name``, which the method calls in its place; ``again`` and again.
    ``target`` is the source text of the variable, or of the element.
    """

    how: str
    stmt: ast.stmt
    target: str
    node: ast.AST
    key: Key | None = None
    name: str = ""
    again: bool = False

    @property
    def made(self) -> Val:
        """The wrapper; several variables may be wrapped after one statement."""
        return Val("wrapped", self.node) if self.how in ("call", "part") else Val("wrapped", self.stmt, part=self.key)


@dataclass(frozen=True, eq=False, slots=True)
class WrapPlan:
    """Every wrap, the DataParallel calls that go, and what stands in the way."""

    wraps: tuple[Wrap, ...]
    removed: frozenset[ast.Call]
    problems: tuple[tuple[ast.AST, Told], ...]
    own: Mapping[ast.expr, Wrap] = field(default_factory=dict)


class Wrapping:
    """Finds the wraps of one module; ``values`` and ``roles`` afterwards describe the migrated program."""

    def __init__(self, names: Names, asked: Asked | None = None) -> None:
        self.names = names
        self.asked = asked
        self.values = Values(names)
        self.roles = Roles(names, self.values, asked)
        self.sites: list[WrapSite] = []
        self.wraps: list[Wrap] = []
        self.removed: set[ast.Call] = set()
        self.problems: list[tuple[ast.AST, Told]] = []
        self._known = (0, 0)
        self._parts: set[Key] = set()  # variables of elements that are wrapped
        self._own: dict[ast.expr, Wrap] = {}  # reads of ``self`` in a model's own training, each with the wrap that stands for it
        self._kept: set[ast.AST] = set()  # arguments by which an object gets a model that it trains with
        self._existing()
        self._refresh()
        self._new()
        self._refresh()
        if self.wraps or self.removed:
            self._verify()

    def plan(self) -> WrapPlan:
        return WrapPlan(tuple(self.wraps), frozenset(self.removed), tuple(self.problems), self._own)

    def _refresh(self) -> None:
        """Look again, if something has been found that changes what variables mean."""
        in_place = frozenset(w.node for w in self.wraps if w.how == "part" and isinstance(w.node, ast.expr))
        known = len(self.sites) + len(in_place) + len(self._own), len(self.removed)
        if known == self._known:
            return
        self._known = known
        seen_as = {node: w.made for node, w in self._own.items()}
        self.values = Values(self.names, self.sites, frozenset(self.removed), in_place, seen_as)
        self.roles = Roles(self.names, self.values, self.asked)

    # ------------------------------------------------------------------ DataParallel calls
    def _existing(self) -> None:
        calls = [c for c in self.roles.calls if self.values.is_wrap(c)]
        hoisted: dict[tuple[ast.stmt, str], None] = {}
        for call in calls:
            arg = wrap_argument(call)
            if arg is None:
                self._problem(call, "DataParallel is called without a module")
                continue
            if not self._holds_model(arg) or self._part_of_model(call):
                self.removed.add(call)  # a loss, or a part of a model: the whole model is wrapped instead
                continue
            stmt = self.names.statement(call)
            branch = self._outermost_if(stmt)
            target = stmt.targets[0] if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 else None
            if (branch is None or self._alone(target)) and not self._one_of_two(call):
                self.wraps.append(Wrap("call", stmt, ast.unparse(target) if target else "", call))
            elif target is not None and isinstance(target, ast.Name | ast.Attribute):
                self.removed.add(call)
                if branch is not None and self._returned_within(branch, target):
                    continue  # whoever is given the model wraps it
                hoisted[(branch or stmt, ast.unparse(target))] = None
                if (branch or stmt, ast.unparse(target)) not in {(w.stmt, w.target) for w in self.wraps}:
                    key = next(self.values.keys(target), None)
                    self.wraps.append(Wrap("after", branch or stmt, ast.unparse(target), target, key))
            else:
                self._problem(call, "this DataParallel wrap is made under a condition and not bound to a name; bind it to a variable first")
        self.wraps = [self._after_cast(w) for w in self.wraps]
        for w in self.wraps:
            if w.how == "after" and w.key is not None:
                self._site(w.key, w.stmt)

    def _returned_within(self, branch: ast.stmt, target: ast.Name | ast.Attribute) -> bool:
        """Whether a function gives the model to its caller in the branch, where a wrap behind the branch does not come."""
        keys = set(self.values.keys(target))
        if any(isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.startswith("module.") for n in self.names.nodes):
            return False  # which names the parameters have there may decide something
        returned = [n for n in walk(branch) if isinstance(n, ast.Return) and self.names.function(n) is self.names.function(branch)]
        return any(keys & set(self.values.keys(n)) for r in returned for n in walk(r) if isinstance(n, ast.Name | ast.Attribute))

    def _alone(self, target: ast.expr | None) -> bool:
        """Whether a variable has a value only where this statement gives it one: a model that another branch does without."""
        if not isinstance(target, ast.Name):
            return False
        return len(list(self.names.bindings(self.names.scope_of[target], target.id))) == 1

    def _after_cast(self, w: Wrap) -> Wrap:
        """The wrap after the last change of the model's type before training: the parameters have to be as DDP will see them. One that is lifted out of a
        branch follows what freezes the model, and then a move, too.
        """
        target = w.stmt.targets[0] if isinstance(w.stmt, ast.Assign) and len(w.stmt.targets) == 1 else w.node
        if not isinstance(target, ast.Name | ast.Attribute):
            return w
        keys = frozenset(self.values.keys(target))
        models = frozenset(x for key in keys for v in self.values.vars.get(key, ()) for x in self.values.inner(v))
        changes: list[ast.AST] = [c.call for c in casts(self.roles) if models & {x for v in self.roles.model_vals(c.model) for x in self.values.inner(v)}]
        block = self.names.block(w.stmt)
        between = list(takewhile(lambda stmt: not reaches_loop(self.roles, stmt), block[block.index(w.stmt) + 1 :]))
        frozen = [n for stmt in between for n in walk(stmt) if self._freezes(n, keys)] if w.how == "after" else []
        if frozen:
            receivers = ((c, r) for stmt in between for c in walk(stmt) if (r := moved(self.roles, c)) is not None)
            changes += [*frozen, *(c for c, r in receivers if keys & set(self.values.keys(r)))]
        while between and not any(self.names.is_inside(c, between[-1]) for c in changes):
            between.pop()
        if not between or any(self._asks_wrapper(n, keys) for stmt in between for n in walk(stmt)):
            return w
        if isinstance(w.node, ast.Call):
            self.removed.add(w.node)
        return Wrap("after", between[-1], ast.unparse(target), w.node, min(keys, key=lambda key: (key[0], key[2]), default=None))

    def _freezes(self, node: ast.AST, keys: frozenset[Key]) -> bool:
        """``model.requires_grad_(False)``"""
        func = node.func if isinstance(node, ast.Call) else None
        return isinstance(func, ast.Attribute) and func.attr == "requires_grad_" and bool(keys & set(self.values.keys(func.value)))

    def _asks_wrapper(self, node: ast.AST, keys: frozenset[Key]) -> bool:
        """``model.module``, which a model that is not wrapped yet has not."""
        return isinstance(node, ast.Attribute) and node.attr == "module" and bool(keys & set(self.values.keys(node.value)))

    def _one_of_two(self, call: ast.Call) -> bool:
        """``DataParallel(net).cuda() if several else net``"""
        node: ast.AST = call
        while isinstance(above := self.names.parent[node], ast.Attribute) and above.attr in SAME:
            node = self.names.parent[above]
        return isinstance(above, ast.IfExp)

    def _holds_model(self, arg: ast.expr) -> bool:
        vals = self.values.eval(arg)
        return bool(vals & self.roles.models) or (not vals and not self.roles.models)

    def _part_of_model(self, call: ast.Call) -> bool:
        stmt = self.names.statement(call)
        target = stmt.targets[0] if isinstance(stmt, ast.Assign) else None
        return isinstance(target, ast.Attribute) and bool(self.roles.model_vals(target.value))

    def _outermost_if(self, stmt: ast.stmt) -> ast.stmt | None:
        """The outermost ``if`` (or the ``try`` round one) that the wrap is lifted out of; not one that holds the training, too: ``if not test_only:``."""
        found: ast.stmt | None = None
        for a in self.names.ancestors(stmt):
            if isinstance(a, FunctionNode | ast.ClassDef | ast.For | ast.While) or (isinstance(a, ast.If) and reaches_loop(self.roles, a)):
                break
            if (isinstance(a, ast.If) and not is_main_guard(a)) or (isinstance(a, ast.Try) and found is not None):
                found = a
        return found

    def _site(self, key: Key, stmt: ast.stmt, *, precedes: bool = False) -> None:
        """A wrap of what the variable holds."""
        held = frozenset(x for v in self.values.vars.get(key, ()) for x in self.values.inner(v))
        self.sites.append(WrapSite(stmt, stmt, key, Val("wrapped", stmt, part=key), held, precedes=precedes))

    def _verify(self) -> None:
        """With all wraps in place every training pass must go through one."""
        named = {id(n) for n, _ in self.problems}
        for p in self.roles.training_passes:
            if self.roles.wrapped(p.model) is not True and id(p.call) not in named:
                later = self._other(p.model)
                self._problem(p.call, f"{ast.unparse(p.model)} would be trained without the wrapper here{later.words}", later.node)
        for w in self.wraps:
            if (move := unknown_move(self.roles, w)) is not None:
                self._problem(w.stmt, f"{w.target} is moved {move} only after its wrap, and nothing here says which device that is")
        own = {w.key for w in self.wraps if w.again}  # the runtime keeps one wrapper for all of them
        for one, other in combinations(self.sites, 2):
            if one.key == other.key or not one.inner & other.inner or self.values.order.apart(one.stmt, other.stmt) or {one.key, other.key} <= own:
                continue
            if not self._handed_on(one, other) and not self._handed_on(other, one) and not self._made_apart(one, other):
                first, second = (other, one) if other.key[2] == "()" else (one, other)
                words = f"{second.key[2]} holds a model that another variable, {first.key[2]} ({PLACE}), holds too: it would be wrapped twice"
                if first.key[2] == "()":
                    words = f"{second.key[2]} is trained here, and trains itself as well ({PLACE}): it would be wrapped twice"
                self._problem(second.stmt, words, first.stmt)

    def _handed_on(self, one: WrapSite, other: WrapSite) -> bool:
        """Whether the one's variable is given the other's wrapper: a model that is wrapped already is left as it is."""
        return one.wrapped != other.wrapped and other.wrapped in self.values.vars.get(one.key, ())

    def _made_apart(self, one: WrapSite, other: WrapSite) -> bool:
        """Whether two calls of one function made the models, which it makes anew each time: ``a = build(); b = build()``."""
        models = one.inner & other.inner
        given = [[*self.roles.written(site.key), *self._unpacked(site.key)] for site in (one, other)]
        calls = [[c for e in values for c in self._factories(e, models)] for values in given]
        return bool(calls[0] and calls[1]) and not set(calls[0]) & set(calls[1])

    def _unpacked(self, key: Key) -> Iterator[ast.expr]:
        """The calls that give the variable a part of their result: ``model, optimizer = build()``"""
        values = (w.value for w in self.roles.writes(key) if isinstance(w, ast.Assign))
        yield from (value for value in values if isinstance(value, ast.Call))

    def _factories(self, given: ast.expr, models: Vals) -> Iterator[ast.Call]:
        """The calls in the expression of functions that make the models in variables of their own, and keep none of them."""
        for call in (n for n in walk(given) if isinstance(n, ast.Call)):
            functions = self.roles.all_entered(call)
            remembers = any(f.decorator_list for f in functions)
            if not remembers and all(v.kind != "ext" and self.names.function(v.node) in functions and self._is_local(v.node) for v in models):
                yield call

    def _is_local(self, made: ast.AST) -> bool:
        """Whether what is made is handed back at once, or stands in variables of the function that puts it nowhere else."""
        stmt = self.names.statement(made)
        if isinstance(stmt, ast.Return):
            return True
        scope = self.names.scope_of[stmt]
        targets = stmt.targets if isinstance(stmt, ast.Assign) else []
        if not targets or not all(isinstance(t, ast.Name) and self.names.owner(scope, t.id) is scope for t in targets):
            return False
        uses = [u for t in targets if isinstance(t, ast.Name) for u in self.names.uses(scope, t.id)]
        return not any(self._keeps(self.names.statement(u)) for u in uses)

    def _keeps(self, stmt: ast.stmt) -> bool:
        """``cache[name] = model``, ``models.append(model)``"""
        if isinstance(stmt, ast.Assign):
            return not all(isinstance(t, ast.Name) for target in stmt.targets for t, _ in leaves(target, ()))
        call = stmt.value if isinstance(stmt, ast.Expr) else None
        return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in MUTATORS

    def _problem(self, node: ast.AST, words: str, place: ast.AST | None = None, advice: str = "") -> None:
        self.problems.append((node, Told(words, place, advice)))

    def _other(self, func: ast.expr) -> Told:
        """Where a name is given another value after its use, which may be what stands in the way."""
        if not isinstance(func, ast.Name):
            return Told("")
        names = self.roles.names
        made = [b.value for b in names.bindings(names.scope_of[func], func.id) if b.how == "assign" and isinstance(b.value, ast.expr)]
        later = [v for v in made if v.lineno > func.lineno and not any(isinstance(n, ast.Name) and n.id == func.id for n in walk(v))]
        if not later:
            return Told("")
        return Told(f": {func.id} is given another value in {PLACE}, which should have a name of its own", min(later, key=position))

    # ------------------------------------------------------------------ models that nothing wraps
    def _new(self) -> None:
        roles = self.roles
        done: set[object] = set()
        trained = {key for p in roles.training_passes if roles.wrapped(p.model) is False for key, _ in roles.roots(p.model)}
        for p in roles.training_passes:
            state = roles.wrapped(p.model)
            if state is True:
                continue
            if state is None:
                self._problem(p.call, f"{ast.unparse(p.model)} may be the wrapped or the bare model here")
                continue
            if (method := self._trains_itself(p.model)) is not None:
                self._in_own_training(p, method)
                continue
            if self._held_by_own(p):
                held = f"{ast.unparse(p.model)}, which an optimizer trains, is called by a module that holds it"
                self._problem(p.call, f"{held}: where to wrap is not known", advice=_HELD)
                continue
            if (place := self._moved_where_it_trains(p)) is not None:
                key, block, last = place
                if key not in done:
                    done.add(key)
                    self._after_move(key, block, last)
                continue
            model = self._aliased(p.model)
            roots = self._before_objects(roles.roots(maker(roles, model) or model), trained)
            given = self._made_in_call(p.model) if not roots else None
            if given is not None and (key := next(self.values.keys(given))) not in done:
                done.add(key)
                self._before(key, given, self._function_body(given))
            elif not roots and given is None and not self._wrap_parts(p.model):
                self._problem(p.call, f"the model that {ast.unparse(p.model)} means cannot be traced to one variable")
            for key, node in sorted(roots, key=lambda root: position(root[1])):
                if key not in done:
                    done.add(key)
                    self._place(key, node)

    def _before_objects(self, roots: set[tuple[Key, ast.AST]], trained: set[Key]) -> set[tuple[Key, ast.AST]]:
        """The variables with those in place of attributes that are given nothing but what is trained under another name as well: ``Attack(model)``, which keeps
        it, beside ``train(model)``. Both take the wrapper from the variable that had the model first.
        """
        out: set[tuple[Key, ast.AST]] = set()
        for key, node in roots:
            values = [self.roles.same(v) for v in self.roles.written(key)] if key[0] == "a" else []
            plain = bool(values) and len(values) == len(self.roles.writes(key)) and all(isinstance(v, ast.Name) for v in values)
            above = {root for v in values if v is not None for root in self.roles.roots(v)} if plain else set()
            elsewhere = bool(above) and all(k in trained and k != key for k, _ in above)
            out |= above if elsewhere else {(key, node)}
            self._kept |= {n for _, n in above} if elsewhere else set()
        return out

    def _aliased(self, node: ast.expr) -> ast.expr:
        """The variable whose model a local name is given: ``model = self.model.train()``, or ``model = self.model`` in each epoch, where a wrap would be
        made anew each time.
        """
        owner = self.names.owner(self.names.scope_of[node], node.id) if isinstance(node, ast.Name) else None
        bound = owner.bindings.get(node.id, []) if owner is not None and isinstance(node, ast.Name) else []
        given = bound[0].value if len(bound) == 1 and bound[0].how == "assign" and not bound[0].path else None
        found = self.roles.same(given, ("train", "eval"))
        if not isinstance(found, ast.Name | ast.Attribute):
            return node
        again = found is not given or bool(self.roles.epoch_loop(found))
        return self._aliased(found) if again and any(True for _ in self.values.keys(found)) else node

    def _made_in_call(self, node: ast.expr) -> ast.Name | None:
        """The parameter for which every call of its function makes a model: ``train(Net(), loader)``; None where it is another thing."""
        if not isinstance(node, ast.Name) or self.names.owner(scope := self.names.scope_of[node], node.id) is not scope:
            return None
        function = scope.node
        if not isinstance(function, FunctionNode) or any(b.how != "param" for b in scope.bindings[node.id]):
            return None
        given = [self.roles.passed(c, function, node.id) for c in self.values.callers.get(function, [])]
        made = [a for a in given if isinstance(a, ast.Call) and self._makes_anew(a)]
        return node if made and len(made) == len(given) else None

    def _makes_anew(self, call: ast.Call) -> bool:
        """Whether each call makes another model, by itself or in a function that keeps none of them: one that is kept would be wrapped twice."""
        models = frozenset(x for v in self.values.eval(call) for x in self.values.inner(v)) & self.roles.models
        return bool(models) and (all(self.names.is_inside(v.node, call) for v in models) or any(True for _ in self._factories(call, models)))

    def _wrap_parts(self, node: ast.expr) -> bool:
        """Wrap the elements of a container that the expression may mean, ``nets["g"](x)``, each where it is made; whether that can be done."""
        made = sorted((v.node for v in self.roles.model_vals(node)), key=position)
        found = [self._part(m) or self._variable(m) for m in made]
        places = [p for p in found if p is not None]
        if not places or len(places) < len(made):
            return False
        for place in places:
            if isinstance(place, ast.Call):
                if not any(w.node is place for w in self.wraps):
                    self.wraps.append(Wrap("part", self.names.statement(place), ast.unparse(place), place))
                continue
            key = next(self.values.keys(place))
            if key in self._parts:  # the expression is this variable
                return False
            if not any(w.key == key for w in self.wraps):
                self._parts.add(key)
                self._place(key, place)
        return True

    def _variable(self, made: ast.AST) -> ast.Name | ast.Attribute | None:
        """The variable that has the model before a container gets it: ``g = Net()``, ``nets = {"g": g}``."""
        stmt = self.names.statement(made)
        target = stmt.targets[0] if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and self.roles.same(stmt.value) is made else None
        return target if isinstance(target, ast.Name | ast.Attribute) and any(True for _ in self.values.keys(target)) else None

    def _part(self, made: ast.AST) -> ast.Call | None:
        """The element of a container as which a call makes a model, with the moves that are chained to it; None where that goes anywhere else."""
        node = made if isinstance(made, ast.Call) else None
        while node is not None:
            above = self.names.parent[node]
            chained = self.names.parent[above] if isinstance(above, ast.Attribute) and above.attr in SAME else None
            if not isinstance(chained, ast.Call):
                return node if self._is_element(node, above) else None
            node = chained
        return None

    def _is_element(self, node: ast.Call, above: ast.AST) -> bool:
        """``{"g": Net()}``, ``[Net() for _ in range(3)]``, ``nets["g"] = Net()``, ``nets.append(Net())``; not those of a list that a library gets."""
        if isinstance(above, ast.Assign):
            return all(isinstance(t, ast.Subscript) and self.values.is_container(t.value) for t in above.targets)
        called = self.names.parent[above] if isinstance(above, ast.keyword) else above
        if isinstance(called, ast.Call) and self._is_field(node):
            return True
        if isinstance(above, ast.Call):
            return isinstance(above.func, ast.Attribute) and above.func.attr in GROWS and node in above.args and self.values.is_container(above.func.value)
        if isinstance(above, ast.Dict | ast.DictComp):
            held = node in above.values if isinstance(above, ast.Dict) else node is above.value
        else:
            held = isinstance(above, ast.List | ast.Tuple) or (isinstance(above, ast.ListComp) and node is above.elt)
        place = self.names.parent[above]
        place = self.names.parent[place] if isinstance(place, ast.keyword) else place
        if isinstance(place, ast.Call):
            return held and any(self.values.targets(place))
        return held and isinstance(place, ast.Assign | ast.AnnAssign | ast.Return | ast.Dict | ast.List)

    def _is_field(self, node: ast.expr) -> bool:
        """``Run(Net(), loader)``, of a data class and the like that gives the attribute no other value."""
        return any(node in given and not self.roles.writes(key) for key, given in self.values.fields.items())

    def _made_anew(self, turn: list[ast.stmt]) -> bool:
        """Whether a wrap in the body of a loop over models would be made anew each time: the loop stands in another one, as in that over batches."""
        loop = self.names.parent[turn[0]]
        around = takewhile(lambda a: not isinstance(a, FunctionNode), self.names.ancestors(loop))
        return any(isinstance(a, ast.For | ast.While) for a in around)

    def _place(self, key: Key, node: ast.AST) -> None:
        writes = [w for w in self.roles.writes(key) if self._gives_model(w) and not reaches_loop(self.roles, w) and not self._gives_again(w, key)]
        later = [w for w in writes if follows_training(self.roles, w)]
        writes = [w for w in writes if w not in later] if len(later) < len(writes) else writes
        if not writes:
            turn = self._turn(node)
            body = turn or self._function_body(node)
            if not (isinstance(node, ast.expr) and (not body or (turn and self._made_anew(turn))) and self._wrap_parts(node)):
                self._before(key, node, body)
            return
        made = list(self._alternatives(key, node, writes))
        for block, last, given in made:
            others = [w for w in later if w not in given and not self._is_moved(w, key)]
            self._after_set_up(key, block, last, given, others, alone=len(made) == 1)

    def _before(self, key: Key, node: ast.AST, body: list[ast.stmt]) -> None:
        """The wrap at the top of statements that have the model from elsewhere."""
        if not body:
            self._problem(node, f"{ast.unparse(node)} is not given a model in this program")
            return
        self.wraps.append(Wrap("before", body[0], ast.unparse(node), node, key))
        self._site(key, body[0], precedes=True)

    def _after_set_up(self, key: Key, block: list[ast.stmt], last: int, writes: list[ast.stmt], later: list[ast.stmt], *, alone: bool) -> None:
        """The wrap after the last statement of the block that needs the bare model which the ``writes`` give, the last of them in ``block[last]``;
        ``later`` are those that give the variable others after training.
        """
        site = self._last_of_set_up(key, block, last)
        target = self.roles.leaf(writes[0], key)
        text = ast.unparse(target)
        stmt = block[site]
        simple = site == last and stmt is writes[-1] and isinstance(stmt, ast.Assign) and len(stmt.targets) == 1
        whole = simple and isinstance(stmt, ast.Assign) and stmt.targets[0] is self.roles.leaf(stmt, key)
        self.wraps.append(Wrap("value" if whole else "after", stmt, text, target, key))
        if alone and not later:
            self._site(key, stmt)
            return
        held = frozenset(x for w in writes for v in self.values.given(w, key) for x in self.values.inner(v))
        others = tuple((w, self.values.given(w, key) - held) for w in later)
        self.sites.append(WrapSite(stmt, stmt, key, Val("wrapped", stmt, part=key), held, None if alone else writes[0], later=others))

    def _last_of_set_up(self, key: Key, block: list[ast.stmt], last: int) -> int:
        """The index of the last statement before training that needs the bare model, from the one that gives it on."""
        train = next((i for i, s in enumerate(block) if i > last and (reaches_loop(self.roles, s) or self._keeps_model(s))), len(block))
        needs = (i for i in range(last + 1, train) if any(self._needs_bare(n, key) or _sets_requires_grad(n) for n in walk(block[i])))
        return max(needs, default=last)

    def _keeps_model(self, stmt: ast.stmt) -> bool:
        """Whether an object that trains with the model is given it here, and has to be given the wrapper."""
        return any(self.names.is_inside(n, stmt) for n in self._kept)

    # ------------------------------------------------------------------ a model that trains itself
    def _trains_itself(self, node: ast.expr) -> FunctionNode | None:
        """The method in which the expression is the model that trains itself: ``self`` in ``fit``, also by another name, ``model = self.train()``."""
        method = self.values.defs.within_own_loop(node)
        if method is None or not isinstance(node, ast.Name):
            return None
        bound = [*self.names.bindings(self.names.scope_of[node], node.id)]
        if [b.how for b in bound] == ["param"]:
            return method if bound[0].target is first_parameter(method) else None
        given = [self.roles.same(b.value, SAME) if b.how == "assign" and not b.path else None for b in bound]
        own = bool(given) and all(isinstance(g, ast.Name) and g.id != node.id and self._trains_itself(g) is method for g in given)
        return method if own else None

    def _held_by_own(self, p: Pass) -> bool:
        """Whether a method in which a model trains itself calls another one, which that model holds."""
        method = self.values.defs.within_own_loop(p.call)
        cls = self.values.defs.method_class(method) if method is not None else None
        classes = {v.cls for m in self.roles.model_vals(p.model) for v in self.values.inner(m)}
        return cls is not None and not any(c is not None and cls in self.values.defs.bases(c) for c in classes)

    def _in_own_training(self, p: Pass, method: FunctionNode) -> None:
        """The wrapper is made before the statement of the method that trains, when the model is ready, and called in the place of ``self``.

        Nothing else knows of it: it holds the model and not the other way round, so that ``self`` stays the bare model everywhere.
        """
        key = ("v", id(self.names.opened[method]), "()")  # of no variable of the program
        wrap = next((w for w in self.wraps if w.how == "own" and w.key == key), None)
        if wrap is None:
            taken = {n.id for n in walk(method) if isinstance(n, ast.Name)} | {n.arg for n in walk(method) if isinstance(n, ast.arg)}
            name = next(n for n in ("model", "wrapped", *(f"wrapped_{i}" for i in range(2, 50))) if n not in taken)
            inner = frozenset(x for v in self.values.eval(p.model) for x in self.values.inner(v))
            again = self._wrapped_again(method, inner)
            stmt = self._first_that_trains(method)
            me = first_parameter(method)
            wrap = Wrap("own", stmt, me.arg if me is not None else "self", p.model, key, name, again)
            self.wraps.append(wrap)
            self.sites.append(WrapSite(stmt, stmt, key, wrap.made, inner))
        self._own[p.model] = wrap

    def _first_that_trains(self, method: FunctionNode) -> ast.stmt:
        """The statement of the method that holds its training loop; without one the first that calls the model."""
        loops = [s for s in method.body if reaches_loop(self.roles, s)]
        calls = [s for s in method.body if self._passes_within(s)]
        return min((*loops[:1], *calls[:1]), key=position)

    def _passes_within(self, stmt: ast.stmt) -> list[Pass]:
        inside = (p for p in self.roles.training_passes if self.names.is_inside(p.call, stmt))
        return [p for p in inside if self._trains_itself(p.model) is not None]

    def _wrapped_again(self, method: FunctionNode, models: Vals) -> bool:
        """Whether a model may come to its wrap more than once: the method is called in a loop, or in several places, or another one wraps the model, too."""
        calls = self.values.callers.get(method, [])
        repeated = any(self.roles.epoch_loop(c) and not self._other_model(c) for c in calls) or self.roles.region(method.body[0]) != "outside"
        others = {f for p in self.roles.training_passes if (f := self._trains_itself(p.model)) is not None and self.values.eval(p.model) & models}
        return repeated or len(calls) > 1 or len(others) > 1

    def _other_model(self, call: ast.Call) -> bool:
        """Whether the loop round a call of a method makes the model that it is a method of, each time another one."""
        made = [v.node for v in self.values.eval(call.func.value)] if isinstance(call.func, ast.Attribute) else []
        loops = [loop for loop, _ in self.roles.epoch_loop(call)]
        return bool(made) and all(self.names.is_inside(node, loop) for node in made for loop in loops)

    # ------------------------------------------------------------------ a model that the function which trains it moves
    def _moved_where_it_trains(self, p: Pass) -> tuple[Key, list[ast.stmt], int] | None:
        """Where a function that is called once, and is given the model, moves it to its device and trains it, or hands it on to what does.

        DDP needs the model where it will be trained, so the wrap follows the move.
        """
        if isinstance(p.model, ast.Attribute) and of_self(p.model):
            return self._moved_by_its_trainer(p, p.model)
        node: ast.AST | None = p.model
        place: ast.AST = p.call
        seen: set[ast.AST] = set()
        while isinstance(node, ast.Name) and self.names.owner(scope := self.names.scope_of[node], node.id) is scope and scope.node not in seen:
            function = scope.node
            calls = self.values.callers.get(function, [])
            if len(calls) > 1:  # an evaluation may call it, too
                calls = [c for c in calls if self.roles.region(c) in ("train", "both")]
            if not isinstance(function, FunctionNode) or len(calls) != 1:
                return None
            moves = [s for s in function.body if position(s) < position(place) and self._moves(s, node.id)]
            if not all(b.how == "param" or self.names.statement(b.target) in moves for b in scope.bindings[node.id]):
                return None
            if moves:
                once = not self.roles.epoch_loop(calls[0]) and not self._moved_elsewhere(node, function)
                return (next(self.values.keys(node)), function.body, function.body.index(moves[-1])) if once else None
            seen.add(function)
            place = calls[0]
            node = self.roles.passed(calls[0], function, node.id)
        return None

    def _moved_by_its_trainer(self, p: Pass, model: ast.Attribute) -> tuple[Key, list[ast.stmt], int] | None:
        """The same of a method that moves what its object holds, and trains it in its own methods: ``self.model.to(self.device)`` in ``fit``."""
        text, place = ast.unparse(model), p.call
        models = {x for v in self.values.eval(model) for x in self.values.inner(v)}
        trained = (q.model for q in self.roles.training_passes if models & {x for v in self.values.eval(q.model) for x in self.values.inner(v)})
        if any(ast.unparse(m) != text for m in trained):
            return None
        function, seen = self.names.function(place), set[ast.AST]()
        while isinstance(function, FunctionNode) and function not in seen and function.name != "__init__":
            calls = self.values.callers.get(function, [])
            calls = [c for c in calls if self.roles.region(c) in ("train", "both")] if len(calls) > 1 else calls
            if len(calls) != 1:
                return None
            moves = [s for s in function.body if position(s) < position(place) and self._moves(s, text)]
            if moves:
                once = not self.roles.epoch_loop(calls[0]) and not self._moved_elsewhere(model, function)
                return (next(self.values.keys(model)), function.body, function.body.index(moves[-1])) if once else None
            seen.add(function)
            place = calls[0]
            if not isinstance(place.func, ast.Attribute) or not of_self(place.func):
                return None
            function = self.names.function(place)
        return None

    def _moves(self, stmt: ast.stmt, name: str) -> bool:
        """``model.to(device)``, ``model = model.cuda()``, also under a test: ``if use_cuda: model.cuda()``"""
        if isinstance(stmt, ast.If):
            return any(self._moves(s, name) for s in (*stmt.body, *stmt.orelse)) and not reaches_loop(self.roles, stmt)
        call = stmt.value if isinstance(stmt, ast.Expr | ast.Assign) else None
        if isinstance(stmt, ast.Assign) and ast.unparse(stmt.targets[0]) != name:
            return False
        receiver = moved(self.roles, call) if call is not None else None
        return receiver is not None and ast.unparse(receiver) == name

    def _moved_elsewhere(self, node: ast.expr, function: FunctionNode) -> bool:
        """Whether something beside the function and what it enters moves the model as well."""
        models = {x for v in self.values.eval(node) for x in self.values.inner(v)}
        inside = {function, *self.roles.all_entered(function)}
        receivers = ((c, r) for c in self.roles.calls if self.names.function(c) not in inside and (r := moved(self.roles, c)) is not None)
        asked = self.roles.asked
        return any(models & self.values.eval(r) and (asked is None or asked.runs(self.names.statement(c))) for c, r in receivers)

    def _after_move(self, key: Key, block: list[ast.stmt], last: int) -> None:
        site = self._last_of_set_up(key, block, last)
        stmt, name = block[site], f"self.{key[2]}" if key[0] == "a" else key[2]
        self.wraps.append(Wrap("value" if site == last and isinstance(stmt, ast.Assign) else "after", stmt, name, stmt, key))
        self._site(key, stmt)

    # ------------------------------------------------------------------ several places that make the model
    def _alternatives(self, key: Key, node: ast.AST, writes: list[ast.stmt]) -> Iterator[tuple[list[ast.stmt], int, list[ast.stmt]]]:
        """The statements that give the variable its model, together where one wrap can follow them: each function and each branch that trains for itself.

        Each with the block that holds them and the index of the last one in it.
        """
        functions: dict[ast.AST, list[ast.stmt]] = {}
        for w in writes:
            functions.setdefault(self.names.function(w), []).append(w)
        made = [w for w in writes if not self._is_moved(w, key)]
        groups = [[w for w in group if not (self._is_moved(w, key) and self._is_repeated(w, made))] for group in functions.values()]
        given = [group for group in groups if not all(self._is_moved(w, key) or self._is_handed_back(w, key, writes) for w in group)]
        found = [x for group in given for x in self._by_branch(node, group, None)]
        again = next((group[0] for _, _, group in found if self._made_of(group[0], key)), None)
        if again is not None and len(found) > 1:
            self._problem(again, f"{ast.unparse(node)} is given another model, made of itself, which should have a name of its own")
        else:
            yield from found

    def _by_branch(self, node: ast.AST, writes: list[ast.stmt], within: ast.stmt | None) -> Iterator[tuple[list[ast.stmt], int, list[ast.stmt]]]:
        block, last = self._common_block(writes, within)
        stmt = block[last]
        if not reaches_loop(self.roles, stmt) and not self._is_elif(stmt):
            keys = set(self.values.keys(node)) if isinstance(node, ast.expr) else set()
            if without(self.roles, node, stmt) and not any(self._needs_bare(n, key) for s in block[last + 1 :] for n in walk(s) for key in keys):
                yield from self._by_branch(node, writes, stmt)
            else:
                yield block, last, writes
            return
        if not isinstance(stmt, ast.If | ast.Try):
            place = next((w for w in writes if w is not stmt and self.names.is_inside(w, stmt)), stmt)
            self._problem(place, f"{ast.unparse(node)} is given another value where training runs")
            return
        outside = [w for w in writes if not self.names.is_inside(w, stmt)]
        parts = branches(stmt)
        sides = [[w for w in writes if any(self.names.is_inside(w, s) for s in side)] for side in parts]
        if outside:
            yield from self._by_branch(node, outside, within)
        for side in filter(None, sides):
            yield from self._by_branch(node, side, stmt)

    def _is_elif(self, stmt: ast.stmt) -> bool:
        """Whether the statement is the ``elif`` of another: nothing can stand beside it."""
        above = self.names.parent[stmt]
        return isinstance(stmt, ast.If) and isinstance(above, ast.If) and above.orelse == [stmt] and stmt.col_offset == above.col_offset

    def _is_moved(self, stmt: ast.stmt, key: Key) -> bool:
        """``self.model = self.model.to(device)``"""
        value = self.roles.same(getattr(stmt, "value", None))
        return isinstance(value, ast.Name | ast.Attribute) and key in self.values.keys(value)

    def _is_repeated(self, stmt: ast.stmt, made: list[ast.stmt]) -> bool:
        """Whether it stands in a loop that trains, in which the model is not ``made``, and all moves of the model go to one place: there the wrapper is where
        it is moved to.
        """
        value = getattr(stmt, "value", None)
        model = moved(self.roles, value) if isinstance(value, ast.Call) else None
        loops = [a for a in self.names.ancestors(stmt) if isinstance(a, ast.For | ast.While) and self.roles.reaches_backward(a)]
        if model is None or all(any(self.names.is_inside(w, a) for w in made) for a in loops):
            return False
        held = self.values.eval(model)
        others = [c for c in self.roles.calls if (r := moved(self.roles, c)) is not None and self.values.eval(r) & held]
        return len({(c.func.attr, *map(ast.dump, c.args)) for c in others if isinstance(c.func, ast.Attribute)}) == 1

    def _is_handed_back(self, stmt: ast.stmt, key: Key, writes: list[ast.stmt]) -> bool:
        """``self.model, self.optimizer = load_state(path, self.model, self.optimizer)``, which gives the models that it is given."""
        others = NONE.union(*(self.values.given(w, key) for w in writes if not self._made_of(w, key)))
        held = self.values.given(stmt, key)
        return self._made_of(stmt, key) and bool(held) and held <= others

    def _made_of(self, stmt: ast.stmt, key: Key) -> bool:
        """``self.model = pruned(self.model)``"""
        return any(isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Load) and key in self.values.keys(n) for n in walk(stmt))

    def _turn(self, node: ast.AST) -> list[ast.stmt]:
        """The body of the loop whose variable the model is, ``for name, model in models.items()``: each turn trains another one."""
        scope = self.names.owner(self.names.scope_of[node], node.id) if isinstance(node, ast.Name) else None
        bound = scope.bindings[node.id] if scope is not None and isinstance(node, ast.Name) else []
        loops = [self.names.statement(b.target) for b in bound]
        one = loops[0] if len(loops) == 1 and bound[0].how == "for" else None
        return one.body if isinstance(one, ast.For) and self.names.is_inside(node, one) else []

    def _function_body(self, node: ast.AST) -> list[ast.stmt]:
        """Of a parameter that nobody in the program fills the function that trains with it."""
        function = self.names.function(node)
        if not isinstance(function, FunctionNode) or not isinstance(node, ast.Name):
            return []
        if not any(b.how == "param" for b in self.names.bindings(self.names.scope_of[node], node.id)):
            return []
        return [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]

    def _gives_model(self, stmt: ast.stmt) -> bool:
        value = getattr(stmt, "value", None)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in ("train", "eval"):
            return False  # model = model.eval() gives it itself
        return not isinstance(value, ast.Constant)

    def _gives_again(self, stmt: ast.stmt, key: Key) -> bool:
        """``model = set_training(model, True)`` in the loop over the epochs: the model that is trained there already."""
        given = self.roles.handed_back(getattr(stmt, "value", None))
        repeated = any(isinstance(a, ast.For | ast.While) and reaches_loop(self.roles, a) for a in self.names.ancestors(stmt, below=self.names.function(stmt)))
        return repeated and given is not None and key in self.values.keys(given)

    def _common_block(self, writes: list[ast.stmt], within: ast.stmt | None) -> tuple[list[ast.stmt], int]:
        """The innermost block that holds all the statements, in a branch of ``within`` or in none, and the index of the last one in it."""
        chains = [[w, *(a for a in self.names.ancestors(w) if isinstance(a, ast.stmt))] for w in writes]
        blocks = (self.names.block(s) for s in chains[0] if len(chains) > 1 or not self._in_branch(s, within))
        block = next(b for b in blocks if all(any(s in chain for s in b) for chain in chains))
        return block, max(i for i, s in enumerate(block) if any(s in chain for chain in chains))

    def _in_branch(self, stmt: ast.stmt, within: ast.stmt | None) -> bool:
        parent = self.names.parent[stmt]
        branch = self.names.parent[parent] if isinstance(parent, ast.ExceptHandler) else parent
        return isinstance(branch, ast.If | ast.Try) and branch is not within and not is_main_guard(branch)

    def _needs_bare(self, node: ast.AST, key: Key) -> bool:
        """A use of the variable that wants the module itself: an attribute, a load, a move, another library's function."""
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            return False
        if key not in list(self.values.keys(node)) and not any(key in self.values.keys(e) for e in self._in_turn(node)):
            return False
        parent = self.names.parent[node]
        if isinstance(parent, ast.Attribute):
            return parent.attr not in _NEUTRAL
        call = self.names.parent[parent] if isinstance(parent, ast.keyword) else parent
        if isinstance(call, ast.Call):
            kept = self._is_field(node) or any(f.name == "__init__" for f, _ in self.values.targets(call))
            return call.func is not node and not kept
        return isinstance(parent, ast.keyword | ast.Starred | ast.FormattedValue)

    def _in_turn(self, node: ast.expr) -> Iterator[ast.expr]:
        """What the variable of a loop or comprehension stands for in its turns, where what it goes through is written there, and so is held by nothing else:
        ``for net in (a, b): net.to(device)``, ``[net.cuda() for net in [a, b]]``, ``for net, name in ((a, "a"), (b, "b")): net.load_state_dict(...)``
        """
        for b in self.names.bindings(self.names.scope_of[node], node.id) if isinstance(node, ast.Name) else ():
            if b.how == "for" and isinstance(b.value, ast.Tuple | ast.List | ast.Set):
                for element in b.value.elts:
                    found: ast.expr | None = element
                    for i in b.path[1:]:
                        found = found.elts[i] if isinstance(found, ast.Tuple | ast.List) and isinstance(i, int) and i < len(found.elts) else None
                    if found is not None:
                        yield found


def _sets_requires_grad(node: ast.AST) -> bool:
    """Freezing goes before the wrap: DDP looks at the parameters once."""
    return isinstance(node, ast.Attribute) and node.attr == "requires_grad" and isinstance(node.ctx, ast.Store)


def first_parameter(function: FunctionNode) -> ast.arg | None:
    """``self`` of a method"""
    return next(iter((*function.args.posonlyargs, *function.args.args)), None)
