"""The memory of an agent as arrays: transitions, and the vectors of their programs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy
from numpy.typing import NDArray

from pdojo.errors import UsageError
from pdojo.perfllm.learner import Vector
from pdojo.perfllm.replay import Replay, ReplayedAction, Visit
from pdojo.perfllm.schema import Schema, TensorSchema

NONE = -1
"""Marks a missing visit after the end of an episode."""


def packed(replay: Replay, vectors: Mapping[str, Vector]) -> dict[str, Any]:
    """The transitions of a replay and their vectors, as arrays.

    `names` [programs, 32] are fingerprints, and `vectors` [programs, size] their vectors. A visit is a row of `visits`,
    from `starts[k]` to `starts[k + 1]`: numbers of programs, the state first. Action k has the visits `before[k]`
    and `after[k]`.
    """
    numbers = {fingerprint: number for number, fingerprint in enumerate(vectors)}
    visits: dict[int, int] = {}
    rows: list[list[int]] = []

    def number_of(visit: Visit | None) -> int:
        if visit is None:
            return NONE
        if id(visit) not in visits:
            visits[id(visit)] = len(rows)
            rows.append([numbers[each] for each in (visit.state, *visit.offers)])
        return visits[id(visit)]

    kept = replay.transitions()
    before, after = ([number_of(one.visit) for one in kept], [number_of(one.following) for one in kept])
    return {
        "names": numpy.frombuffer(bytes.fromhex("".join(vectors)), dtype=numpy.uint8).reshape(-1, 32).copy(),
        "vectors": numpy.stack(list(vectors.values())),
        "visits": numpy.array([number for row in rows for number in row], dtype=numpy.int64),
        "starts": numpy.cumsum([0, *map(len, rows)]),
        "before": numpy.array(before, dtype=numpy.int64),
        "after": numpy.array(after, dtype=numpy.int64),
        "actions": numpy.array([one.action for one in kept], dtype=numpy.int64),
        "rewards": numpy.array([one.reward for one in kept], dtype=numpy.float64),
    }


def memory_schema(size: int) -> Schema:
    """The schema of `packed` for vectors of a size."""
    transitions = {name: TensorSchema("int64", ("transitions",), least=0) for name in ("before", "actions")}
    return {
        "names": TensorSchema("uint8", ("programs", 32)),
        "vectors": TensorSchema("float32", ("programs", size)),
        "visits": TensorSchema("int64", ("entries",), least=0),
        "starts": TensorSchema("int64", ("starts",), least=0),
        "after": TensorSchema("int64", ("transitions",), least=NONE),
        "rewards": TensorSchema("float64", ("transitions",), least=0),
        **transitions,
    }


def unpacked(replay: Replay, arrays: Mapping[str, Any]) -> dict[str, Vector]:
    """Fill an empty replay with the transitions of `packed`, as arrays or tensors; returns the vectors.

    `arrays` must fit `memory_schema`. Raises UsageError if their numbers contradict each other.
    """
    _check_numbers({name: numpy.asarray(array) for name, array in arrays.items()})
    names = [bytes(row).hex() for row in numpy.asarray(arrays["names"])]
    starts, numbers = arrays["starts"].tolist(), arrays["visits"].tolist()
    rows = [[names[number] for number in numbers[a:b]] for a, b in pairwise(starts)]
    visits = [Visit(row[0], tuple(row[1:])) for row in rows]
    columns = (arrays[name].tolist() for name in ("before", "actions", "rewards", "after"))
    for before, action, reward, after in zip(*columns, strict=True):
        replay.add(ReplayedAction(visits[before], action, reward, None if after == NONE else visits[after]))
    return dict(zip(names, numpy.asarray(arrays["vectors"]), strict=True))


def _check_numbers(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise UsageError for numbers of missing visits, programs or actions."""
    starts, visits, actions = arrays["starts"], arrays["visits"], arrays["actions"]
    # A visit has a state, and may have no offers.
    whole = starts.size > 0 and starts[0] == 0 and starts[-1] == visits.size and bool((numpy.diff(starts) > 0).all())
    if not whole or (visits >= len(arrays["names"])).any():
        raise UsageError("'visits' must be row numbers of programs")
    if any((arrays[name] >= starts.size - 1).any() for name in ("before", "after")):
        raise UsageError("'before' and 'after' must be numbers of visits")
    if (actions >= numpy.diff(starts)[arrays["before"]]).any():
        raise UsageError("'actions' must be numbers of offers")
