"""Instructions that compute whole nests: the nest becomes a call, and the instruction's template is linked in.

A template for this backend is LLVM IR text that defines one function with the intrinsic's name and the attribute
`alwaysinline`. It takes a pointer to the first element of each operand, in the order of the meaning's arguments, and
then an i64 for each free stride, in elements. Other declarations and definitions in the template are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Attribute, SSAValue

from pdojo.backends.common.walk import describe
from pdojo.backends.llvm.code import POINTER, memory_type
from pdojo.backends.llvm.memory import Reach
from pdojo.backends.llvm.x86 import Features
from pdojo.dialect.attributes import Memory
from pdojo.dialect.intrinsic import Intrinsic
from pdojo.dialect.machines.pattern import pattern_of
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules.tensor import Operand, match
from pdojo.dialect.view.nest import Nest, Scope
from pdojo.errors import LoweringError

if TYPE_CHECKING:
    import llvmlite.binding as binding

PREFIX = "pdojo.intrinsic."
"""Prefix of template functions' names in the module, so that no kernel has the same name."""
BACKEND = "llvm"


@dataclass(eq=False)
class TensorUnit:
    """The instructions that the code under construction may use, and those already in use."""

    nest: Nest
    known: Mapping[str, Intrinsic]
    features: Features
    used: dict[str, Intrinsic] = field(default_factory=dict[str, Intrinsic])

    def call(self, reach: Reach, scope: Scope) -> None:
        """Append the call that computes a nest. Raises LoweringError if the machine lacks the instruction."""
        intrinsic = self._intrinsic(scope)
        found = match(self.nest, scope, intrinsic)
        if isinstance(found, Reason):
            raise LoweringError(f"{describe(scope)} is not what '{intrinsic.name}' computes: {found}")
        self.used[intrinsic.name] = intrinsic
        code = reach.code
        pointers = [self._pointer(reach, scope, operand) for operand in found.operands]
        strides = [code.integer(stride) for o in found.operands for stride in o.strides]
        code.do(llvm.CallOp(PREFIX + intrinsic.name, *pointers, *strides))

    def _pointer(self, reach: Reach, scope: Scope, operand: Operand) -> SSAValue:
        buffer = operand.array.buffer
        start = reach.code.bind(operand.base)
        if buffer.memory is Memory.REGISTER and (buffer not in reach.framed or not start.is_constant):
            raise LoweringError(
                f"{describe(scope)} works on '{operand.array.name}', which is in registers: they are one thread's and "
                f"are indexed by constants; unroll the scopes around, or move the buffer to the stack"
            )
        return reach.code.pointer(reach.bases[buffer], start, memory_type(operand.array.dtype))

    def _intrinsic(self, scope: Scope) -> Intrinsic:
        where = f"{describe(scope)} is mapped to '{scope.intrinsic}'"
        intrinsic = self.known.get(scope.intrinsic)
        if intrinsic is None:
            listed = ", ".join(self.known) or "none"
            raise LoweringError(f"{where}, which the machine does not have; it has {listed}; take the mapping back")
        missing = [f for f in intrinsic.features if f not in self.features]
        if missing:
            raise LoweringError(f"{where}, which needs {', '.join(missing)}: this processor lacks it; unmap the scope")
        try:
            intrinsic.template(BACKEND)
        except LoweringError as error:
            raise LoweringError(f"{where}, {error}") from None
        return intrinsic


def declarations(used: Iterable[Intrinsic]) -> list[llvm.FuncOp]:
    """Declarations of the templates' functions."""
    return [
        llvm.FuncOp(PREFIX + i.name, llvm.LLVMFunctionType(_arguments(i)), llvm.LinkageAttr("external")) for i in used
    ]


def _arguments(intrinsic: Intrinsic) -> list[Attribute]:
    strides = pattern_of(intrinsic).strides.values()
    free = sum(s == "*" for row in strides for s in row)
    return [*([POINTER] * len(strides)), *([i64] * free)]


def called(module: ModuleOp) -> list[str]:
    """The names of the intrinsics that a module declares, in order."""
    names = (f.sym_name.data for f in module.body.block.ops if isinstance(f, llvm.FuncOp))
    return [name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)]


def link(text: str, used: Iterable[Intrinsic]) -> str:
    """The module with the templates' functions linked in, so that calls can be inlined."""
    import llvmlite.binding as binding

    module = binding.parse_assembly(text)
    for intrinsic in used:
        template = _template(intrinsic)
        template.triple, template.data_layout = module.triple, module.data_layout
        module.link_in(template)
        module.get_function(PREFIX + intrinsic.name).linkage = "internal"
    return str(module)


def _template(intrinsic: Intrinsic) -> binding.ModuleRef:
    """The parsed template with its function renamed. Raises LoweringError for an invalid template."""
    import llvmlite.binding as binding

    where = f"the {BACKEND} template of intrinsic '{intrinsic.name}'"
    try:
        module = binding.parse_assembly(intrinsic.template(BACKEND))
        module.verify()
    except RuntimeError as error:
        raise LoweringError(f"{where} is no LLVM IR: {str(error).strip()}") from None
    function: Any = next((f for f in module.functions if f.name == intrinsic.name and not f.is_declaration), None)
    if function is None:
        raise LoweringError(f"{where} does not define @{intrinsic.name}")
    arguments = ", ".join("ptr" if kind == POINTER else "i64" for kind in _arguments(intrinsic))
    if str(function.global_value_type) != f"void ({arguments})":
        raise LoweringError(
            f"{where} must define void @{intrinsic.name}({arguments}), not {function.global_value_type}"
        )
    if not any(b"alwaysinline" in attribute for attribute in function.attributes):
        raise LoweringError(f"{where} must have the attribute alwaysinline: calls cost more than instructions")
    function.name = PREFIX + intrinsic.name
    return module
