"""Defects of software pipelines, of fusing with a shift, and of the checks of inverses."""

from __future__ import annotations

from qa.mutation.mutant import family
from qa.mutation.operators import assigned, never, replaced, returns

_FILE = "transforms/structure/pipelining.py"
_FUSION = "transforms/structure/fusion.py"
_SHIFTING = "transforms/structure/shifting.py"

_pipeline = family(_FILE, "Pipeline.check", "pipeline")
_back = family(_FILE, "Unpipeline.check", "unpipeline")
_part = family(_SHIFTING, "part_of", "unpipeline", "split_scopes")
_guards = family(_SHIFTING, "Part.guards_in", "pipeline", "join_scopes")
_delayed = family(_SHIFTING, "delayed", "pipeline", "join_scopes")
_from = family(_SHIFTING, "_conflict_from", "unpipeline")
_release = family(_SHIFTING, "Part.release", "unpipeline", "split_scopes")

MUTANTS = (
    _pipeline(
        "pipeline: only the last stage",
        "Stages between the first and the last overtake what they depend on.",
        replaced("range(1, self.stages)", "range(self.stages - 1, self.stages)"),
    ),
    _pipeline(
        "pipeline: one stage fewer",
        "The first part runs ahead of what it depends on by one iteration.",
        replaced("range(1, self.stages)", "range(1, self.stages - 1)"),
    ),
    _pipeline(
        "pipeline: any number of slots",
        "A value computed ahead takes the place of one that is still needed.",
        returns("None", "_slots"),
    ),
    family(_FILE, "Pipeline._shape", "pipeline")(
        "pipeline: a mapped scope",
        "The mapping of the scope is lost, or threads run ahead of each other.",
        never("mapping"),
    ),
    family(_FILE, "Pipeline.numerics", "pipeline")(
        "pipeline: order of sums is exact",
        "Accumulations change order where the kernel forbids it.",
        returns("reassociates(False)"),
    ),
    _back(
        "unpipeline: nothing overtakes", "A value is overwritten before the second part has read it.", never("conflict")
    ),
    _back(
        "unpipeline: storage is not asked", "In fewer iterations values share a slot.", returns("None", "storage_after")
    ),
    family(_FILE, "Unpipeline._parts", "unpipeline")(
        "unpipeline: parts of other lengths", "One part runs as often as the other.", never("first.guard")
    ),
    _part("parts: no beginning", "A part that runs from the start is taken to be later.", never("delay start")),
    _guards("parts: the second starts at once", "The part runs in iterations before its first.", never("delay")),
    _guards("parts: the first never ends", "The part runs in iterations after its last.", never("end")),
    _guards(
        "parts: guards are lost", "Iterations run that the guard of the scope left out.", replaced("self.guard", "()")
    ),
    _delayed(
        "parts: not later after all",
        "Conflicts are asked about iterations that do not meet.",
        assigned("value", "{depth: var(depth)}"),
    ),
    _delayed(
        "parts: the first iterations of the later part",
        "Conflicts with iterations that do not exist are found.",
        never("delay 0"),
    ),
    _from(
        "delays: those of the first part are left out",
        "Conflicts of many delays are missed where the second part comes sooner.",
        replaced("max(0, -delay)", "0"),
    ),
    family(_SHIFTING, "conflict_while_delayed", "pipeline", "unpipeline")(
        "delays: the wrong side of a bound",
        "Conflicts between two of many delays are missed.",
        replaced("(min(delays), AFTER), (max(delays), BEFORE)", "(min(delays), BEFORE), (max(delays), AFTER)"),
    ),
    _release(
        "parts: guards stay where they were",
        "Undoing a pipeline leaves guards of the scope on its loops as well.",
        never("carrier wrapper"),
    ),
    family(_FUSION, "JoinScopes._shifted", "join_scopes")(
        "shift: dependences do not matter", "The second scope reads what the first writes later.", never("conflict")
    ),
    family(_FUSION, "JoinScopes._shifted", "join_scopes")(
        "shift: storage is not asked",
        "In the order with a shift, values share a slot.",
        returns("None", "storage_after"),
    ),
    family(_FUSION, "SplitScopes._shifted", "split_scopes")(
        "shift: undone against a dependence",
        "The first part runs before the iterations of the second that it needs.",
        never("conflict"),
    ),
)
