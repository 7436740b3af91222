"""Defects of filling tails, and of dropping and adding guards."""

from __future__ import annotations

from qa.mutation.mutant import family
from qa.mutation.operators import Quoted, assigned, never, returns, without

_MOVES = ("drop_guard", "add_guard")
_TAILS = "transforms/structure/tails.py"
_EXCLUDED = "dialect/flow/excluded.py"
_CONSTANTS = "dialect/flow/constants.py"

_fill = family(_TAILS, "FillTail.check", "fill_tail")
_lacking = family(_EXCLUDED, "lacking", "drop_guard")
_harm = family(_EXCLUDED, "harm", *_MOVES)
_needed = family(_EXCLUDED, "_needed", *_MOVES)
_read = family(_CONSTANTS, "_read", *_MOVES)
_applied = family(_CONSTANTS, "_applied", *_MOVES)

MUTANTS = (
    _fill("fill: values that are read", "A fill overwrites what another statement reads.", returns("None", "needed")),
    family(_TAILS, "_needless", "fill_tail")(
        "fill: the tile stays as it is",
        "Guards of the tile stay, those of other tiles go.",
        Quoted("-one[0]", "one[0]"),
    ),
    family(_TAILS, "strays", "drop_guard")("drop: bounds", "What has no element is accessed.", never("found")),
    _lacking("drop: values that nothing wrote", "An instance reads what nothing has written.", never("found")),
    _harm("drop: plain writes", "An instance overwrites what others read.", never("leaf.accumulate")),
    _harm("drop: any constant", "An instance adds what is not neutral.", without("is_neutral")),
    _harm(
        "drop: signed zeros", "A kernel that permits exact moves only loses the sign of a zero.", without("keeps_zeros")
    ),
    _harm("drop: trees", "A tree of lanes gets another form, unasked.", without("_in_tree")),
    _needed("drop: what the caller gets", "An instance writes what an output keeps.", assigned("caller", "None")),
    family("dialect/flow/origins.py", "Origins._parts", *_MOVES)(
        "drop: sums that go on",
        "A value that passes through another accumulation does not count.",
        Quoted("gathered(uses, places, caller)", "flow(uses, places, caller).reverse()"),
    ),
    _read(
        "constants: values of the caller", "Elements that nothing wrote have the constant, too.", without("complete")
    ),
    _read("constants: sums", "A sum is its last term.", without("accumulate")),
    _read(
        "constants: one of several", "A tile of several constants has one of them.", Quoted("len(found) == 1", "found")
    ),
    _applied(
        "constants: zero times anything", "0 times NaN is 0.", Quoted("name in _ABSORBING", "name.startswith('mul')")
    ),
    family(_CONSTANTS, "is_neutral", *_MOVES)("constants: neutral", "Every constant is neutral.", returns("True")),
)
