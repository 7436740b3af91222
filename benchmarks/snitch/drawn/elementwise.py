"""Elementwise forms: chains of statements, polynomials, quantisation, steps of integrators."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from types import SimpleNamespace

import numpy as np

from benchmarks.snitch.drawn.form import Array, Form

_LONG = {"N": (48, 288)}
_TABLE = {"R": (7, 20), "C": (10, 28)}


def _polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    return np.asarray(sum(c * x**k for k, c in enumerate(coefficients)))


def _quantised(x: Array) -> Array:
    return np.clip(np.rint(x * 32), -128, 127)


FORMS = (
    Form(
        "hardswish",
        _LONG,
        """(x) -> (y)
x T [N] heap
y T [N] heap
r T [] stack
h T [] stack

N
| r[] = x[{0}] + 3
| r[] = max(r[], 0)
| r[] = min(r[], 6)
| h[] = x[{0}] * r[]
| y[{0}] = h[] * S
""",
        """(const T *restrict x, T *restrict y) {
  for (int i = 0; i < N; i++) y[i] = x[i] * MIN(MAX(x[i] + 3, 0), 6) * S;
}""",
        lambda v: v.x * np.clip(v.x + 3, 0, 6) / 6,
        {"S": 1 / 6},
        has_maximum=True,
    ),
    Form(
        "hardswish_rows",
        _TABLE,
        """(x) -> (y)
x T [R, C] heap
y T [R, C] heap
r T [R, C] heap
h T [R, C] heap

R C r[{0},{1}] = x[{0},{1}] + 3
R C r[{0},{1}] = max(r[{0},{1}], 0)
R C r[{0},{1}] = min(r[{0},{1}], 6)
R C h[{0},{1}] = x[{0},{1}] * r[{0},{1}]
R C y[{0},{1}] = h[{0},{1}] * S
""",
        """(const T (*restrict x)[C], T (*restrict y)[C]) {
  for (int i = 0; i < R; i++)
    for (int j = 0; j < C; j++) y[i][j] = x[i][j] * MIN(MAX(x[i][j] + 3, 0), 6) * S;
}""",
        lambda v: v.x * np.clip(v.x + 3, 0, 6) / 6,
        {"S": 1 / 6},
        has_maximum=True,
    ),
    Form(
        "quantise",
        _LONG,
        """(x) -> (y)
x T [N] heap
y T [N] heap
q T [] stack

N
| q[] = x[{0}] * 32
| q[] = q[] + ROUND
| q[] = q[] - ROUND
| q[] = max(q[], -128)
| y[{0}] = min(q[], 127)
""",
        """(const T *restrict x, T *restrict y) {
  for (int i = 0; i < N; i++) {
    T q = x[i] * 32 + ROUND;
    y[i] = MIN(MAX(q - ROUND, -128), 127);
  }
}""",
        lambda v: _quantised(v.x),
        {"ROUND": 0.0},
        has_maximum=True,
    ),
    Form(
        "fake_quantise",
        _TABLE,
        """(x, s) -> (y)
x T [R, C] heap
s T [C] heap
y T [R, C] heap
q T [R, C] heap

R C q[{0},{1}] = x[{0},{1}] * 32
R C q[{0},{1}] = q[{0},{1}] + ROUND
R C q[{0},{1}] = q[{0},{1}] - ROUND
R C q[{0},{1}] = max(q[{0},{1}], -128)
R C q[{0},{1}] = min(q[{0},{1}], 127)
R C y[{0},{1}] = q[{0},{1}] * s[{1}]
""",
        """(const T (*restrict x)[C], const T *restrict s, T (*restrict y)[C]) {
  for (int i = 0; i < R; i++)
    for (int j = 0; j < C; j++) {
      T q = x[i][j] * 32 + ROUND;
      y[i][j] = MIN(MAX(q - ROUND, -128), 127) * s[j];
    }
}""",
        lambda v: _quantised(v.x) * v.s,
        {"ROUND": 0.0},
        has_maximum=True,
    ),
    Form(
        "triad",
        _LONG,
        """(a, b, c) -> (y)
a T [N] heap
b T [N] heap
c T [N] heap
y T [N] heap
t T [N] heap

N t[{0}] = b[{0}] * c[{0}]
N y[{0}] = a[{0}] + t[{0}]
""",
        """(const T *restrict a, const T *restrict b, const T *restrict c, T *restrict y) {
  for (int i = 0; i < N; i++) y[i] = a[i] + b[i] * c[i];
}""",
        lambda v: v.a + v.b * v.c,
    ),
    Form(
        "rational",
        _LONG,
        """(x) -> (y)
x T [N] heap
y T [N] heap
p T [N] heap
q T [N] heap

N p[{0}] = x[{0}] * x[{0}]
N q[{0}] = p[{0}] + 3
N p[{0}] = p[{0}] + 1
N q[{0}] = x[{0}] * q[{0}]
N y[{0}] = q[{0}] / p[{0}]
""",
        """(const T *restrict x, T *restrict y) {
  for (int i = 0; i < N; i++) {
    T p = x[i] * x[i];
    y[i] = x[i] * (p + 3) / (p + 1);
  }
}""",
        lambda v: v.x * (v.x**2 + 3) / (v.x**2 + 1),
        divides=True,
    ),
    Form(
        "leapfrog",
        _LONG,
        """(x, v, f) -> (x, v)
x T [N] heap
v T [N] heap
f T [N] heap
t T [] stack

N
| t[] = f[{0}] * A
| v[{0}] = v[{0}] + t[]
| t[] = v[{0}] * B
| x[{0}] = x[{0}] + t[]
""",
        """(T *restrict x, T *restrict v, const T *restrict f) {
  for (int i = 0; i < N; i++) {
    v[i] += f[i] * A;
    x[i] += v[i] * B;
  }
}""",
        lambda v: (v.x + (v.v + v.f * v.A) * v.B, v.v + v.f * v.A),
        drawn="A B",
    ),
    Form(
        "adam",
        _LONG,
        """(g, m, s) -> (m, s, d)
g T [N] heap
m T [N] heap
s T [N] heap
d T [N] heap
t T [N] heap
u T [N] heap

N m[{0}] = m[{0}] * A
N t[{0}] = g[{0}] * B
N m[{0}] = m[{0}] + t[{0}]
N s[{0}] = s[{0}] * D
N u[{0}] = g[{0}] * g[{0}]
N u[{0}] = u[{0}] * E
N s[{0}] = s[{0}] + u[{0}]
N d[{0}] = m[{0}] * s[{0}]
""",
        """(const T *restrict g, T *restrict m, T *restrict s, T *restrict d) {
  for (int i = 0; i < N; i++) {
    m[i] = m[i] * A + g[i] * B;
    s[i] = s[i] * D + g[i] * g[i] * E;
    d[i] = m[i] * s[i];
  }
}""",
        lambda v: (
            v.m * v.A + v.g * v.B,
            v.s * v.D + v.g**2 * v.E,
            (v.m * v.A + v.g * v.B) * (v.s * v.D + v.g**2 * v.E),
        ),
        drawn="A B D E",
    ),
    Form(
        "bias_relu",
        _TABLE,
        """(x, b) -> (y)
x T [R, C] heap
b T [R] heap
y T [R, C] heap
t T [R, C] heap

R C t[{0},{1}] = x[{0},{1}] * A
R C t[{0},{1}] = t[{0},{1}] + b[{0}]
R C y[{0},{1}] = max(t[{0},{1}], 0)
""",
        """(const T (*restrict x)[C], const T *restrict b, T (*restrict y)[C]) {
  for (int i = 0; i < R; i++)
    for (int j = 0; j < C; j++) y[i][j] = MAX(x[i][j] * A + b[i], 0);
}""",
        lambda v: np.maximum(v.x * v.A + v.b[:, None], 0),
        drawn="A",
        has_maximum=True,
    ),
    Form(
        "outer_update",
        _TABLE,
        """(a, x, y) -> (a)
a T [R, C] heap
x T [R] heap
y T [C] heap
t T [R, C] heap

R C t[{0},{1}] = x[{0}] * y[{1}]
R C a[{0},{1}] = a[{0},{1}] + t[{0},{1}]
""",
        """(T (*restrict a)[C], const T *restrict x, const T *restrict y) {
  for (int i = 0; i < R; i++)
    for (int j = 0; j < C; j++) a[i][j] += x[i] * y[j];
}""",
        lambda v: v.a + np.outer(v.x, v.y),
    ),
)


def horner(random: Random) -> Form:
    """A polynomial of drawn degree, in one loop."""
    degree = random.randint(5, 8)
    numbers = {f"C{k}": random.randint(4, 12) / 16 for k in range(degree + 1)}
    coefficients = [*numbers.values()]
    steps, value = f"| p[] = x[{{0}}] * C{degree}\n", f"C{degree}"
    for k in reversed(range(1, degree)):
        steps += f"| p[] = p[] + C{k}\n| p[] = p[] * x[{{0}}]\n"
    for k in reversed(range(degree)):
        value = f"({value} * x[i] + C{k})"
    return Form(
        "horner",
        _LONG,
        f"(x) -> (y)\nx T [N] heap\ny T [N] heap\np T [] stack\n\nN\n{steps}| y[{{0}}] = p[] + C0\n",
        f"(const T *restrict x, T *restrict y) {{\n  for (int i = 0; i < N; i++) y[i] = {value};\n}}",
        lambda v: _polynomial(v.x, coefficients),
        numbers,
    )


_SIGNS = {"+": np.add, "-": np.subtract, "*": np.multiply}


def _chain(name: str, length: int, others: str, random: Random) -> Form:
    """A chain of drawn operations on one value, each with a drawn operand: an array or a number."""
    steps = [(random.choice("+-*"), random.choice(("x", *others, "A", "B"))) for _ in range(length)]
    lines, value = list[str](), "x[i]"
    for number, (sign, operand) in enumerate(steps):
        place, to = "x" if number == 0 else "t", "y" if number == length - 1 else "t"
        index, at = ("", "") if operand in "AB" else ("[{0}]", "[i]")
        lines.append(f"N {to}[{{0}}] = {place}[{{0}}] {sign} {operand}{index}")
        value = f"({value} {sign} {operand}{at})"

    def reference(v: SimpleNamespace) -> Array:
        found = v.x
        for sign, operand in steps:
            found = _SIGNS[sign](found, getattr(v, operand))
        return found

    arrays = "".join(f"{array} T [N] heap\n" for array in ("x", *others, "y", "t"))
    inputs = ", ".join(("x", *others))
    parameters = ", ".join(f"const T *restrict {array}" for array in ("x", *others))
    return Form(
        name,
        _LONG,
        f"({inputs}) -> (y)\n{arrays}\n" + "\n".join(lines) + "\n",
        f"({parameters}, T *restrict y) {{\n  for (int i = 0; i < N; i++) y[i] = {value};\n}}",
        reference,
        drawn="A B",
    )


def chain_of_one(random: Random) -> Form:
    """Five operations on one array."""
    return _chain("chain_of_one", 5, "", random)


def chain_of_two(random: Random) -> Form:
    """Six operations on two arrays."""
    return _chain("chain_of_two", 6, "a", random)


def chain_of_three(random: Random) -> Form:
    """Eight operations on three arrays."""
    return _chain("chain_of_three", 8, "ab", random)


GENERATED = (horner, chain_of_one, chain_of_two, chain_of_three)
