"""The function of a kernel with versions: it compares the sizes of a call with ranges, and calls one version."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import SSAValue

from pdojo.backends.common.placement import plan_memory
from pdojo.backends.llvm.code import POINTER, FunctionCode
from pdojo.backends.llvm.kernel_functions import SHARED_BYTES, THREAD_BYTES
from pdojo.dialect.affine import Size
from pdojo.dialect.view.storage import numbers_of
from pdojo.dialect.view.versions import Versions


def dispatch_function(versions: Versions) -> llvm.FuncOp:
    """The function, with the arguments of each version's; its workspace is the greatest of the versions'."""
    arrays = [b for b in versions.nests[0].buffers if b.op is None]
    sizes = numbers_of(versions.nests[0])
    types = [*([POINTER] * len(arrays)), *([i64] * len(sizes)), POINTER, i32]
    code = FunctionCode(versions.symbol, types)
    values = dict(zip(sizes, code.arguments[len(arrays) :], strict=False))
    for nest, tested in versions.tests():
        after = code.skip_unless(_fits(code, tested, values)) if tested else None
        code.do(llvm.CallOp(nest.symbol, *code.arguments))
        code.do(llvm.ReturnOp())
        if after is not None:
            code.region.add_block(after)
            code.enter(after)
    function = llvm.FuncOp(
        versions.symbol, llvm.LLVMFunctionType(types), llvm.LinkageAttr("external"), body=code.region
    )
    plans = [plan_memory(nest) for nest in versions.nests]
    function.attributes[SHARED_BYTES] = IntegerAttr(max(plan.shared_bytes for plan in plans), 64)
    function.attributes[THREAD_BYTES] = IntegerAttr(max(plan.thread_bytes for plan in plans), 64)
    return function


def _fits(code: FunctionCode, sizes: list[Size], values: Mapping[str, SSAValue]) -> SSAValue:
    """Whether all sizes are in their ranges (i1)."""
    found = code.integer(1, 1)
    for size in sizes:
        value = values[size.name]
        checks = [
            code.compare("sge", value, code.integer(size.low)),
            code.compare("sle", value, code.integer(size.high)),
        ]
        if size.step > 1:
            rest = code.emit(llvm.URemOp(value, code.integer(size.step)))
            checks.append(code.compare("eq", rest, code.integer(0)))
        for check in checks:
            found = code.emit(llvm.AndOp(found, check))
    return found
