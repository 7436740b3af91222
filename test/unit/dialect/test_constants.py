"""Declarations of constants that are no kernels, and the reasons."""

from __future__ import annotations

import pytest

from pdojo.dialect.notation import parse_notation
from pdojo.errors import NotationError

REFUSED = [
    pytest.param(
        """
kernel output(x) -> (y)
x f32 [8] heap
y f32 [8] heap const

8 y[{0}] = x[{0}]
""",
        "array 'y' is constant, but no input of the kernel",
        id="output",
    ),
    pytest.param(
        """
kernel stack(w) -> (y)
w f32 [8] heap const
y f32 [8] heap
p f32 [8] stack const

8 p[{0}] = w[{0}]
8 y[{0}] = p[{0}]
""",
        "'p' is in stack memory; constants are on the heap",
        id="stack",
    ),
    pytest.param(
        """
kernel reused(w) -> (y)
w f32 [8] heap const
y f32 [8] heap
p f32 [8:N] heap const

8
| p[{0}] = w[{0}]
| y[{0}] = p[{0}]
""",
        "dimensions of 'p' are reused or folded; those of a constant are whole",
        id="reused",
    ),
    pytest.param(
        """
kernel swizzled(w) -> (y)
w f32 [4, 4] heap const
y f32 [4, 4] heap
p f32 [4, 4^0] heap const

4 4 p[{0},{1}] = w[{0},{1}]
4 4 y[{0},{1}] = p[{0},{1}]
""",
        "dimensions of 'p' are swizzled; those of a constant are not",
        id="swizzled",
    ),
    pytest.param(
        """
kernel shared(w) -> (y)
w f32 [8] heap const
y f32 [8] heap
p f32 [8] heap const -> p, t

8 p[{0}] = w[{0}]
8 y[{0}] = p[{0}]
""",
        "'p' shares its memory with other arrays; a constant may not",
        id="shared",
    ),
    pytest.param(
        """
kernel varies(x, w) -> (y)
x f32 [8] heap
w f32 [8] heap const
y f32 [8] heap
p f32 [8] heap const

8 p[{0}] = x[{0}] * w[{0}]
8 y[{0}] = p[{0}]
""",
        "constant 'p' is computed in one nest with 'x', which is not constant",
        id="varies",
    ),
    pytest.param(
        """
kernel together(w) -> (y)
w f32 [8] heap const
y f32 [8] heap
p f32 [8] heap const

8
| p[{0}] = w[{0}]
| y[{0}] = p[{0}]
""",
        "constant 'p' is computed in one nest with 'y', which is not constant",
        id="together",
    ),
    pytest.param(
        """
kernel scratch(w) -> (y)
w f32 [8] heap const
y f32 [8] heap
p f32 [8] heap const
t f32 [8] heap

8 t[{0}] = w[{0}]
8 p[{0}] = t[{0}]
8 y[{0}] = p[{0}]
""",
        "constant 'p' is computed in one nest with 't', which is not constant, and which another nest uses",
        id="scratch",
    ),
    pytest.param(
        """
kernel late(w) -> (y, z)
w f32 [8] heap const
y f32 [8] heap
z f32 [8] heap
p f32 [8] heap const

8 p[{0}] = w[{0}]
8 y[{0}] = p[{0}]
8 p[{0}] = w[{0}] + 1
8 z[{0}] = p[{0}]
""",
        "constant 'p' is written after another nest has read it",
        id="late",
    ),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_refused_constants(text: str, reason: str) -> None:
    with pytest.raises(NotationError) as error:
        parse_notation(text)
    assert reason in str(error.value)
