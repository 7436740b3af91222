"""Defects of computing values again, of dead code, of swizzles and of tensor units."""

from __future__ import annotations

from qa.mutation.mutant import family

_INLINING = "transforms/inlining.py"
_DEAD = "transforms/dead_code.py"
_SWIZZLING = "transforms/swizzling.py"

_outline = family(_INLINING, "OutlineOp", "outline_op")
_delete = family(_DEAD, "DeleteOp", "delete_op")
_insert = family(_DEAD, "InsertOp", "insert_op")
_reciprocal = family("transforms/reciprocals.py", "Reciprocal", "reciprocal")
_swizzle = family(_SWIZZLING, "SwizzleDim", "swizzle_dim")
_tensor = family("transforms/mapping/tensor.py", "Tensorize.check", "tensorize")

MUTANTS = (
    family(_INLINING, "InlineOp", "inline_op")(
        "inline: in a vector",
        "A vector scope with two statements.",
        "if site.parent is not None and site.parent.mapping is Mapping.VECTOR:",
        "if False:",
    ),
    _reciprocal(
        "reciprocal: of another value",
        "The product takes one over another divisor.",
        "if not same_value(site.inputs[1], value):",
        "if False:",
    ),
    _reciprocal(
        "reciprocal: exact",
        "A kernel that permits no double rounding gets one.",
        "return Numerics.RECIPROCAL",
        "return Numerics.EXACT",
    ),
    family("transforms/reciprocals.py", "divisor", "reciprocal", "divide")(
        "reciprocal: any dividend",
        "A quotient is taken for one over its divisor.",
        'case "arith.divf", (Constant(1), value):',
        'case "arith.divf", (_, value):',
    ),
    family("transforms/reciprocals.py", "divisor", "reciprocal", "divide")(
        "reciprocal: any function",
        "A product is taken for a quotient.",
        'case "arith.divf", (Constant(1), value):',
        "case _, (Constant(1), value):",
    ),
    _outline(
        "outline: another function",
        "The use gets the value of another function.",
        "if before.function != found.producer.function or before.accumulate is not None:",
        "if before.accumulate is not None:",
    ),
    _outline(
        "outline: other operands",
        "The use gets the value of other operands.",
        "if not all(map(same_value, before.inputs, found.inputs)):",
        "if False:",
    ),
    _outline(
        "outline: other readers",
        "Others read a temporary that is gone.",
        "if buffer.op is None or len(buffer.names) > 1 or len(accesses_of(program.nest, buffer)) != 2:",
        "if buffer.op is None or len(buffer.names) > 1:",
    ),
    _outline(
        "outline: another copy",
        "The use reads an array that is a copy of something else.",
        "if not same_value(site.inputs[self.input], found.inputs[0]):",
        "if False:",
    ),
    _delete(
        "delete: what others need",
        "A value is gone that somebody reads.",
        "if (reason := needed(program, site)) is not None:",
        "if (reason := None) is not None:",
    ),
    _delete(
        "delete: the last op",
        "A kernel without statements.",
        "if len(program.nest.siblings(node)) == 1:",
        "if False:",
    ),
    _insert(
        "insert: what others read",
        "The new op overwrites a value that is needed.",
        "return needed(after, leaf)",
        "return None",
    ),
    _insert(
        "insert: in a vector",
        "A vector scope with two statements.",
        "if site.parent is not None and site.parent.mapping is Mapping.VECTOR:",
        "if False:",
    ),
    _swizzle(
        "swizzle: registers",
        "Registers have no addresses that could be permuted.",
        "if buffer.memory is Memory.REGISTER:",
        "if False:",
    ),
    _swizzle(
        "swizzle: vectors wider than a granule",
        "A vector access whose lanes are not neighbours.",
        "return self._lanes(program, site, swizzle) or hinted(program, buffer)",
        "return hinted(program, buffer)",
    ),
    _tensor(
        "tensorize: an instruction that the machine lacks",
        "The instruction is of another machine.",
        "if not intrinsic.available(machine.features):",
        "if False:",
    ),
    _tensor(
        "tensorize: rounding is not asked",
        "The instruction rounds as the kernel forbids it.",
        "if not program.permits(numerics):",
        "if False:",
    ),
)
