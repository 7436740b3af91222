"""Defects of renaming arrays, of hoisting and of repeated reductions."""

from __future__ import annotations

from qa.mutation.mutant import family
from qa.mutation.operators import Quoted, assigned, never, returns, without

_RENAMING = "transforms/storage/renaming.py"
_HOISTING = "transforms/structure/hoisting.py"
_REDUCTIONS = "transforms/reductions/repeated_reductions.py"

_webs = family("dialect/flow/webs.py", "_webs", "rename_array", "merge_arrays")
_rename = family(_RENAMING, "RenameArray.check", "rename_array")
_merge = family(_RENAMING, "MergeArrays.check", "merge_arrays")
_hoist = family(_HOISTING, "HoistNodes.check", "hoist_nodes")
_alike = family(_HOISTING, "_difference", "hoist_nodes", "sink_nodes")
_inline = family(_REDUCTIONS, "InlineReduction.check", "inline_reduction")
_outline = family(_REDUCTIONS, "OutlineReduction.check", "outline_reduction")
_repetition = family("transforms/reductions/repetition.py", "repetition", "inline_reduction", "outline_reduction")
_is_same = family(_REDUCTIONS, "_is_same", "outline_reduction")

MUTANTS = (
    _webs(
        "webs: writes are apart",
        "A read gets the value of one write only, and others went to another array.",
        Quoted("{number, *writers}", "{number, *writers[:1]}"),
    ),
    _webs("webs: all is written", "The caller's values are looked for in an array of the kernel's.", never("complete")),
    _rename("rename: what the caller gives", "A new array lacks the caller's values.", never("is_given")),
    _rename("rename: what the caller gets", "An output lacks its last values.", never("remains")),
    _merge("merge: values are not asked", "What is needed is overwritten.", returns("None", "merging_violation")),
    _merge("merge: several webs", "The way back separates one of them only.", never("webs")),
    _hoist("hoist: uses of the iteration", "What differs between iterations is computed once.", never("user")),
    _hoist("hoist: guards", "A scope without iterations computes nothing, and now something.", never("_is_plain")),
    _alike("hoist: values that cross", "What each iteration adds to is added to once.", never("found")),
    _alike("hoist: what the rest writes", "The rest changes what is computed once.", assigned("conflict", "None")),
    family("dialect/flow/origins.py", "_carried", "hoist_nodes", "sink_nodes")(
        "origins: no later iteration", "No value crosses iterations.", Quoted("< b", "> b")
    ),
    _inline("inline a sum: changed inputs", "The copy adds what was overwritten.", never("changed")),
    _inline("inline a sum: in a vector", "A vector scope with a reduction.", never("VECTOR")),
    _outline(
        "outline a sum: changed inputs",
        "The earlier reduction added what was overwritten.",
        returns("None", "problems"),
    ),
    _outline("outline a sum: another sum", "The use gets another sum.", never("_is_same")),
    _repetition("sums: other parts", "The value is a part of the sum, or more than it.", never("wrong")),
    _repetition("sums: of themselves", "The copy reads another array than its own.", never("init.reads")),
    family("transforms/reductions/repetition.py", "Repetition.numerics", "inline_reduction", "outline_reduction")(
        "sums: exact", "A kernel that permits no other order of a sum gets one.", returns("Numerics.EXACT")
    ),
    _is_same(
        "outline a sum: other guards",
        "A sum over fewer iterations is taken for the whole.",
        Quoted("guards != {*found.guards}", "False"),
    ),
    _is_same("outline a sum: another function", "The use gets a sum of another function.", never("facts")),
    family(_REDUCTIONS, "_private", "outline_reduction")(
        "outline a sum: other readers", "Others read a sum that is gone.", without("alone")
    ),
)
