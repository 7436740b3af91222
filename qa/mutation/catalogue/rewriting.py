"""Defects of what all rewrites share: substitution, guards, identifiers, index arithmetic, the protocol itself."""

from __future__ import annotations

from qa.mutation.mutant import family

_FILE = "dialect/rewriting.py"
_AFFINE = "dialect/affine.py"

_guards = family(_FILE, "set_guard", "tile_scope", "collapse_scopes", "swap_scopes")
_reindex = family(_FILE, "reindex", "tile_scope", "collapse_scopes", "swap_scopes", "split_scopes")
_place = family(_FILE, "place_guards", "tile_scope", "collapse_scopes", "swap_scopes")
_divide = family(_AFFINE, "floordiv", "collapse_scopes", "merge_reduction")

MUTANTS = (
    _guards(
        "guards: those that just hold are dropped",
        "An iteration runs that the guard left out.",
        "g.bounds(extents)[0] < 0",
        "g.bounds(extents)[0] < -1",
    ),
    _guards(
        "guards: in any order",
        "Undoing a move gives another text.",
        "key=lambda g: g.key",
        "key=lambda g: tuple(-k for k in g.key)",
    ),
    _reindex(
        "reindex: guards inside stay",
        "Guards of inner scopes use variables of other scopes.",
        "guard = [g.substitute(inner_replacements, (*extents, node.extent)) for g in node.guard]",
        "guard = list(node.guard)",
    ),
    _reindex(
        "reindex: only the children",
        "Statements further in keep indices of other scopes.",
        "reindex(node.children, inner_replacements, inner, rewriter)",
        "reindex(node.children, {node.depth: var(len(chain))}, inner, rewriter)",
    ),
    family(_FILE, "substitute_input", "tile_scope", "collapse_scopes", "split_reduction")(
        "reindex: index values stay",
        "An index used as a value is that of another iteration.",
        "return Index(expression.substitute(replacements, extents), dtype)",
        "return Index(expression, dtype)",
    ),
    family(_FILE, "rebuilt", "tile_scope", "swap_dims")(
        "rebuild: hints are lost",
        "A move clears hints; undoing does not give them back.",
        "hints=[leaf.output.hints, *reads],",
        "hints=None,",
    ),
    family(_FILE, "rebuilt", "tile_scope", "split_scopes")(
        "rebuild: two roundings",
        "Product and sum are rounded separately after any move.",
        "contracted=leaf.contracted,",
        "contracted=False,",
    ),
    family(_FILE, "rebuilt", "tile_scope", "split_scopes")(
        "rebuild: identifiers are lost",
        "Later moves of a trace do not find their statement.",
        "identifier=leaf.id,",
        'identifier="",',
    ),
    _place(
        "guards: on the outermost scope",
        "A guard sits outside of a scope whose variable it uses.",
        "placed[max(deepest, wanted[0])].append(guard)",
        "placed[wanted[0]].append(guard)",
    ),
    family(_FILE, "fresh_id", "tile_scope", "split_scopes")(
        "identifiers: taken ones",
        "Two nodes have one identifier.",
        "while base in taken:",
        "while False:",
    ),
    family("transforms/identifiers.py", "identifiers_reason", "tile_scope", "split_reduction")(
        "identifiers: given ones may be taken",
        "Two nodes have one identifier.",
        "if identifier in taken or identifier in given[:position]:",
        "if identifier in given[:position]:",
    ),
    family("transforms/identifiers.py", "identifiers_reason", "split_reduction", "tile_scope")(
        "identifiers: the same twice",
        "Two new nodes have one identifier.",
        "if identifier in taken or identifier in given[:position]:",
        "if identifier in taken:",
    ),
    _divide(
        "index: the remainder is dropped",
        "A quotient is too small where the remainder carries.",
        "if low // divisor == high // divisor:",
        "if low // divisor == 0:",
    ),
    _divide(
        "index: factors without room",
        "A common factor is divided out though the rest reaches it.",
        "if low >= 0 and high < factor:",
        "if low >= 0 and high <= factor:",
    ),
    family(_AFFINE, "Expr.substitute", "collapse_scopes", "tile_scope")(
        "index: divisions are not substituted",
        "An index inside of a division is that of another scope.",
        "atom.numerator.substitute(replacements, extents)",
        "atom.numerator",
    ),
    family("transforms/base.py", "Transformation._asked", "contract", "split_reduction")(
        "protocol: numerics are not asked",
        "Rounding changes where the kernel forbids it.",
        "if program.permits(numerics):",
        "if True:",
    ),
    family("transforms/base.py", "Transformation._asked", "join_scopes", "reuse_dims")(
        "protocol: every move is legal",
        "Anything may be done anywhere.",
        "if reason is None:",
        "if True:",
    ),
)
