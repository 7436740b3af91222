"""Do reuse flags, shared buffers and private copies keep every value until its last read?

For every flow from the last write w of an element to a read r, no other instance may write r's cell in between: the
flow over cells must be the flow over elements. And a value in a private copy must be written and read in the same
iteration of the threaded scope that owns the copy. islpy computes both flows and compares them, if no shortcut knows
the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pdojo.dialect.affine import Expr
from pdojo.dialect.flow.flows import Caller, Instance, flow, sampled
from pdojo.dialect.flow.integer_sets import Answers, bounded, read_set, variables, within_sizes
from pdojo.dialect.flow.shortcut import answered
from pdojo.dialect.flow.uses import Use, describe_use
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.messages import describe_access
from pdojo.dialect.view.paths import relative_paths

if TYPE_CHECKING:
    import islpy as isl


UseKey: TypeAlias = tuple[object, ...]


@dataclass(frozen=True)
class StorageQuestion:
    """Does every value of a buffer survive until its last read?"""

    uses: Sequence[Use]
    """All accesses, with their cells."""
    reuse: Sequence[int]
    """The slots of each dimension."""
    owner: int | None
    """Depth of the innermost scope whose iterations values must not cross; None if there is none."""
    caller: Caller | None
    """None unless the memory is an interface array's."""

    @property
    def is_alone(self) -> bool:
        """Whether the memory belongs to one array."""
        return len(names_of(self.uses, self.caller)) == 1

    def exact(self) -> Reason | None:
        """The violation by integer sets; None if there is none."""
        return compare_flows(self.uses, self.owner, self.caller)


class StorageChecks:
    """Memo of storage questions and their answers by content; shared by all states of a game."""

    def __init__(self) -> None:
        self._answers = Answers[UseKey, Reason | None]()
        self.exact_queries = 0
        """Number of questions that needed integer sets."""
        self.enumerated = 0
        """Number of questions that enumeration settled."""

    def violation(
        self, uses: Sequence[Use], reuse: Sequence[int], within: int | None = None, caller: Caller | None = None
    ) -> Reason | None:
        """The violation if these uses of one buffer have slots `reuse` per dimension; None if there is none.

        `within` also forbids values to cross iterations of the scopes down to that depth, which all uses share.
        `caller` is None unless the memory is an interface array's.
        """
        plain = within is None and not any(reuse) and len(names_of(uses, caller)) <= 1
        if not uses or plain:
            return None
        misplaced = _misplaced(uses, reuse)
        if misplaced is not None:
            return misplaced
        owner = max((d for d in (owner_depth(uses, reuse), within) if d is not None), default=None)
        question = StorageQuestion(uses, reuse, owner, caller)
        found = answered("storage at first sight", question)
        if found is not None:
            return found.value
        key = (tuple(reuse), owner, caller, *content_of(uses))
        return self._answers.of(key, lambda: self._decide(question))

    def _decide(self, question: StorageQuestion) -> Reason | None:
        found = answered("storage", question)
        self.enumerated += found is not None and found.how == "instances"
        self.exact_queries += found is None or found.how == "integer sets"
        return question.exact() if found is None else found.value


def names_of(uses: Sequence[Use], caller: Caller | None) -> list[str]:
    """The arrays in a question."""
    names = {u.access.array.name for u in uses}
    if caller is not None:
        names.add(caller.name)
    return sorted(names)


def overwritten_reason(name: str, detail: str) -> Reason:
    """The violation of a value that is overwritten too early."""
    return Reason(f"'{name}' would be overwritten before its last read", detail)


def owner_depth(uses: Sequence[Use], reuse: Sequence[int]) -> int | None:
    """Depth of the innermost threaded scope whose iterations have copies; None if they share the buffer."""
    found = _owner(uses, reuse)
    return None if found is None else found[1]


def _owner(uses: Sequence[Use], reuse: Sequence[int]) -> tuple[Use, int] | None:
    """The innermost threaded scope that indexes a reused dimension, as a use inside it and its depth; or None."""
    found: tuple[Use, int] | None = None
    for use in uses:
        for expression, reused in zip(use.access.index, reuse, strict=True):
            for depth in expression.variables() if reused else ():
                if use.chain[depth].mapping.is_threaded and (found is None or depth > found[1]):
                    found = use, depth
    return found


def _misplaced(uses: Sequence[Use], reuse: Sequence[int]) -> Reason | None:
    """The reason why a private copy is used outside the scope that owns it; None if it is not."""
    found = _owner(uses, reuse)
    if found is None:
        return None
    inside, depth = found
    owner = inside.leaf.chain[depth]
    outside = next((u for u in uses if depth >= u.leaf.depth or u.leaf.chain[depth] is not owner), None)
    if outside is None:
        return None
    return Reason(
        f"'{inside.access.array.name}' would be private to each iteration of a concurrent scope, "
        "but is used outside it",
        f"threaded scope {{{depth}}} of extent {owner.extent} owns the copies, "
        f"{describe_access(outside.access)} in the op that writes {describe_access(outside.leaf.output)} is outside it",
    )


def content_of(uses: Sequence[Use]) -> UseKey:
    """All data that the answers about uses in sequential order depend on, as a comparable value."""
    return tuple(
        (
            path,
            tuple((s.extent, s.guard) for s in u.chain),
            u.access.array.name,
            u.access.index,
            u.cell,
            u.writes,
            u.reads,
        )
        for u, path in zip(uses, relative_paths([u.leaf for u in uses]), strict=True)
    )


def elements_of(uses: Sequence[Use], caller: Caller | None) -> tuple[list[tuple[int | Expr, ...]], int]:
    """The element that each use touches, and the number at the start of the places of the caller's elements."""
    arrays = names_of(uses, caller)
    elements = [(arrays.index(u.access.array.name), *u.access.index) for u in uses]
    return elements, arrays.index(caller.name) if caller is not None else 0


@bounded()
def compare_flows(uses: Sequence[Use], owner: int | None, caller: Caller | None = None) -> Reason | None:
    """The difference between the flow of values over elements and that over cells; exact. None if they are equal."""
    elements, number = elements_of(uses, caller)
    by_element = flow(uses, elements, caller, number)
    by_cell = flow(uses, [(0, *u.cell) for u in uses], caller)
    name = uses[0].access.array.name
    gone = within_sizes(by_element.subtract(by_cell))
    if not gone.is_empty():
        return lost_reason(name, describe_pair(sampled(gone), uses, caller))
    wrong = within_sizes(by_cell.subtract(by_element))
    if not wrong.is_empty():
        return stale_reason(name, describe_pair(sampled(wrong), uses, caller))
    if owner is not None:
        within = by_cell if caller is None else flow(uses, [(0, *u.cell) for u in uses])
        crossing = within_sizes(within.subtract(_same_iteration(uses, owner)))
        if not crossing.is_empty():
            return crossing_reason(name, describe_pair(sampled(crossing), uses, caller))
    return None


def lost_reason(name: str, pair: str) -> Reason:
    """The violation of a flow over elements that cells lose; `pair` names the write and the read."""
    return overwritten_reason(name, f"value lost between write and read {pair}")


def stale_reason(name: str, pair: str) -> Reason:
    """The violation of a flow over cells between different elements."""
    return Reason(f"'{name}' would be read before it is written", f"stale value {pair}")


def crossing_reason(name: str, pair: str) -> Reason:
    """The violation of a value that leaves its private copy."""
    text = f"a value in the private copy of '{name}' would cross iterations of a concurrent scope"
    return Reason(text, f"write and read {pair}")


def _same_iteration(uses: Sequence[Use], owner: int) -> isl.UnionMap:
    """All pairs of instances in one iteration of the scopes down to depth `owner`."""
    import islpy as isl

    pieces: list[str] = []
    for w, writer in enumerate(uses):
        for r, reader in enumerate(uses):
            if writer.writes and reader.reads:
                left = variables("a", writer.leaf.depth)
                right = variables("b", reader.leaf.depth)
                equal = " and ".join(f"a{d} = b{d}" for d in range(owner + 1))
                pieces.append(f"W{w}[{', '.join(left)}] -> R{r}[{', '.join(right)}] : {equal}")
    return read_set(isl.UnionMap, f"{{ {'; '.join(pieces)} }}")


def describe_pair(pair: tuple[Instance, Instance], uses: Sequence[Use], caller: Caller | None) -> str:
    """A pair of instances in words."""
    texts: list[str] = []
    for (number, values), when in zip(pair, _WHEN, strict=True):
        if number < len(uses):
            texts.append(describe_use(uses[number], values))
        else:
            assert caller is not None
            texts.append(f"{caller.name}[{','.join(map(str, values))}] {when}")
    return " and ".join(texts)


_WHEN = "as the caller gives it", "as the caller gets it"
