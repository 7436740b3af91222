"""A tuned kernel at smaller sizes: the same moves on the same program, small enough for exact execution.

A `SizedKernel` gives a kernel at any sizes. The trace determines constraints on the scopes (`ExtentConstraint`): a
scope cut by tiles of 32 with a remainder of 20 keeps that remainder, and several whole tiles if it had several. The
sizes are the smallest that meet the constraints. Parameters that contain an extent, such as the place of a peel, are
rewritten, and so are shares of threads; smaller tiles, vectors and everything else stay. The small program counts only
if its text equals the large one's except for the numbers, before the first move and after the last.

An exact comparison of the small programs shows that these moves keep the meaning at these sizes, with every tile,
peeled part and guard. It is no proof for the large sizes: a defect that needs more iterations stays unnoticed. Every
move's legality is checked at the small sizes as it was at the large ones.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from math import lcm

from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.notation.sizes import sizes_of
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.oracle.instances import count_instances
from pdojo.dialect.semantics.oracle.reduce import is_resizable, resized
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Nest
from pdojo.errors import PdojoError
from pdojo.kernels import Workload
from pdojo.passes.verification.extent_constraints import ExtentConstraint, constraints_of, share_count
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Step

QUICK = 30_000
"""Limit of statement instances for the first attempts: comparing them takes a fraction of a second."""
MOST = 1_500_000
"""Greatest number of statement instances: comparing them takes a quarter of a minute and a gigabyte."""
ATTEMPTS = ((3, QUICK, False), (2, QUICK, False), (2, MOST, False), (2, MOST, True))
"""Attempts: the least number of whole tiles, the limit of statement instances, and True if equal sizes stay equal."""
SMALL = 4
"""Greatest size that stays: windows, strides, paddings."""
COMBINATIONS = 8
"""Greatest number of tried rewritings of one move's numbers."""
_NUMBER = re.compile(r"\d+")
_SCOPES = re.compile(r"^(?:\d+ )+")
_SHAPE = re.compile(r"\[[\d, ]*\]")


@dataclass(frozen=True)
class SizedKernel:
    """One kernel at all its sizes."""

    sizes: Mapping[str, int]
    """The sizes of the given kernel."""
    at: Callable[[Mapping[str, int]], KernelOp]
    """The plain kernel at other sizes. Raises PdojoError for impossible sizes."""


@dataclass(frozen=True)
class Small:
    """A tuned kernel at small sizes."""

    sizes: Mapping[str, int]
    before: KernelOp
    after: KernelOp

    def __str__(self) -> str:
        words = (f"{name}{' as' * name.isdecimal()} {size}" for name, size in self.sizes.items())
        return ", ".join(words)


def family_of(kernel: KernelOp, source: Workload | str | None = None) -> SizedKernel | None:
    """The family of a kernel: from its workload, from its text in the notation if that names sizes, or from its
    extents.

    From extents, equal extents stay equal; None if an index is neither 0 nor the variable of a scope over its whole
    dimension.
    """

    def at(sizes: Mapping[str, int]) -> KernelOp:
        if isinstance(source, Workload):
            plain = replace(source, given=tuple(sizes.items()), label="").instantiate()
        else:
            assert source is not None
            (plain,) = (k for k in parse_notation(source, given=sizes) if k.sym_name.data == kernel.sym_name.data)
        for fact in ("arg_alignments", "numerics", "machine"):
            if fact in kernel.properties:
                plain.properties[fact] = kernel.properties[fact]
        return plain

    if isinstance(source, Workload):
        return SizedKernel(source.sizes, at)
    named = {} if source is None else sizes_of(source)
    if named:
        return SizedKernel(named, at)
    nest = nest_of(kernel)
    if not is_resizable(nest):
        return None
    extents = sorted({scope.extent for scope in nest.scopes} | {n for a in nest.arrays.values() for n in a.shape})
    own = {str(extent): extent for extent in extents}
    return SizedKernel(own, lambda sizes: resized(kernel, {int(name): size for name, size in sizes.items()}))


def shrunk(game: Game, family: SizedKernel) -> Small | None:
    """The kernel and its tuned program at small sizes; None if no attempt succeeds.

    The programs have at most `MOST` statement instances each.
    """
    slopes = _slopes(game.initial.nest, family)
    demands = constraints_of(game)
    tried: list[tuple[dict[str, int], int]] = []
    for least, limit, tied in ATTEMPTS:
        sizes = _least_sizes(game.initial.nest, family.sizes, slopes, demands, least, tied=tied)
        if (sizes, limit) not in tried:
            tried.append((sizes, limit))
            small = _played(game, family, sizes, limit)
            if small is not None:
                return small
    return None


# Sizes


@dataclass(frozen=True)
class _Slope:
    """The effect of a size on extents: reducing the size by `step` reduces the scopes' extents by `less`, in nest
    order.
    """

    step: int
    less: tuple[int, ...]


def _slopes(nest: Nest, family: SizedKernel) -> dict[str, _Slope]:
    """The sizes that may shrink, each with the first tried step for which all extents change linearly."""
    found: dict[str, _Slope] = {}
    for name, size in family.sizes.items():
        if size <= SMALL:
            continue
        for step in (1, 2, 3, 4, 6, 8):
            once, twice = (_extents(family, {**family.sizes, name: size - k * step}) for k in (1, 2))
            if once is None or twice is None or not len(once) == len(twice) == len(nest.scopes):
                continue
            first = tuple(scope.extent - n for scope, n in zip(nest.scopes, once, strict=True))
            if first == tuple(a - b for a, b in zip(once, twice, strict=True)):
                found[name] = _Slope(step, first)
                break
    return found


def _extents(family: SizedKernel, sizes: Mapping[str, int]) -> list[int] | None:
    if min(sizes.values()) < 0:
        return None
    try:
        return [scope.extent for scope in nest_of(family.at(sizes)).scopes]
    except PdojoError:
        return None


def _least_sizes(
    nest: Nest,
    sizes: Mapping[str, int],
    slopes: Mapping[str, _Slope],
    demands: Sequence[ExtentConstraint],
    least: int,
    *,
    tied: bool,
) -> dict[str, int]:
    """The least sizes with at least `least` tiles or iterations of each kind; with `tied`, equal sizes stay equal."""
    found, extents = dict(sizes), [scope.extent for scope in nest.scopes]
    whole = tuple(extents)
    groups: dict[int | str, list[str]] = {}
    for name in sorted(slopes, key=lambda name: -sizes[name]):
        groups.setdefault(sizes[name] if tied else name, []).append(name)
    for names in groups.values():
        step = lcm(*(slopes[name].step for name in names))
        less = [sum(slopes[n].less[k] * (step // slopes[n].step) for n in names) for k in range(len(extents))]
        count = most_steps((found[names[0]] - 1) // step, whole, extents, less, demands, least)
        extents = _after(count, extents, less)
        found |= {name: found[name] - count * step for name in names}
    return found


def most_steps(
    most: int,
    whole: Sequence[int],
    extents: Sequence[int],
    less: Sequence[int],
    demands: Sequence[ExtentConstraint],
    least: int,
) -> int:
    """The greatest number of steps, up to `most`, that meets all demands, each step taking `less` off the extents.

    0 if there is none. The remainders recur, so that only the last period of steps is tried.
    """
    try:
        periods = [demand.period(extents, less) for demand in demands]
    except ValueError:
        return 0
    stride, period = (lcm(*column) for column in zip((1, 1), *periods, strict=True))
    # Steps make these extents smaller, so that too many of them stay too many.
    shrinking = [demand for demand in demands if all(less[k] >= 0 for k in demand.scopes)]

    def is_too_small(count: int) -> bool:
        return not all(demand.is_enough(whole, _after(count, extents, less), least) for demand in shrinking)

    end = bisect_left(range(1, most + 1), True, key=is_too_small)
    end -= end % stride
    for count in range(end, max(end - period, 0), -stride):
        if all(demand.is_met(whole, _after(count, extents, less), least) for demand in demands):
            return count
    return 0


def _after(count: int, extents: Sequence[int], less: Sequence[int]) -> list[int]:
    """The extents after steps."""
    return [extent - count * part for extent, part in zip(extents, less, strict=True)]


# Moves


def _played(game: Game, family: SizedKernel, sizes: Mapping[str, int], limit: int) -> Small | None:
    """The moves replayed at these sizes; None if one does not apply, or if the program differs or is too large."""
    try:
        small = Game(family.at(sizes), game.machine)
    except PdojoError:
        return None
    if count_instances(small.program.nest) > limit or not _alike(small.kernel, game.initial.kernel):
        return None
    steps = game.trace.steps
    start = 0
    for number, step in enumerate(steps):
        if step.move.name not in ("peel_scope", "insert_op") and share_count(step, game.places[number].extent) is None:
            continue
        if small.replay(steps[start:number]) or not _rewritten(game, small, number, step):
            return None
        start = number + 1
    if small.replay(steps[start:]) or count_instances(small.program.nest) > limit:
        return None
    if not _alike(small.kernel, game.kernel):
        return None
    return Small(sizes, small.initial.kernel, small.kernel)


def _alike(one: KernelOp, other: KernelOp) -> bool:
    """True if two programs have the same text except for the numbers."""
    first, second = (_NUMBER.sub("#", print_notation(kernel)) for kernel in (one, other))
    return first == second


def _numbers(large: Nest, small: Nest) -> dict[int, list[int]]:
    """The small extents for each large extent of a scope or dimension."""
    pairs = [(one.extent, other.extent) for one, other in zip(large.scopes, small.scopes, strict=True)]
    for name, array in large.arrays.items():
        pairs += zip(array.shape, small.arrays[name].shape, strict=True)
    found: dict[int, list[int]] = {}
    for old, new in dict.fromkeys(pairs):
        found.setdefault(old, []).append(new)
    return found


def _rewritten(game: Game, small: Game, number: int, step: Step) -> bool:
    """Make a move with rewritten extents; returns False if no rewriting applies."""
    params = dict(step.resolved.params)
    count = share_count(step, game.places[number].extent)
    if count is not None:
        choices = iter([{"size": _extent(small, step) // count}])
    elif step.move.name == "peel_scope":
        choices = _peeled(game.places[number].extent, int(str(params["after"])), small, step)
    else:
        # Extents at this move: earlier moves may have collapsed scopes and dimensions.
        large = game.programs[number]
        if not _alike(small.kernel, large.kernel):
            return False
        choices = _inserted(params, _numbers(large.nest, small.program.nest))
    for changed in islice(choices, COMBINATIONS):
        move = replace(step.resolved, params=tuple((key, changed.get(key, value)) for key, value in params.items()))
        if not small.replay([Step(step.move, move)]):
            return True
    return False


def _peeled(extent: int, after: int, small: Game, step: Step) -> Iterator[dict[str, str | int]]:
    """Rewrite the parameters of a peel so that the shorter part keeps its iterations."""
    now = _extent(small, step)
    yield {"after": after if 2 * after <= extent else now - (extent - after)}


def _extent(small: Game, step: Step) -> int:
    """The small extent of the scope of a move; 0 if there is no such scope."""
    here = small.program.nest.by_id.get(step.resolved.at.removeprefix("%"))
    return getattr(here, "extent", 0)


def _inserted(params: Mapping[str, str | int], numbers: Mapping[int, Sequence[int]]) -> Iterator[dict[str, str | int]]:
    """Rewrite the extents of the scopes and of the array of an inserted statement."""
    pieces: list[tuple[str, bool]] = []
    for key, pattern in (("text", _SCOPES), ("declare", _SHAPE)):
        text = str(params.get(key, ""))
        match = pattern.search(text)
        low, high = match.span() if match else (0, 0)
        pieces += [(key, False), (text[:low], False), (text[low:high], True), (text[high:], False)]
    extents = [int(n) for text, names_extents in pieces if names_extents for n in _NUMBER.findall(text)]
    distinct = list(dict.fromkeys(extents))
    for chosen in product(*(numbers.get(n, [n]) for n in distinct)):
        meaning = dict(zip(distinct, chosen, strict=True))
        texts = [
            _NUMBER.sub(lambda m, given=meaning: str(given[int(m[0])]), text) if names_extents else text
            for text, names_extents in pieces
        ]
        yield {"text": "".join(texts[1:4]), "declare": "".join(texts[5:8])}
