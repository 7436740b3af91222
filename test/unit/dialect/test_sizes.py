"""Named sizes, numbers and types of a notation text."""

from __future__ import annotations

import pytest

from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.errors import NotationError, UsageError

TEXT = """size N = 4
size M = 2 * (N + 1) - N // 3
number HALF = 0.5
number SHIFT = -HALF / 2
type T = f32
type A = wide(T)

kernel k(x) -> (y)
x T [N, M] heap
y A [N, M] heap
t A [N, M] heap

N M t[{0},{1}] = cast(x[{0},{1}])
N M y[{0},{1}] = t[{0},{1}] * SHIFT
"""


def printed(text: str, **given: float | str) -> str:
    (kernel,) = parse_notation(text, given=given)
    return print_notation(kernel)


def test_names_stand_for_their_values() -> None:
    assert printed(TEXT) == (
        "kernel k(x) -> (y)\nx f32 [4, 9] heap\ny f32 [4, 9] heap\nt f32 [4, 9] heap\n\n"
        "4 9 t[{0},{1}] = x[{0},{1}]\n4 9 y[{0},{1}] = t[{0},{1}] * -0.25\n"
    )


def test_parameters_can_be_given() -> None:
    found = printed(TEXT, N=6, HALF=1.0, T="bf16")
    assert "x bf16 [6, 12] heap" in found
    assert "t f32 [6, 12] heap" in found
    assert "cast(x[{0},{1}])" in found
    assert "* -0.5" in found


def test_a_size_is_no_reuse_flag_and_no_mapping() -> None:
    text = "size N = 3\nsize u = 2\nkernel k(x) -> (y)\nx f32 [N] heap\ny f32 [N] heap\nt f32 [N:N] stack\n\n"
    text += "N:u\n| t[{0}] = x[{0}]\n| y[{0}] = t[{0}] * u\n"
    found = printed(text)
    assert "t f32 [3:N] stack" in found
    assert "3:u\n" in found
    assert "* 2" in found


def test_names_hold_for_all_kernels_below() -> None:
    second = "size L = N + 1\nkernel two(x) -> (y)\nx f32 [L] heap\ny f32 [L] heap\n\nL y[{0}] = x[{0}]\n"
    kernels = parse_notation(TEXT + second)
    assert "x f32 [5] heap" in print_notation(kernels[1])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("size N = 4", "size N = 4\nsize N = 5"), "2:6: error: 'N' is defined twice"),
        (("size N = 4", "size N = 4.5"), "a size is an integer"),
        (("size N = 4", "size N = 4 4"), "unexpected '4' after the size"),
        (("size N = 4", "size f32 = 4"), "'f32' is an element type"),
        (("2 * (N + 1)", "2 * (Q + 1)"), "expected a number or the name of one"),
        (("2 * (N + 1)", "(N + 1) / 2"), r"5 is no multiple of 2 for N = 4[\s\S]*hint: // rounds down"),
        (("2 * (N + 1)", "0 * (N + 1)"), "the size M is -1, less than 0 for N = 4"),
        (("N // 3", "N // 0"), "division by zero"),
        (("type A = wide(T)", "type A = wide(N)"), "unknown element type 'N'"),
        (("x T [", "size L = 3\nx T ["), "names are defined above a kernel"),
        (("x T [N, M]", "N T [N, M]"), "1:|error"),
    ],
)
def test_wrong_definitions(change: tuple[str, str], said: str) -> None:
    with pytest.raises(NotationError, match=said):
        parse_notation(TEXT.replace(*change))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"M": 3}, "'M' follows from other sizes and cannot be given"),
        ({"n": 3}, "there is no size 'n'"),
        ({"N": -1}, "the size 'N' is an integer of at least 0, not -1"),
        ({"N": "f32"}, "the size 'N' is an integer of at least 0, not f32"),
        ({"T": "f33"}, "unknown element type 'f33' for 'T'; did you mean 'f32'"),
        ({"T": "f8"}, "unknown element type 'f8' for 'T'; known: f64, f32, f16, bf16$"),
        ({"T": "u8"}, "unknown element type 'u8' for 'T'; did you mean 'i8'"),
        ({"HALF": "f32"}, "'HALF' is a number"),
    ],
)
def test_wrong_values(given: dict[str, int | str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_notation(TEXT, given=given)


def test_a_cast_to_the_same_type_is_a_copy() -> None:
    text = "kernel k(x) -> (y)\nx f32 [4] heap\ny f32 [4] heap\n\n4 y[{0}] = cast(x[{0}])\n"
    assert printed(text).endswith("4 y[{0}] = x[{0}]\n")
