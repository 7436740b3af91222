"""Dependent iteration: the check is exact, and what moves make of an accepted kernel is accepted."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from pdojo.dialect.notation import parse_notation
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Leaf
from pdojo.errors import NotationError

EXTENTS = ((5,), (2, 3), (2, 2, 2))


def index(random: Random, depth: int) -> str:
    """A random index below 12 of one or two variables."""
    one, other = (f"{{{random.randrange(depth)}}}" for _ in range(2))
    forms = (
        f"{one}*{random.randint(0, 2)}+{other}",
        f"({one}*{random.randint(1, 5)}+{other})%{random.randint(2, 5)}",
        f"({one}*{random.randint(1, 5)}+{other})//{random.randint(2, 3)}",
        f"{random.randint(0, 4)}",
    )
    return f"({random.choice(forms)}+{random.randint(0, 5)})%12"


def depends(leaf: Leaf) -> bool:
    """The definition, by enumeration."""
    instances = [i for i in product(*map(range, leaf.extents)) if all(g.evaluate(i) >= 0 for g in leaf.guards)]

    def places(of: int) -> list[tuple[int, ...]]:
        return [tuple(e.evaluate(i) for e in leaf.accesses[of].index) for i in instances]

    written, read = places(0), places(1)
    return any(r in written and r != written[k] for k, r in enumerate(read))


def test_exact_against_enumeration() -> None:
    random = Random(5)
    counts = {True: 0, False: 0}
    for _ in range(500):
        extents = random.choice(EXTENTS)
        guard = f" where ({index(random, len(extents))} < {random.randint(3, 9)})" if random.random() < 0.5 else ""
        statement = f"t[{index(random, len(extents))}] = s[{index(random, len(extents))}]"
        scopes = " ".join(map(str, extents)) + guard
        text = f"kernel k(s) -> (t)\ns f32 [12] heap\nt f32 [12] heap\n\n{scopes} {statement}\n"
        wanted = depends(nest_of(parse_notation(text)[0]).leaves[0])
        counts[wanted] += 1
        own = text.replace("= s", "= t")
        if wanted:
            with pytest.raises(NotationError, match="dependent iteration"):
                parse_notation(own)
        else:
            parse_notation(own)
    assert min(counts.values()) > 30
