"""Atomic operations as text: the statements that need them, and the helpers that device code calls."""

from __future__ import annotations

from collections.abc import Mapping

from pdojo.backends.gpu.launches import Launch
from pdojo.dialect.attributes import Memory
from pdojo.dialect.flow.collision import Collisions
from pdojo.dialect.flow.uses import uses_together
from pdojo.dialect.functions import has_atomic
from pdojo.dialect.rules.atomics import atomic_operation, atomic_statements
from pdojo.dialect.view.messages import describe_access
from pdojo.dialect.view.nest import Leaf, Nest
from pdojo.errors import LoweringError

HELPER = "pd_atomic_"
"""Prefix of the helpers' names; the operation follows."""


def atomics_of(nest: Nest, found: Launch) -> dict[Leaf, str]:
    """The statements of a launch whose blocks or threads update one cell, with their operations, such as `add.f32`."""
    common = [buffer for buffer in nest.buffers if buffer.memory in (Memory.HEAP, Memory.SHARED)]
    uses = (u for buffer in common for u in uses_together(nest, [buffer], buffer.reuse) if u.leaf in found.leaves)
    return {leaf: atomic_operation(leaf) for leaf in atomic_statements(uses, Collisions())}


def check_atomic(leaf: Leaf, *, tree: bool = False) -> None:
    """Raise LoweringError if a statement cannot be an atomic operation; `tree`: it adds a tree's result."""
    operation = atomic_operation(leaf)
    where = f"blocks accumulate into {describe_access(leaf.output)}, and device code has no atomic operation"
    if not has_atomic(operation):
        raise LoweringError(f"{where} {operation}; give each block a partial result (split_reduction)")
    if leaf.contracted and not tree:
        raise LoweringError(f"{where} that multiplies and adds; make them two statements (expand)")


def helper_of(operation: str) -> str:
    """The name of a helper."""
    return HELPER + operation.split(".")[0]


def cuda_helper(operation: str, types: Mapping[str, str]) -> str:
    """A helper in CUDA; it drops the result, so that the compiler emits `red` (PTX ISA, red)."""
    name, dtype = operation.split(".")
    called = "atomic" + name.removeprefix("u").capitalize()
    return _helper(operation, types, f"{called}(({{word}} *)to, ({{word}})value)", _CUDA_WORDS.get((name, dtype)))


def hip_helper(operation: str, types: Mapping[str, str]) -> str:
    """A helper in HIP. Clang emits the instruction, or a loop if the instruction would flush denormal numbers."""
    called = f"__hip_atomic_fetch_{operation.split('.')[0].removeprefix('u')}"
    order = "__ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT"
    return _helper(operation, types, f"{called}(({{word}} *)to, ({{word}})value, {order})")


_CUDA_WORDS = {
    ("add", "i64"): "unsigned long long",
    ("and", "i64"): "unsigned long long",
    ("or", "i64"): "unsigned long long",
    ("max", "i64"): "long long",
    ("min", "i64"): "long long",
    ("umax", "i64"): "unsigned long long",
    ("umin", "i64"): "unsigned long long",
}
"""The types of 64 bits in CUDA's functions."""


def _helper(operation: str, types: Mapping[str, str], call: str, word: str | None = None) -> str:
    name, dtype = operation.split(".")
    own = types[dtype]
    word = word or (f"u{own}" if name.startswith("u") else own)
    return f"""
/* {_SAID[name]} in memory that other blocks change as well. */
static __device__ __forceinline__ void {HELPER}{name}({own} *to, {own} value) {{
  {call.format(word=word)};
}}
"""


_SAID = {
    "add": "Add to a number",
    "max": "Take the maximum with a number",
    "min": "Take the minimum with a number",
    "umax": "Take the unsigned maximum with a number",
    "umin": "Take the unsigned minimum with a number",
    "and": "Combine bits by `and` with a number",
    "or": "Combine bits by `or` with a number",
}
