"""Values: each gets an array of its own while statements are fused and moved apart, and shares registers at the end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from pdojo.dialect.rules.streams import FPU_FUNCTIONS
from pdojo.dialect.view.nest import Access, Leaf
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import unfold


def separate_values(builder: PassBuilder) -> dict[str, str]:
    """Give each value of a temporary its own array, with an element for each iteration of the loops that compute it.

    Returns the new arrays, each with the one that it was part of.
    """
    why = "values in arrays of their own can be fused and moved apart"
    found: dict[str, str] = {}
    for identifier in [leaf.id for leaf in builder.nest.leaves]:
        array = builder.leaf(identifier).output.array
        name = _unused(builder, array.name)
        if array.buffer.op is not None and builder.attempt("rename_array", f"%{identifier}", why, into=name):
            found[name] = array.name
    for leaf in builder.nest.leaves:
        if not leaf.output.array.shape:
            builder.transact(lambda identifier=leaf.id: recompute(builder, identifier))
    unfold(builder)
    return found


def _unused(builder: PassBuilder, name: str) -> str:
    """A name for a part of an array: its name and the first free number."""
    return next(f"{name}_{k}" for k in count(1) if f"{name}_{k}" not in builder.nest.arrays)


def recompute(builder: PassBuilder, identifier: str) -> bool:
    """Give a value an element for each iteration of the loops around its readers; False if it needs none."""
    leaf = builder.leaf(identifier)
    array = leaf.output.array
    if array.buffer.op is None or leaf.accumulate is not None or not leaf.chain:
        return False
    if builder.nest.writers[array.name] != [leaf]:
        return False
    why = "an element for each iteration"
    readers = [reader.id for reader in builder.nest.readers[array.name]]
    inline_once(builder, array.name, readers, why)
    builder.make("delete_op", f"%{identifier}", why)
    return True


def inline_once(builder: PassBuilder, name: str, readers: Sequence[str], why: str) -> str:
    """Compute a value in the loop of statements that read it, once for all of them; returns its new array."""
    first: Access | None = None
    for reader in dict.fromkeys(readers):
        while (number := _input(builder.leaf(reader), name)) is not None:
            into = _unused(builder, name)
            builder.make("inline_op", f"%{reader}", why, input=number, into=into)
            access = next(a for a in builder.leaf(reader).reads if a.array.name == into)
            if first is None:
                first = access
            else:
                index = ", ".join(f"{{{k}}}" for k in range(len(access.index)))
                builder.make("outline_op", f"%{reader}", why, input=number, array=first.array.name, index=index)
    assert first is not None
    return first.array.name


def _input(leaf: Leaf, name: str) -> int | None:
    """The number of a statement's first input that reads an array; None if there is none."""
    return next((k for k, i in enumerate(leaf.inputs) if isinstance(i, Access) and i.array.name == name), None)


def merge_values(builder: PassBuilder, separated: dict[str, str]) -> None:
    """Let operands and results of functions of many instructions, which need registers, share the array again."""
    why = "values that are not needed at once share registers"
    for name, whole in separated.items():
        if not {name, whole} <= builder.nest.arrays.keys():
            continue
        users = [
            leaf for array in (name, whole) for leaf in (*builder.nest.writers[array], *builder.nest.readers[array])
        ]
        if any(leaf.function is not None and leaf.function not in FPU_FUNCTIONS for leaf in users):
            builder.attempt("merge_arrays", name, why, **{"with": whole})
