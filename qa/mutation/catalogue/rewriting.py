"""Defects of the parts of all rewrites: substitution, guards, identifiers, index arithmetic, the protocol."""

from __future__ import annotations

from qa.mutation.mutant import family
from qa.mutation.operators import Quoted, always, answers, assigned, compared, never, passed, replaced, returns

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
        replaced("g.bounds(extents)[0] < 0", "g.bounds(extents)[0] < -1"),
    ),
    _guards(
        "guards: in any order", "Undoing a move gives another text.", replaced("g.key", "tuple((-k for k in g.key))")
    ),
    _reindex(
        "reindex: guards inside stay",
        "Guards of inner scopes use variables of other scopes.",
        assigned("guard", "list(node.guard)"),
    ),
    _reindex(
        "reindex: only the children",
        "Statements further in keep indices of other scopes.",
        replaced(
            "reindex(node.children, inner_replacements, inner, rewriter)",
            "reindex(node.children, {node.depth: var(len(chain))}, inner, rewriter)",
        ),
    ),
    family(_FILE, "substitute_input", "tile_scope", "collapse_scopes", "split_reduction")(
        "reindex: index values stay",
        "An index used as a value is that of another iteration.",
        returns("Index(expression, dtype)", "dtype"),
    ),
    family(_FILE, "rebuilt", "tile_scope", "swap_dims")(
        "rebuild: hints are lost", "A move clears hints; undoing does not give them back.", passed("hints", "None")
    ),
    family(_FILE, "rebuilt", "tile_scope", "split_scopes")(
        "rebuild: two roundings",
        "Product and sum are rounded separately after any move.",
        passed("contracted", "False"),
    ),
    family(_FILE, "rebuilt", "tile_scope", "split_scopes")(
        "rebuild: identifiers are lost",
        "Later moves of a trace do not find their statement.",
        passed("identifier", "''"),
    ),
    _place(
        "guards: on the outermost scope",
        "A guard sits outside of a scope whose variable it uses.",
        replaced("max(deepest, wanted[0])", "wanted[0]"),
    ),
    family(_FILE, "fresh_id", "tile_scope", "split_scopes")(
        "identifiers: taken ones", "Two nodes have one identifier.", never("taken")
    ),
    _divide(
        "index: the remainder is dropped",
        "A quotient is too small where the remainder carries.",
        replaced("high // divisor", "0"),
    ),
    _divide(
        "index: factors without room",
        "A common factor is divided out though the rest reaches it.",
        compared("high factor", "<="),
    ),
    family(_AFFINE, "Expr.substitute", "collapse_scopes", "tile_scope")(
        "index: divisions are not substituted",
        "An index inside of a division is that of another scope.",
        answers("substitute", "atom.numerator"),
    ),
    family("transforms/base.py", "Transformation._asked", "contract", "split_reduction")(
        "protocol: numerics are not asked", "Rounding changes where the kernel forbids it.", always("permits")
    ),
    family("transforms/base.py", "Transformation._asked", "join_scopes", "reuse_dims")(
        "protocol: every move is legal", "Anything may be done anywhere.", Quoted("if reason is None:", "if True:")
    ),
)
