"""Defects of recomputing values, of dead code, of swizzles and of tensor units."""

from __future__ import annotations

from qa.mutation.mutant import family
from qa.mutation.operators import Quoted, assigned, never, returns, without

_INLINING = "transforms/values/inlining.py"
_DEAD = "transforms/values/dead_code.py"
_SWIZZLING = "transforms/storage/swizzling.py"

_outline = family(_INLINING, "OutlineOp", "outline_op")
_delete = family(_DEAD, "DeleteOp", "delete_op")
_insert = family(_DEAD, "InsertOp", "insert_op")
_reciprocal = family("transforms/values/reciprocals.py", "Reciprocal", "reciprocal")
_swizzle = family(_SWIZZLING, "SwizzleDim", "swizzle_dim")
_tensor = family("transforms/mapping/tensor.py", "Tensorize.check", "tensorize")

MUTANTS = (
    family(_INLINING, "InlineOp", "inline_op")(
        "inline: in a vector", "A vector scope with two statements.", never("VECTOR")
    ),
    _reciprocal("reciprocal: of another value", "The product takes one over another divisor.", never("same_value")),
    _reciprocal(
        "reciprocal: exact",
        "A kernel that permits no double rounding gets one.",
        returns("Numerics.EXACT", "RECIPROCAL"),
    ),
    family("transforms/values/reciprocals.py", "divisor", "reciprocal", "divide")(
        "reciprocal: any dividend",
        "A quotient is taken for one over its divisor.",
        Quoted('case "arith.divf", (Constant(1), value):', 'case "arith.divf", (_, value):'),
    ),
    family("transforms/values/reciprocals.py", "divisor", "reciprocal", "divide")(
        "reciprocal: any function",
        "A product is taken for a quotient.",
        Quoted('case "arith.divf", (Constant(1), value):', "case _, (Constant(1), value):"),
    ),
    _outline("outline: another function", "The use gets the value of another function.", without("found")),
    _outline("outline: other operands", "The use gets the value of other operands.", never("before.inputs")),
    _outline("outline: other readers", "Others read a temporary that is gone.", without("accesses_of")),
    _outline("outline: another copy", "The use reads an array that is a copy of something else.", never("site.inputs")),
    _delete("delete: what others need", "A value is gone that somebody reads.", assigned("reason", "None")),
    family(_DEAD, "DeleteOp.check", "delete_op")(
        "delete: the last op", "A kernel without statements.", never("siblings")
    ),
    _insert("insert: what others read", "The new op overwrites a value that is needed.", returns("None", "needed")),
    _insert("insert: in a vector", "A vector scope with two statements.", never("VECTOR")),
    family(_SWIZZLING, "SwizzleDim.check", "swizzle_dim")(
        "swizzle: registers", "Registers have no addresses that could be permuted.", never("memory")
    ),
    _swizzle(
        "swizzle: vectors wider than a granule", "A vector access whose lanes are not neighbours.", without("_lanes")
    ),
    _tensor(
        "tensorize: an instruction that the machine lacks", "The instruction is of another machine.", never("available")
    ),
    _tensor("tensorize: rounding is not asked", "The instruction rounds as the kernel forbids it.", never("permits")),
)
