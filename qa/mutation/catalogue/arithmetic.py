"""Defects of partial results and of fused multiply-add."""

from __future__ import annotations

from qa.mutation.mutant import family

_REDUCTIONS = "transforms/reductions.py"
_CONTRACTION = "transforms/contraction.py"

_parts = family(_REDUCTIONS, "SplitReduction.check", "split_reduction")
_partials = family(_REDUCTIONS, "SplitReduction._partials_reason", "split_reduction")
_rewrite = family(_REDUCTIONS, "SplitReduction.rewrite", "split_reduction")
_merge = family(_REDUCTIONS, "_mismatch", "merge_reduction")
_SUMS = "transforms/sums.py"
_contract = family(_CONTRACTION, "Contract.check", "contract")
_expand = family(_CONTRACTION, "Expand.check", "expand")
_misplaced = family(_CONTRACTION, "Expand._misplaced", "expand")

MUTANTS = (
    _parts(
        "partial results: the total is read",
        "The statement reads the total while it is in parts.",
        "if any(a.array.buffer is leaf.output.array.buffer for a in leaf.reads):",
        "if False:",
    ),
    _parts(
        "partial results: divisions that do not come back",
        "Undoing gives another spelling of an index.",
        " or irreversible_tiling(site, [leaf], self.size)",
        "",
    ),
    _partials(
        "partial results: shared by threads",
        "Threads write each other's partial results.",
        "if scope is not None:",
        "if False:",
    ),
    _rewrite(
        "partial results: no guard on the tail",
        "Terms beyond the end are added.",
        "if site.extent % self.size:",
        "if False:",
    ),
    _rewrite(
        "partial results: outer guards are lost",
        "Terms are added that the guard of the scope left out.",
        "guards = [g.substitute({depth: value}, extents) for g in site.guard]",
        "guards = [const(0) for _ in ()]",
    ),
    _rewrite(
        "partial results: every neutral element is zero",
        "Partial products start at zero, minima and maxima too.",
        "Constant(identity_value(leaf.accumulate, total.array.dtype), total.array.dtype)",
        "Constant(0, total.array.dtype)",
    ),
    family(_REDUCTIONS, "SplitReduction.numerics", "split_reduction")(
        "partial results: order of sums is exact",
        "A sum is reassociated where the kernel forbids it.",
        "return reassociates(not ACCUMULATIONS[leaf.accumulate].exact)",
        "return reassociates(False)",
    ),
    _merge(
        "merge: partial results start anywhere",
        "What they started with is lost.",
        "if start.function is not None or start.inputs != (identity,):",
        "if False:",
    ),
    _merge(
        "merge: other readers",
        "Others read partial results that are gone.",
        " or len(uses) != 3 or not plain:",
        " or not plain:",
    ),
    _merge(
        "merge: different operations",
        "Products are added up.",
        "combine.accumulate != step.accumulate or ",
        "",
    ),
    _merge(
        "merge: the total is read",
        "The statement reads the total while it accumulates.",
        "if any(a.array.buffer is combine.output.array.buffer for a in step.reads):",
        "if False:",
    ),
    _merge(
        "merge: a combination that computes",
        "What the combination did to the partial results is lost.",
        "if combine.function is not None or ",
        "if ",
    ),
    _merge(
        "merge: other slots",
        "Partial results that were combined elsewhere are taken for these.",
        "if read.index != slot or step.output.index != expected:",
        "if step.output.index != expected:",
    ),
    family(_REDUCTIONS, "_partials", "merge_reduction")(
        "merge: guarded initialisation",
        "Partial results that were left out count.",
        "if zero.guard or final.guard or not zero.extent == inner.extent == final.extent:",
        "if not zero.extent == inner.extent == final.extent:",
    ),
    family(_REDUCTIONS, "_partials", "merge_reduction")(
        "merge: different extents",
        "Partial results that were not combined count.",
        "if zero.guard or final.guard or not zero.extent == inner.extent == final.extent:",
        "if zero.guard or final.guard:",
    ),
    family(_REDUCTIONS, "_partials", "merge_reduction")(
        "merge: mapped scopes",
        "Undoing gives sequential scopes where threads or lanes were.",
        "if any(s.mapping is not Mapping.SEQUENTIAL for s in (zero, site, inner, final)):",
        "if False:",
    ),
    family(_CONTRACTION, "_term", "contract")(
        "contract: another element",
        "The product that is added is not the one before.",
        "if access.key == product.output.key",
        "if access",
    ),
    _contract(
        "contract: a second reader",
        "Another statement reads a product that is gone.",
        "if term.array.intent is not None or len(accesses_of(program.nest, term.array.buffer)) != 2:",
        "if term.array.intent is not None:",
    ),
    _contract(
        "contract: an output",
        "An output of the kernel is never written.",
        "if term.array.intent is not None or len(accesses_of(program.nest, term.array.buffer)) != 2:",
        "if len(accesses_of(program.nest, term.array.buffer)) != 2:",
    ),
    _contract(
        "contract: functions of the product",
        "What the sum did to the product is lost.",
        "if not site.reads or (site.accumulate is not None and site.function is not None):",
        "if not site.reads:",
    ),
    _contract(
        "contract: hints are lost",
        "Undoing does not give the hints back.",
        "if term.hints.data or product.output.hints.data:",
        "if False:",
    ),
    family(_CONTRACTION, "Contract.rewrite", "contract")(
        "contract: the other operand",
        "The product is added to itself.",
        "site.inputs[1 - _position(site, product)]",
        "site.inputs[_position(site, product)]",
    ),
    family(_CONTRACTION, "Contract.numerics", "contract")(
        "contract: one rounding is exact",
        "Rounding changes where the kernel forbids it.",
        "Numerics.CONTRACTS",
        "Numerics.EXACT",
    ),
    family(_CONTRACTION, "Expand.numerics", "expand")(
        "expand: two roundings are exact",
        "Rounding changes where the kernel forbids it.",
        "Numerics.CONTRACTS",
        "Numerics.EXACT",
    ),
    family(_SUMS, "AbsorbInit.check", "absorb_init")(
        "absorb: another element",
        "What was assigned before goes, and was for something else.",
        "if first.output.key != site.output.key:",
        "if False:",
    ),
    family(_SUMS, "AbsorbInit.check", "absorb_init")(
        "absorb: the first value is added",
        "What is added is the value from before the first one.",
        "if _shares(site.output, (*first.reads, *site.reads)):",
        "if False:",
    ),
    family(_SUMS, "ForwardSum.check", "forward_sum")(
        "forward: another element",
        "What is copied was not accumulated.",
        "if step.output.key != site.reads[0].key:",
        "if False:",
    ),
    family(_SUMS, "ForwardSum.check", "forward_sum")(
        "forward: what is added lies where the copy goes",
        "The copy overwrites what the step adds.",
        "if _shares(site.output, (step.output, *step.reads)) or _shares(step.output, step.reads):",
        "if _shares(step.output, step.reads):",
    ),
    family(_SUMS, "ForwardSum.rewrite", "forward_sum")(
        "forward: behind the step",
        "The step is made twice.",
        "InsertPoint.before(step.op)",
        "InsertPoint.after(step.op)",
    ),
    family(_SUMS, "CopySum.check", "copy_sum")(
        "copy: another value",
        "The copy is of something else.",
        "if same is None or same[0] != site.function or not _are_equal(same[1], site.inputs):",
        "if same is None or same[0] != site.function:",
    ),
    family(_SUMS, "_are_equal", "copy_sum")(
        "copy: zeros without signs",
        "A zero of the other sign is added.",
        "repr(i) == repr(j)",
        "i == j",
    ),
    family(_SUMS, "_assignment", "absorb_init", "forward_sum")(
        "sums: operands of a fused product",
        "A factor is the old value.",
        "[*inputs[:-1], old]",
        "[old, *inputs[:-1]]",
    ),
    _expand(
        "expand: a temporary in use",
        "The product overwrites a value that is needed.",
        "if accesses_of(program.nest, array.buffer):",
        "if False:",
    ),
    _expand(
        "expand: out of bounds",
        "The product is written outside of the temporary.",
        "if low < 0 or high >= extent:",
        "if low < 0:",
    ),
    _misplaced(
        "expand: threads share the temporary",
        "A thread adds the product of another.",
        "if scope is not None:",
        "if False:",
    ),
    _misplaced(
        "expand: in a vector",
        "A vector scope with two statements.",
        "if site.parent is not None and site.parent.mapping is Mapping.VECTOR:",
        "if False:",
    ),
    _misplaced(
        "expand: registers with changing indices",
        "A loop indexes registers.",
        "if array.buffer.memory is Memory.REGISTER and not",
        "if False and not",
    ),
)
