"""The tables together: the answers to what the machine asks of code outside of the program."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, cast

from dpmigrate.execution import arithmetic, identity, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame, Machine
from dpmigrate.execution.objects import ELEMENTS, Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NOTHING,
    RESULTS,
    Atom,
    Bound,
    Const,
    Data,
    Foreign,
    Items,
    Method,
    Ref,
    Setting,
    Super,
    Value,
    const,
    placement_of,
    value,
)
from dpmigrate.library import (
    batches,
    effects,
    hooks,
    iterators,
    module_tree,
    modules,
    pure,
    unseen_optimizers,
)
from dpmigrate.library.answers import by_numbers, by_sizes, is_bare, note_layer, plain_part
from dpmigrate.library.layer_table import layer_takes
from dpmigrate.library.protocols import Protocols, site_of
from dpmigrate.library.public_names import MODULES_OF_TORCH
from dpmigrate.library.registry import (
    ATTRIBUTES,
    FUNCTIONS,
    KINDS,
    METHODS,
    OF_KIND,
    by_pattern,
    canonical,
    kinds_of,
)
from dpmigrate.library.results import field_of, part_of_results
from dpmigrate.library.signatures import bound
from dpmigrate.library.sites import Site

if TYPE_CHECKING:
    from dpmigrate.execution.engine import Execution

def _recorded(site: Site, v: Value | None) -> Value | None:
    """What a function gives: where autograd does not record, no gradient flows through it."""
    return v if not v or site.grad() else identity.unrecorded(v)


class Tables(Protocols):
    """The library of the machine."""

    def call(
        self, m: Machine, name: str, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value | None:
        arguments = bound(name, arguments)
        name = canonical(name)
        row = FUNCTIONS.get(name)
        if row is None and name.startswith("."):
            row = METHODS.get(name)
        if row is None:
            row = by_pattern(name)
        if row is None:
            return None
        site = site_of(m, name, arguments, node, frame)
        return _recorded(site, by_numbers(site, row.effect(site)))

    def method(
        self,
        m: Machine,
        receiver: Atom,
        name: str,
        arguments: Arguments,
        node: ast.AST,
        frame: Frame,
    ) -> Value | None:
        if isinstance(receiver, Data):
            kind = "numpy.ndarray" if receiver.kind == "array" else "torch.Tensor"
            arguments = bound(f"{kind}.{name}", arguments)
        site = site_of(m, f".{name}", arguments, node, frame, receiver)
        if isinstance(receiver, Super):
            return self._super(site, receiver, name)
        if name == "__iter__":
            return self.call(m, "builtins.iter", Arguments([value(receiver)]), node, frame)
        first, _, rest = name.partition(".")
        known = isinstance(receiver, Ref)  # plain values may be of any type
        if known and rest and any((kind, first) in OF_KIND for kind in self._kinds(m, receiver)):
            # a method has no such attribute: model.state_dict.module()
            m.event("no attribute", node, frame, owner=value(receiver), name=(Const("str", rest),))
        for kind in self._kinds(m, receiver):
            row = OF_KIND.get((kind, name))
            if row is not None:
                return row.effect(site)
        for kind in self._kinds(m, receiver):
            row = OF_KIND.get((kind, "*"))
            if row is not None:
                return row.effect(site)
        if isinstance(receiver, Data) and receiver.kind not in ("text",):
            row = METHODS.get(f".{name}")
            if row is not None:
                return _recorded(site, by_numbers(site, row.effect(site)))
        if isinstance(receiver, Data | Setting | Const | Method):
            return self._of_plain(site, receiver)
        made = m.object(receiver)
        if made is not None and made.kind == "instance":
            held = m.heap.read((made.number, ELEMENTS))
            if held:
                return m.call(held, arguments, node, frame)
        return None

    @staticmethod
    def _of_plain(site: Site, receiver: Atom) -> Value | None:
        """A method of plain data of which no type is known: what texts and paths have, or anything
        that is computed from it.
        """
        lying = placement_of(value(receiver)).kind
        if isinstance(receiver, Data):
            if receiver.kind not in ("number", "text") or lying is not Kind.PER_RANK:
                return None
            row = OF_KIND.get(("setting", site.word))
            if row is not None and row.effect is not effects.uniform:
                return row.effect(site)
        elif all(site.m.depends(v).kind in placements.EQUAL for v in site.all()):
            return None
        return pure.computed(site)

    def _super(self, site: Site, receiver: Super, name: str) -> Value | None:
        """A method of the library's base class, called by ``super()``."""
        made = site.m.object(receiver.receiver)
        if made is None:
            return None
        site.receiver, site.base = Ref(made.number), True
        kinds = site.m.kinds(made)
        if name == "__init__":
            self.constructed(site.m, made, kinds, site.arguments, site.node, site.frame)
            return (Const("NoneType", None),)
        if name == "__iter__":
            given = Arguments([value(site.receiver)])
            return self.call(site.m, "builtins.iter", given, site.node, site.frame)
        for kind in sorted(kinds):
            row = OF_KIND.get((kind, name))
            if row is not None:
                return row.effect(site)
        return None

    def attribute(
        self, m: Machine, receiver: Atom, name: str, node: ast.AST, frame: Frame
    ) -> Value | None:
        site = site_of(m, f".{name}", Arguments(), node, frame, receiver)
        if isinstance(receiver, Items):
            return field_of(receiver, name)
        for kind in self._kinds(m, receiver):
            row = ATTRIBUTES.get((kind, name))
            if row is not None:
                return row.effect(site)
        for kind in self._kinds(m, receiver):
            row = ATTRIBUTES.get((kind, "*"))
            if row is not None:
                return row.effect(site)
        if isinstance(receiver, Data):
            row = ATTRIBUTES.get(("data", name))
            if row is not None:
                return row.effect(site)
            if name == "module":  # what a wrapper has, asked of what it gives
                m.event("no attribute", node, frame, owner=value(receiver), name=const(name))
            if receiver.kind == RESULTS and f".{name}" not in METHODS:
                return part_of_results(site, receiver, name)
            field = receiver.kind == "batch" and f".{name}" not in METHODS
            field = field and ("batch", name) not in OF_KIND
            return batches.batch_attribute(site) if field else None
        made = m.object(receiver)
        missed = made is not None and made.kind == "wrapper" and ("wrapper", name) not in OF_KIND
        if missed or (made is not None and name == "module" and is_bare(m, made)):
            m.event("no attribute", node, frame, owner=value(receiver), name=(Const("str", name),))
        known = ("module", name) in OF_KIND
        if made is not None and made.kind == "module" and made.extra == modules.MODEL and not known:
            return modules.part(site)
        if made is not None and made.kind == "opaque":
            held = cast("Execution", m).contents(made)
            return (*held, Method(receiver, name)) if held else value(Method(receiver, name))
        return None

    def called(
        self, m: Machine, receiver: Atom, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value | None:
        site = site_of(m, ".__call__", arguments, node, frame, receiver)
        note_layer(site)
        for kind in self._kinds(m, receiver):
            row = OF_KIND.get((kind, "__call__"))
            if row is not None:
                return hooks.after(site, row.effect(site))
        return None

    def runs(self, m: Machine, made: Object) -> Bound | None:
        return cast("Execution", m).method_of(made, "forward") if module_tree.is_module(m, made) else None

    def takes(self, m: Machine, made: Object, arguments: Arguments) -> bool:
        return layer_takes(made, arguments)

    def unseen_made(self, m: Machine, made: Object, arguments: Arguments, node: ast.AST, frame: Frame) -> None:
        unseen_optimizers.made(site_of(m, made.name, arguments, node, frame), made)

    def handed_to(self, m: Machine, made: Object) -> Value:
        return (m.heap.read((made.number, "module")) or NOTHING) if made.kind == "wrapper" else NOTHING

    def constructed(
        self, m: Machine, made: Object, kinds: frozenset[str], arguments: Arguments, node: ast.AST,
        frame: Frame,
    ) -> None:  # fmt: skip
        site = site_of(m, made.name, arguments, node, frame, Ref(made.number))
        for kind in sorted(kinds):
            row = OF_KIND.get((kind, "__init__"))
            if row is not None:
                row.effect(site)

    def operator(
        self, m: Machine, word: str, operands: list[Value], node: ast.AST, frame: Frame
    ) -> Value | None:
        row = METHODS.get(f".__{word}__")
        site = site_of(m, f".__{word}__", Arguments(operands), node, frame)
        whole = operands
        held = any(isinstance(a, Data) for v in operands for a in v)
        if held and word not in ("getitem", "setitem"):
            # objects of unseen code that differ: what they hold counts
            whole = [join(v, tuple(d for a in v for d in site.unseen(a))) for v in operands]
            site.arguments = Arguments(whole)
        for atom in operands[0]:
            own = FUNCTIONS.get(f"{atom.name}.__{word}__") if isinstance(atom, Foreign) else None
            if own is not None:  # os.environ["RANK"]
                site.arguments = Arguments(operands[1:])
                return own.effect(site)
            for kind in self._kinds(m, atom):
                found = OF_KIND.get((kind, f"__{word}__"))
                if found is not None:
                    site.receiver, site.arguments = atom, Arguments(operands[1:])
                    return found.effect(site)
            made = m.object(atom)
            if made is not None and made.kind == "wrapper":  # of whatever model: wrapped[2]
                missed = const(f"__{word}__")
                m.event("no attribute", node, frame, owner=value(atom), name=missed)
        if row is not None and held:
            gives = row.effect(site)
            return by_sizes(site, gives) if word == "getitem" and gives else gives
        if word == "getitem" and all(map(plain_part, operands[0])):
            return pure.computed(site)
        if whole != operands:
            left, right = whole
            return arithmetic.binary(word, left, right, node)
        return None

    def kinds(self, name: str) -> frozenset[str]:
        return kinds_of(canonical(name))

    def module(self, name: str) -> bool:
        return name in MODULES_OF_TORCH

    def takes_all(self, name: str) -> bool:
        return name in iterators.AT_ONCE or name.startswith(iterators.WHOLE_LIBRARIES)

    def sets_attribute(self, method: str) -> bool:
        return method in modules.REGISTERING

    def exported(self, module: str, name: str) -> bool | None:
        whole = f"{module}.{name}"
        if canonical(whole) in FUNCTIONS or whole in KINDS:
            return True
        row = by_pattern(whole)
        return True if row is not None and not row.names.endswith("*") else None
