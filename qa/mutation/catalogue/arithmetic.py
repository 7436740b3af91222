"""Defects of partial results and of fused multiply-add."""

from __future__ import annotations

from qa.mutation.mutant import family
from qa.mutation.operators import always, assigned, never, replaced, returns, without

_REDUCTIONS = "transforms/reductions/partial_results.py"
_CONTRACTION = "transforms/reductions/contraction.py"

_parts = family(_REDUCTIONS, "SplitReduction.check", "split_reduction")
_partials = family(_REDUCTIONS, "SplitReduction._partials_reason", "split_reduction")
_rewrite = family(_REDUCTIONS, "SplitReduction.rewrite", "split_reduction")
_merge = family(_REDUCTIONS, "_mismatch", "merge_reduction")
_SUMS = "transforms/reductions/sums.py"
_contract = family(_CONTRACTION, "Contract.check", "contract")
_expand = family(_CONTRACTION, "Expand.check", "expand")
_misplaced = family(_CONTRACTION, "Expand._misplaced", "expand")

MUTANTS = (
    _parts("partial results: the total is read", "The statement reads the total while it is in parts.", never("reads")),
    _partials("partial results: shared by threads", "Threads write each other's partial results.", never("scope")),
    _rewrite("partial results: no guard on the tail", "Terms beyond the end are added.", never("extent")),
    _rewrite(
        "partial results: outer guards are lost",
        "Terms are added that the guard of the scope left out.",
        assigned("guards", "[const(0) for _ in ()]"),
    ),
    _rewrite(
        "partial results: every neutral element is zero",
        "Partial products start at zero, minima and maxima too.",
        assigned("identity", "Constant(0, total.array.dtype)"),
    ),
    family(_REDUCTIONS, "SplitReduction.numerics", "split_reduction")(
        "partial results: order of sums is exact",
        "A sum is reassociated where the kernel forbids it.",
        returns("reassociates(False)"),
    ),
    _merge(
        "merge: partial results start anywhere", "What they started with is lost.", never("start.function start.inputs")
    ),
    _merge("merge: other readers", "Others read partial results that are gone.", without("uses")),
    _merge("merge: different operations", "Products are added up.", without("combine.accumulate")),
    _merge("merge: the total is read", "The statement reads the total while it accumulates.", never("step.reads")),
    _merge(
        "merge: a combination that computes",
        "What the combination did to the partial results is lost.",
        without("combine.function"),
    ),
    _merge(
        "merge: other slots", "Partial results that were combined elsewhere are taken for these.", without("read.index")
    ),
    family(_REDUCTIONS, "_partials", "merge_reduction")(
        "merge: guarded initialisation",
        "Partial results that were left out count.",
        replaced(
            "zero.guard or final.guard or (not zero.extent == inner.extent == final.extent)",
            "not zero.extent == inner.extent == final.extent",
        ),
    ),
    family(_REDUCTIONS, "_partials", "merge_reduction")(
        "merge: different extents", "Partial results that were not combined count.", without("extent")
    ),
    family(_REDUCTIONS, "_partials", "merge_reduction")(
        "merge: mapped scopes", "Undoing gives sequential scopes where threads or lanes were.", never("mapping")
    ),
    family(_CONTRACTION, "_term", "contract")(
        "contract: another element", "The product that is added is not the one before.", always("key")
    ),
    _contract("contract: a second reader", "Another statement reads a product that is gone.", without("accesses_of")),
    _contract("contract: an output", "An output of the kernel is never written.", without("intent")),
    _contract(
        "contract: functions of the product", "What the sum did to the product is lost.", without("accumulate function")
    ),
    _contract("contract: hints are lost", "Undoing does not give the hints back.", never("term product")),
    family(_CONTRACTION, "Contract.rewrite", "contract")(
        "contract: the other operand",
        "The product is added to itself.",
        replaced("1 - _position(site, product)", "_position(site, product)"),
    ),
    family(_CONTRACTION, "Contract.numerics", "contract")(
        "contract: one rounding is exact", "Rounding changes where the kernel forbids it.", returns("Numerics.EXACT")
    ),
    family(_CONTRACTION, "Expand.numerics", "expand")(
        "expand: two roundings are exact", "Rounding changes where the kernel forbids it.", returns("Numerics.EXACT")
    ),
    family(_SUMS, "AbsorbInit.check", "absorb_init")(
        "absorb: another element", "What was assigned before goes, and was for something else.", never("key")
    ),
    family(_SUMS, "AbsorbInit.check", "absorb_init")(
        "absorb: the first value is added", "What is added is the value from before the first one.", never("_shares")
    ),
    family(_SUMS, "ForwardSum.check", "forward_sum")(
        "forward: another element", "What is copied was not accumulated.", never("key")
    ),
    family(_SUMS, "ForwardSum.check", "forward_sum")(
        "forward: what is added lies where the copy goes",
        "The copy overwrites what the step adds.",
        without("site.output"),
    ),
    family(_SUMS, "ForwardSum.rewrite", "forward_sum")(
        "forward: behind the step", "The step is made twice.", replaced("InsertPoint.before", "InsertPoint.after")
    ),
    family(_SUMS, "CopySum.check", "copy_sum")(
        "copy: another value", "The copy is of something else.", without("_are_equal")
    ),
    family(_SUMS, "_are_equal", "copy_sum")(
        "copy: zeros without signs", "A zero of the other sign is added.", replaced("repr(i) == repr(j)", "i == j")
    ),
    family(_SUMS, "_assignment", "absorb_init", "forward_sum")(
        "sums: operands of a fused product",
        "A factor is the old value.",
        replaced("[*inputs[:-1], old]", "[old, *inputs[:-1]]"),
    ),
    _expand("expand: a temporary in use", "The product overwrites a value that is needed.", never("accesses_of")),
    _expand("expand: out of bounds", "The product is written outside of the temporary.", without("high")),
    _misplaced("expand: threads share the temporary", "A thread adds the product of another.", never("scope")),
    _misplaced("expand: in a vector", "A vector scope with two statements.", never("VECTOR")),
    _misplaced("expand: registers with changing indices", "A loop indexes registers.", never("memory")),
)
