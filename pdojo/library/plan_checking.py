"""The check of the plan of a model, which may be foreign: numbers are those of the plan, and every place has room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pdojo.build.numbers import UNSIGNED
from pdojo.dialect.affine import Size
from pdojo.dialect.element_types import ELEMENT_TYPES
from pdojo.dialect.names import name_problem
from pdojo.dialect.sizes import probes
from pdojo.library.model_plan import Extent, ModelPlan, Place, bytes_at, value_of
from pdojo.library.naming import extent_problem, operator_problem
from pdojo.library.records import Entry, range_of

_TYPES = (*ELEMENT_TYPES, *UNSIGNED)

_LARGEST = (1 << 63) - 1
"""The largest size: sizes are `int64_t`."""


def is_size(size: int | range) -> bool:
    """Whether a size, or a range of several, is one that builds write: one value is written as a number."""
    least, most = (size, size) if isinstance(size, int) else (size.start, size[-1] if len(size) > 1 else 0)
    return 1 <= least <= most <= _LARGEST


def plan_problems(plan: ModelPlan) -> Iterator[str]:
    """The facts of a plan that no build writes."""
    if problem := operator_problem(plan.name):
        yield f"name: {problem}"
        return
    found = [*_words(plan), *_calls(plan), *_numbers(plan)]
    yield from found
    if not found:
        yield from _rooms(plan)


def _words(plan: ModelPlan) -> Iterator[str]:
    """Names, types and extents that are none."""
    names = [*(("sizes", name) for name in plan.sizes), *(("arrays", array.name) for array in plan.arrays)]
    yield from (f"{key}: {problem}" for key, name in names if (problem := name_problem(name)) is not None)
    yield from (f"sizes: {size} is no size" for size in plan.sizes.values() if not is_size(size))
    if not plan.kernels or not plan.outputs:
        yield "a model has kernels and outputs"
    for array in plan.arrays:
        if array.dtype not in _TYPES or array.direction not in ("in", "out"):
            yield f"arrays: '{array.name}' is {array.direction} {array.dtype}"
    if plan.arrays != (*plan.inputs, *plan.outputs):
        yield "arrays: inputs come first"
    if not (len(plan.digest) == 64 and set(plan.digest) <= set("0123456789abcdef")):
        yield "digest: it is no SHA-256"
    extents = [extent for array in plan.arrays for extent in array.shape]
    extents += [block.bytes for block in plan.blocks]
    extents += [extent for call in plan.calls for extent in (*call.sizes, *(p.offset for p in call.arguments))]
    extents += [copy.source.offset for copy in plan.copies]
    yield from (f"{problem}" for extent in extents if (problem := extent_problem(extent, plan.sizes)) is not None)


def _calls(plan: ModelPlan) -> Iterator[str]:
    """Calls without a kernel, or with other arguments than it has."""
    for number, call in enumerate(plan.calls):
        if not 0 <= call.kernel < len(plan.kernels):
            yield f"calls[{number}]: there is no kernel {call.kernel}"
            continue
        entry = plan.kernels[call.kernel]
        if len(call.arguments) != len(entry.arrays) or len(call.sizes) != len(entry.sizes):
            yield f"calls[{number}]: kernel {call.kernel} has other arguments"


def _numbers(plan: ModelPlan) -> Iterator[str]:
    """Numbers that are beyond what they count."""
    counts = {
        "input": len(plan.inputs),
        "output": len(plan.outputs),
        "weight": len(plan.weights),
        "block": len(plan.blocks),
    }
    for place in _places(plan):
        if not 0 <= place.number < counts[place.kind]:
            yield f"there is no {place.kind} {place.number}"
    for number, copy in enumerate(plan.copies):
        if not 0 <= copy.output < len(plan.outputs):
            yield f"copies[{number}]: there is no output {copy.output}"
    for number, block in enumerate(plan.blocks):
        if not all(0 <= other < number for other in block.below):
            yield f"blocks[{number}]: what is below it does not come before it"
    for number, weight in enumerate(plan.weights):
        if weight.offset < 0 or weight.bytes < 0 or weight.offset % 64:
            yield f"weights[{number}]: it has no place"


def _places(plan: ModelPlan) -> list[Place]:
    return [*(place for call in plan.calls for place in call.arguments), *(copy.source for copy in plan.copies)]


def _rooms(plan: ModelPlan) -> Iterator[str]:
    """Places without room for their arrays, at ends of the ranges of sizes."""
    ranges = {name: range_of(s) for name, s in plan.sizes.items()}
    for sizes in probes([Size(name, each[0], each[-1], each.step) for name, each in ranges.items()]):
        try:
            yield from _without_room(plan, sizes)
        except (ValueError, ZeroDivisionError) as error:
            yield f"{error}"


def _without_room(plan: ModelPlan, sizes: Mapping[str, int]) -> Iterator[str]:
    rooms = {("weight", number): weight.bytes for number, weight in enumerate(plan.weights)}
    rooms |= {("block", number): value_of(block.bytes, sizes) for number, block in enumerate(plan.blocks)}
    rooms |= {("input", number): bytes_at(array, sizes) for number, array in enumerate(plan.inputs)}
    rooms |= {("output", number): bytes_at(array, sizes) for number, array in enumerate(plan.outputs)}

    def lacks(place: Place, size: int) -> bool:
        start = value_of(place.offset, sizes)
        return start < 0 or start + size > rooms[place.kind, place.number]

    for number, call in enumerate(plan.calls):
        entry = plan.kernels[call.kernel]
        values = dict(zip(entry.sizes, (value_of(size, sizes) for size in call.sizes), strict=True))
        if not all(_has(size, values[name]) for name, size in entry.sizes.items()):
            yield f"calls[{number}]: its sizes are not those of the kernel"
            continue
        for array, place in zip(entry.arrays, call.arguments, strict=True):
            if lacks(place, bytes_at(array, values)):
                yield f"calls[{number}]: there is no room for '{array.name}'"
            if array.direction != "in" and place.kind in ("input", "weight"):
                yield f"calls[{number}]: '{array.name}' is written where the model reads"
    for number, copy in enumerate(plan.copies):
        if lacks(copy.source, bytes_at(plan.outputs[copy.output], sizes)):
            yield f"copies[{number}]: the source is too small"


def _has(size: int | range, value: Extent) -> bool:
    return value in size if isinstance(size, range) else value == size


def parts_of(plan: ModelPlan) -> list[tuple[str, Entry]]:
    """The kernels of a model, each with the name that it has."""
    return [(f"{plan.name}_k{number}", entry) for number, entry in enumerate(plan.kernels)]
