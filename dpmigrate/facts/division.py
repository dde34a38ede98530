"""Where a training loader is divided: in the call that builds it, or when it is finished."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeGuard

from dpmigrate.facts.loaders import critical_star
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.roles import element
from dpmigrate.facts.scopes import Binding
from dpmigrate.facts.spelling import spelled

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script
    from dpmigrate.facts.values import Values


def reads_statically(script: Script, call: ast.Call) -> bool:
    """Whether the arguments that decide the batches can be read and set where the loader is built."""
    if (
        not script.roles.makes_loader(call)
        or _serves_both(script, call)
        or critical_star(script, call)
        or script.argument(call, "batch_sampler", 4) is not None
    ):
        return False
    sampler = script.argument(call, "sampler", 3)
    if sampler is not None and not isinstance(sampler, ast.Constant | ast.Call):
        vals = script.values.eval(sampler)
        if not vals or any(v.kind == "const" for v in vals):
            return False
    if script.argument(call, "dataset", 0) is None:
        return False
    return not any(isinstance(a, ast.ListComp | ast.DictComp | ast.GeneratorExp | ast.Lambda) for a in script.names.ancestors(call))


def distributed_at(script: Script, call: ast.Call) -> list[ast.expr]:
    """Where ``ddp.distribute`` goes for a loader that cannot be read: the call itself, or what a factory's result is assigned to."""
    if reads_statically(script, call):
        return []
    if any(isinstance(a, ast.DictComp) for a in script.names.ancestors(call)):
        return []
    if not _serves_both(script, call):
        return [] if distributed_after(script, call) else [call]
    return [place for place, after in _finished(script, call) if after is None]


def _finished(script: Script, call: ast.Call) -> list[tuple[ast.expr, ast.stmt | None]]:
    """For a factory's loader: the calls that give it to training, and the targets that it is unpacked to, with their statements."""
    fed = [(b, script.phases(b)) for b in script.roles.train_feeds if not b.apart and any(v.node is call for v in b.loaders)]
    sources = [b.source if side is None else side.source for b, side in fed]
    return list(dict.fromkeys(r for source in sources for r in _results(script, call, source)))


def _results(script: Script, call: ast.Call, source: ast.expr) -> Iterator[tuple[ast.expr, ast.stmt | None]]:
    """What gives the loader to the variables through which it comes: ``loader = get_loader(args)``, then ``Solver(loader)``, ``self.loader``.

    The call, or its item: ``get(args)[1]``; of ``data, loader = get(args)`` the target ``loader``, with the statement.
    """
    todo: list[ast.expr] = [source]
    seen: set[ast.expr] = set()
    while todo:
        node = todo.pop()
        handed = _gone_through(script, node) if isinstance(node, ast.Call) else []
        if isinstance(node, ast.Call) and (wrapped := _made_of(script, call, node)) is not None:
            todo.append(wrapped)
        elif handed:
            todo += [e for e in handed if e not in seen]
        elif isinstance(node, ast.Call) or (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call) and isinstance(node.slice, ast.Constant)):
            yield node, None
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node not in seen:
            seen.add(node)
            made = list(_under_key(script, node.value, node.slice.value))
            todo += made
            # it stands in the text, and is filled under keys that are computed: ``loaders[part] = get_loader(part)``
            if not made and not script.names.is_made_up(node):
                yield node, None
        elif isinstance(node, ast.Name | ast.Attribute) and node not in seen:
            seen.add(node)
            unpacked = {w.value: (script.roles.leaf(w, key), w) for key in script.values.keys(node) for w in script.roles.writes(key) if _unpacks(w)}
            yield from unpacked.values()
            # (data, loader), (_, v) = get(args), get(other): a part of a part has no line of its own
            deep = {element(b.value, b.path) for b in _bound(script, node) if len(b.path) > 1 and isinstance(b.value, ast.expr)}
            todo += [e for e in script.roles.given(node) if e not in unpacked and e not in deep]


def _made_of(script: Script, call: ast.Call, node: ast.Call) -> ast.expr | None:
    """The loader that code outside of the program makes something of, which is no loader: ``cycle(loader)``."""
    if node is call or any(True for _ in script.values.targets(node)):
        return None
    held = (a for a in node.args if isinstance(a, ast.Name | ast.Attribute))
    return next((a for a in held if any(v.node is call for v in script.values.eval(a))), None)


def is_generator(values: Values, call: ast.Call) -> bool:
    """Whether a call is of generators of the program, whatever they hand on."""
    functions = [f for f, _ in values.targets(call)]
    return bool(functions) and all(any(isinstance(n, ast.Yield | ast.YieldFrom) for n in walk(f)) for f in functions)


def _gone_through(script: Script, call: ast.Call) -> list[ast.expr]:
    """The loaders that a generator of the program is given, which hands their batches on: ``endless(loader)``."""
    given = (*call.args, *(k.value for k in call.keywords))
    return [a for a in given if script.roles.loaders_of(a)] if is_generator(script.values, call) else []


def _under_key(script: Script, held: ast.expr, key: object) -> Iterator[ast.expr]:
    """What stands under a key of the dictionaries that an expression means: ``loader`` of ``self.loaders = {"train": loader}``."""
    for given in script.roles.given(held) if isinstance(held, ast.Name | ast.Attribute) else [held]:
        if isinstance(given, ast.Dict):
            yield from (v for k, v in zip(given.keys, given.values, strict=True) if isinstance(k, ast.Constant) and k.value == key)


def _bound(script: Script, node: ast.Name | ast.Attribute) -> Sequence[Binding]:
    return list(script.names.bindings(script.names.scope_of[node], node.id)) if isinstance(node, ast.Name) else ()


def _unpacks(stmt: ast.stmt) -> TypeGuard[ast.Assign]:
    """Whether the statement takes apart what it does not show: ``data, loader = get(args)``."""
    return isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Tuple | ast.List) and not isinstance(stmt.value, ast.Tuple | ast.List)


def distributed_after(script: Script, call: ast.Call) -> list[tuple[str, ast.stmt]]:
    """For a loader that is one of several made at once: the expressions of those that training uses, each with the statement before.

    ``loaders['train']`` of a dict comprehension, ``train_loader`` of ``train_loader, val_loader = get_loaders()`` and of ``data, train_loader = get("train")``,
    ``data.loader`` of ``data = Batches(args)`` whose class makes the loaders of evaluations, too.
    """
    out: dict[tuple[str, ast.stmt], None] = {}
    stmt = script.names.statement(call)
    for b in script.roles.train_feeds:
        side = script.phases(b)
        if side is None or not any(v.node is call for v in side.loaders):
            continue
        out |= {(f"{ast.unparse(given.targets[0])}.{b.inside.attr}", given): None for given in b.apart if b.inside is not None}
        made = next((a for a in script.names.ancestors(call) if isinstance(a, ast.DictComp)), None)
        if made is not None and isinstance(side.source, ast.Subscript):
            text = spelled(script.names, side.source, stmt)
            if text is None and isinstance(stmt, ast.Assign) and stmt.value is made and isinstance(side.source.slice, ast.Constant):
                text = ast.unparse(ast.Subscript(stmt.targets[0], side.source.slice, ast.Load()))  # made in another function than the one that trains
            out |= {(text, stmt): None} if text is not None else {}
        out |= dict.fromkeys(_of_a_factory(script, call, side.source))
        for key, _ in script.roles.roots(b.source):
            unpacked = [w for w in script.roles.writes(key) if isinstance(w, ast.Assign) and w.value is call and isinstance(w.targets[0], ast.Tuple | ast.List)]
            out |= {(ast.unparse(script.roles.leaf(w, key)), w): None for w in unpacked}
    if _serves_both(script, call):
        out |= {(ast.unparse(target), after): None for target, after in _finished(script, call) if after is not None}
    return list(out)


def _of_a_factory(script: Script, call: ast.Call, source: ast.expr) -> Iterator[tuple[str, ast.stmt]]:
    """For a loader that a comprehension has a factory make, ``self.loaders = {p: get_loader(p) for p in phases}``: ``self.loaders['train']``."""
    if not isinstance(source, ast.Subscript) or not isinstance(source.slice, ast.Constant) or not isinstance(source.value, ast.Name | ast.Attribute):
        return
    for given in script.roles.given(source.value):
        stmt = script.names.statement(given)
        made = given.value if isinstance(given, ast.DictComp) and isinstance(given.value, ast.Call) else call
        if made is not call and isinstance(stmt, ast.Assign) and stmt.value is given and any(v.node is call for v in script.values.eval(made)):
            yield ast.unparse(ast.Subscript(stmt.targets[0], source.slice, ast.Load())), stmt


def _serves_both(script: Script, call: ast.Call) -> bool:
    """Whether one call makes the training loader and another loader that evaluates: a factory, a comprehension."""
    train, other = (
        {
            k
            for b in loops
            if any(v.node is call for v in b.loaders)
            for k, _ in script.roles.roots(b.source)
            if any(v.node is call for v in script.values.vars.get(k, ()))
        }
        for loops in (script.roles.train_feeds, script.roles.eval_loops)
    )
    mixed = any(b.apart and any(v.node is call for v in b.loaders) for b in script.roles.train_feeds)
    mixed = mixed or any(b.branches and any(v.node is call for v in b.loaders) and len(b.loaders) == 1 for b in script.roles.train_feeds)
    return bool(other - train) or mixed
