"""May the instances that a guard excludes run? Questions about the program without the guard.

Let E be the instances of the statements of a scope that violate a constraint. Running E changes nothing iff each
instance in E

- writes no part of a value that an instance outside E reads, or that an output has at the end (it is *unneeded*); or
- accumulates the neutral element of its accumulation, which is known from the origins of its inputs.

Parts of a value are the last plain write of the element and all accumulations since, so that a value which passes
through an accumulation counts. All questions are about elements; memory and threads are conditions of the program.
"""

from __future__ import annotations

from pdojo.dialect.affine import Expr
from pdojo.dialect.attributes import Intent, Mapping, Numerics
from pdojo.dialect.flow.constants import is_neutral, keeps_zeros, term_of
from pdojo.dialect.flow.flows import Instance
from pdojo.dialect.flow.origins import Instances, any_of, element_uses, instances_of, number_of
from pdojo.dialect.flow.program import Program, caller_of
from pdojo.dialect.flow.uses import Use, describe_use
from pdojo.dialect.functions import ACCUMULATIONS
from pdojo.dialect.notation.literals import format_constant
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.messages import describe_access
from pdojo.dialect.view.nest import Constant, Leaf, Scope

_TREES = (Mapping.VECTOR, Mapping.BLOCK, Mapping.WARP)
"""Mappings whose iterations may accumulate into one element by a tree."""


def lacking(program: Program, scope: Scope, violated: Expr) -> Reason | None:
    """The reason why an instance in E (`violated` >= 0) would read an unwritten element; None if none would."""
    for leaf, among in _instances(scope, violated):
        for access in leaf.accesses if leaf.accumulate is not None else leaf.reads:
            if access.array.intent in (Intent.IN, Intent.INOUT):
                continue
            uses = element_uses(program.nest, access.array)
            number = number_of(uses, leaf, access)
            found = program.origins.unwritten(uses, number, among)
            if found is not None:
                return Reason(
                    f"it would read an element of '{access.array.name}' that nothing has written",
                    describe_use(uses[number], found),
                )
    return None


def harm(program: Program, scope: Scope, violated: Expr) -> Reason | Numerics:
    """The reason why E (`violated` >= 0) changes the program's results, or else its effect on rounding."""
    effect = Numerics.EXACT
    inside = dict(_instances(scope, violated))
    for leaf in inside:
        found = _needed(program, leaf, inside)
        if found is None:
            continue
        needed, uses, (write, reader) = found
        if leaf.accumulate is None:
            return Reason(f"it would overwrite elements of '{leaf.output.array.name}'", _witness(uses, write, reader))
        term = term_of(program, leaf, needed)
        if term is None or not is_neutral(leaf, term):
            what = _spelled(leaf, term)
            return Reason(f"it would accumulate {what} into '{leaf.output.array.name}'", _witness(uses, write, reader))
        if not keeps_zeros(leaf, term) or _in_tree(leaf):
            effect = Numerics.REASSOCIATES
    return effect


def _instances(scope: Scope, violated: Expr) -> list[tuple[Leaf, Instances]]:
    """Each statement with its instances in E, if there are any."""
    found = ((leaf, instances_of(leaf, violated)) for leaf in scope.leaves)
    return [(leaf, among) for leaf, among in found if any_of(among) is not None]


def _needed(
    program: Program, leaf: Leaf, inside: dict[Leaf, Instances]
) -> tuple[Instances, list[Use], tuple[Instance, Instance]] | None:
    """The needed instances of a statement in E, the array's uses, and one (write, reader); None if all are unneeded.

    Instances refer to uses by their number.
    """
    array = leaf.output.array
    uses = element_uses(program.nest, array)
    unneeded = [(k, inside[u.leaf]) for k, u in enumerate(uses) if u.reads and u.leaf in inside]
    caller = None if array.intent is None else caller_of(array.buffer)
    found = program.origins.needed(uses, number_of(uses, leaf, leaf.output), inside[leaf], unneeded, caller)
    return None if found is None else (found[0], uses, found[1])


def _witness(uses: list[Use], write: Instance, reader: Instance) -> str:
    """`t[{0}] at iteration (3), which y[{0}] at iteration (2) reads`; the caller reads outputs at the end."""
    written = describe_use(uses[write[0]], write[1])
    if reader[0] == len(uses):
        return f"{written}, which the caller gets"
    by, when = uses[reader[0]], f"({', '.join(map(str, reader[1]))})"
    return f"{written}, which the op that writes {describe_access(by.leaf.output)} reads at iteration {when}"


def _spelled(leaf: Leaf, term: Constant | None) -> str:
    if term is None:
        return "an unknown value"
    assert leaf.accumulate is not None
    return f"{format_constant(term.value, term.dtype)} by {ACCUMULATIONS[leaf.accumulate].spelling}="


def _in_tree(leaf: Leaf) -> bool:
    """Whether several iterations combine terms by a tree, whose form could change."""
    assert leaf.accumulate is not None
    used = {v for e in leaf.output.index for v in e.variables()}
    return not ACCUMULATIONS[leaf.accumulate].exact and any(
        s.mapping in _TREES and s.depth not in used for s in leaf.chain
    )
