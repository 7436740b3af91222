"""Defects of software pipelines, of fusing with a shift, and of what asks whether a move comes back."""

from __future__ import annotations

from qa.mutation.mutant import family

_FILE = "transforms/pipelining.py"
_FUSION = "transforms/fusion.py"
_SHIFTING = "transforms/shifting.py"
_REVERSAL = "transforms/reversal.py"

_pipeline = family(_FILE, "Pipeline.check", "pipeline")
_back = family(_FILE, "Unpipeline.check", "unpipeline")
_part = family(_SHIFTING, "part_of", "unpipeline", "split_scopes")
_guards = family(_SHIFTING, "Part.guards_in", "pipeline", "join_scopes")
_delayed = family(_SHIFTING, "delayed", "pipeline", "join_scopes")
_release = family(_SHIFTING, "Part.release", "unpipeline", "split_scopes")

MUTANTS = (
    _pipeline(
        "pipeline: only the last stage",
        "Stages between the first and the last overtake what they depend on.",
        "for ahead in range(1, self.stages):",
        "for ahead in range(self.stages - 1, self.stages):",
    ),
    _pipeline(
        "pipeline: one stage fewer",
        "The first part runs ahead of what it depends on by one iteration.",
        "for ahead in range(1, self.stages):",
        "for ahead in range(1, self.stages - 1):",
    ),
    _pipeline(
        "pipeline: any number of slots",
        "A value computed ahead takes the place of one that is still needed.",
        "return None if lost is None else self._slots(site) or lost",
        "return None",
    ),
    family(_FILE, "Pipeline.shape", "pipeline")(
        "pipeline: a mapped scope",
        "The mapping of the scope is lost, or threads run ahead of each other.",
        "if site.mapping is not Mapping.SEQUENTIAL:",
        "if False:",
    ),
    family(_FILE, "Pipeline.numerics", "pipeline")(
        "pipeline: order of sums is exact",
        "Accumulations change order where the kernel forbids it.",
        "any(program.reorders(first, second, relation, d) for d in later)",
        "False",
    ),
    _back(
        "unpipeline: nothing overtakes",
        "A value is overwritten before the second part has read it.",
        "if conflict is not None:",
        "if False:",
    ),
    _back(
        "unpipeline: storage is not asked",
        "In fewer iterations values share a slot.",
        " or storage_after(program, self, site, changed)",
        "",
    ),
    family(_FILE, "Unpipeline._parts", "unpipeline")(
        "unpipeline: parts of other lengths",
        "One part runs as often as the other.",
        "or (first.extent, first.guard) != (second.extent, second.guard)",
        "or False",
    ),
    _part(
        "parts: no beginning",
        "A part that runs from the start is taken to be later.",
        "if delay and start not in guards:",
        "if False:",
    ),
    _guards(
        "parts: the second starts at once",
        "The part runs in iterations before its first.",
        "if self.delay:\n            found.append(own - self.delay)",
        "if False:\n            found.append(own - self.delay)",
    ),
    _guards(
        "parts: the first never ends",
        "The part runs in iterations after its last.",
        "if self.end < total:",
        "if False:",
    ),
    _guards(
        "parts: guards are lost",
        "Iterations run that the guard of the scope left out.",
        "for g in self.guard]",
        "for g in ()]",
    ),
    _delayed(
        "parts: not later after all",
        "Conflicts are asked about iterations that do not meet.",
        "value = {depth: var(depth) - delay}",
        "value = {depth: var(depth)}",
    ),
    _delayed(
        "parts: the first iterations of the later part",
        "Conflicts with iterations that do not exist are found.",
        "guards += [var(depth) - delay] if delay > 0 else []",
        "guards += []",
    ),
    _release(
        "parts: guards stay where they were",
        "Undoing a pipeline leaves guards of the scope on its loops as well.",
        "if carrier is not None and not self.wrapper:",
        "if False:",
    ),
    family(_FUSION, "JoinScopes._shifted", "join_scopes")(
        "shift: dependences do not matter",
        "The second scope reads what the first writes later.",
        "if conflict is not None:",
        "if False:",
    ),
    family(_FUSION, "JoinScopes._shifted", "join_scopes")(
        "shift: storage is not asked",
        "In the order with a shift, values share a slot.",
        "return irreversible(program, self, site, leaves) or storage_after(program, self, site, changed)",
        "return irreversible(program, self, site, leaves)",
    ),
    family(_FUSION, "SplitScopes._shifted", "split_scopes")(
        "shift: undone against a dependence",
        "The first part runs before the iterations of the second that it needs.",
        "if conflict is not None:",
        "if False:",
    ),
    family(_REVERSAL, "_comes_back", "join_scopes", "pipeline", "unpipeline")(
        "reversal: another text is good enough",
        "Undoing gives another program.",
        "return _letters(back) == _letters(program)",
        "return True",
    ),
    family(_REVERSAL, "irreversible", "join_scopes", "pipeline", "unpipeline")(
        "reversal: guards always come back",
        "Undoing gives another program.",
        " and not any(leaf.guards for leaf in leaves)",
        "",
    ),
)
