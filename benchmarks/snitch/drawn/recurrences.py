"""Recurrences, triangular loops and small solvers."""

from __future__ import annotations

import numpy as np

from benchmarks.snitch.drawn.form import Array, Form

_LINE = {"N": (50, 200)}
_TABLE = {"R": (6, 16), "C": (12, 28)}
_SQUARE = {"N": (9, 24)}


def _scan(x: Array, a: float, axis: int = 0) -> Array:
    found = np.moveaxis(x, axis, 0).copy()
    for i in range(1, len(found)):
        found[i] += a * found[i - 1]
    return np.moveaxis(found, 0, axis)


def _biquad(x: Array, a: float, b: float) -> Array:
    y = np.zeros(len(x) + 2)
    for i, value in enumerate(x):
        y[i + 2] = value + a * y[i + 1] - b * y[i]
    return y[2:]


def _gated(x: Array, g: Array, a: float) -> Array:
    y = np.zeros(len(x) + 1)
    for i, (value, gate) in enumerate(zip(x, g, strict=True)):
        y[i + 1] = a * y[i] + gate * value
    return y[1:]


def _rank_one_solutions(a: Array, b: Array, p: Array, q: Array) -> tuple[Array, Array]:
    c, d, e = 1 + a * a, a * b, 1 + b * b
    r = 1 / (c * e - d * d)
    return (e * p - d * q) * r, (c * q - d * p) * r


def _substituted(a: Array, b: Array, g: float) -> Array:
    return np.linalg.solve(np.eye(len(b)) / g - np.tril(a, -1), b)


def _band_product(a: Array, x: Array) -> Array:
    padded = np.pad(x, 1)
    return a[:, 0] * padded[:-2] + a[:, 1] * x + a[:, 2] * padded[2:]


FORMS = (
    Form(
        "recurrence",
        _LINE,
        """(x) -> (y)
x T [N] heap
y T [N] heap
t T [] stack

1 y[0] = x[0]
K
| t[] = y[{0}] * A
| y[{0}+1] = x[{0}+1] + t[]
""",
        """(const T *restrict x, T *restrict y) {
  y[0] = x[0];
  for (int i = 1; i < N; i++) y[i] = x[i] + y[i - 1] * A;
}""",
        lambda v: _scan(v.x, v.A),
        drawn="A",
        derived={"K": "N - 1"},
    ),
    Form(
        "running_mean",
        _LINE,
        """(x) -> (y)
x T [N] heap
y T [N] heap
s T [1] heap
t T [] stack

1 s[0] = 0
N
| s[0] = s[0] * A
| t[] = x[{0}] * B
| s[0] = s[0] + t[]
| y[{0}] = s[0]
""",
        """(const T *restrict x, T *restrict y) {
  T s = 0;
  for (int i = 0; i < N; i++) y[i] = s = s * A + x[i] * B;
}""",
        lambda v: _scan(v.x * v.B, v.A),
        drawn="A B",
    ),
    Form(
        "biquad",
        _LINE,
        """(x) -> (y)
x T [N] heap
y T [N] heap
p T [1] heap
q T [1] heap
t T [] stack
u T [] stack

1 p[0] = 0
1 q[0] = 0
N
| t[] = p[0] * A
| u[] = q[0] * B
| t[] = t[] - u[]
| q[0] = p[0]
| p[0] = x[{0}] + t[]
| y[{0}] = p[0]
""",
        """(const T *restrict x, T *restrict y) {
  T p = 0, q = 0;
  for (int i = 0; i < N; i++) {
    T t = x[i] + (p * A - q * B);
    q = p;
    y[i] = p = t;
  }
}""",
        lambda v: _biquad(v.x, v.A, v.B),
        drawn="A B",
    ),
    Form(
        "row_scans",
        _TABLE,
        """(x) -> (y)
x T [R, C] heap
y T [R, C] heap
s T [R] heap

R
| s[{0}] = 0
| C
| | s[{0}] = s[{0}] * A
| | s[{0}] = s[{0}] + x[{0},{1}]
| | y[{0},{1}] = s[{0}]
""",
        """(const T (*restrict x)[C], T (*restrict y)[C]) {
  for (int i = 0; i < R; i++) {
    T s = 0;
    for (int j = 0; j < C; j++) y[i][j] = s = s * A + x[i][j];
  }
}""",
        lambda v: _scan(v.x, v.A, 1),
        drawn="A",
    ),
    Form(
        "column_scans",
        _TABLE,
        """(x) -> (y)
x T [R, C] heap
y T [R, C] heap
t T [] stack

C y[0,{0}] = x[0,{0}]
K C
| t[] = y[{0},{1}] * A
| y[{0}+1,{1}] = x[{0}+1,{1}] + t[]
""",
        """(const T (*restrict x)[C], T (*restrict y)[C]) {
  for (int j = 0; j < C; j++) y[0][j] = x[0][j];
  for (int i = 1; i < R; i++)
    for (int j = 0; j < C; j++) y[i][j] = x[i][j] + y[i - 1][j] * A;
}""",
        lambda v: _scan(v.x, v.A),
        drawn="A",
        derived={"K": "R - 1"},
    ),
    Form(
        "prefix_sums",
        _LINE,
        """(x) -> (y)
x T [N] heap
y T [N] heap
s T [1] heap

1
| s[0] = 0
| N
| | s[0] += x[{1}]
| | y[{1}] = s[0]
""",
        """(const T *restrict x, T *restrict y) {
  T s = 0;
  for (int i = 0; i < N; i++) y[i] = s += x[i];
}""",
        lambda v: np.cumsum(v.x),
    ),
    Form(
        "gated_state",
        _LINE,
        """(x, g) -> (y)
x T [N] heap
g T [N] heap
y T [N] heap
h T [1] heap
t T [N] heap

1 h[0] = 0
N t[{0}] = g[{0}] * x[{0}]
N
| h[0] = h[0] * A
| h[0] = h[0] + t[{0}]
| y[{0}] = h[0]
""",
        """(const T *restrict x, const T *restrict g, T *restrict y) {
  T h = 0;
  for (int i = 0; i < N; i++) y[i] = h = h * A + g[i] * x[i];
}""",
        lambda v: _gated(v.x, v.g, v.A),
        drawn="A",
    ),
    Form(
        "triangular_gemv",
        _SQUARE,
        """(a, x) -> (y)
a T [N, N] heap
x T [N] heap
y T [N] heap

N
| y[{0}] = 0
| N where ({1} <= {0}) y[{0}] += a[{0},{1}] * x[{1}]
""",
        """(const T (*restrict a)[N], const T *restrict x, T *restrict y) {
  for (int i = 0; i < N; i++) {
    T s = 0;
    for (int j = 0; j <= i; j++) s += a[i][j] * x[j];
    y[i] = s;
  }
}""",
        lambda v: np.tril(v.a) @ v.x,
    ),
    Form(
        "triangular_product",
        {"N": (7, 13), "M": (6, 12)},
        """(a, b) -> (c)
a T [N, N] heap
b T [N, M] heap
c T [N, M] heap

N M
| c[{0},{1}] = 0
| N where ({2} <= {0}) c[{0},{1}] += a[{0},{2}] * b[{2},{1}]
""",
        """(const T (*restrict a)[N], const T (*restrict b)[M], T (*restrict c)[M]) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) {
      T s = 0;
      for (int k = 0; k <= i; k++) s += a[i][k] * b[k][j];
      c[i][j] = s;
    }
}""",
        lambda v: np.tril(v.a) @ v.b,
    ),
    Form(
        "forward_substitution",
        _SQUARE,
        """(a, b) -> (x)
a T [N, N] heap
b T [N] heap
x T [N] heap
s T [N] heap
t T [N] heap

N s[{0}] = b[{0}]
N
| N where ({1} < {0})
| | t[{1}] = a[{0},{1}] * x[{1}]
| | s[{0}] += t[{1}]
| x[{0}] = s[{0}] * G
""",
        """(const T (*restrict a)[N], const T *restrict b, T *restrict x) {
  for (int i = 0; i < N; i++) {
    T s = b[i];
    for (int j = 0; j < i; j++) s += a[i][j] * x[j];
    x[i] = s * G;
  }
}""",
        lambda v: _substituted(v.a, v.b, v.G),
        {"G": 1 / 8},
    ),
    Form(
        "causal_mask",
        _SQUARE,
        """(x) -> (y)
x T [N, N] heap
y T [N, N] heap

N N y[{0},{1}] = 0
N N where ({1} <= {0}) y[{0},{1}] = x[{0},{1}] * A
""",
        """(const T (*restrict x)[N], T (*restrict y)[N]) {
  for (int i = 0; i < N; i++) {
    for (int j = 0; j <= i; j++) y[i][j] = x[i][j] * A;
    for (int j = i + 1; j < N; j++) y[i][j] = 0;
  }
}""",
        lambda v: np.tril(v.x) * v.A,
        drawn="A",
    ),
    Form(
        "band_product",
        {"N": (30, 100)},
        """(a, x) -> (y)
a T [N, 3] heap
x T [N] heap
y T [N] heap

N
| y[{0}] = 0
| 3 where ({0}+{1} >= 1, {0}+{1} <= N) y[{0}] += a[{0},{1}] * x[{0}+{1}-1]
""",
        """(const T (*restrict a)[3], const T *restrict x, T *restrict y) {
  for (int i = 0; i < N; i++) {
    T s = a[i][1] * x[i];
    if (i > 0) s += a[i][0] * x[i - 1];
    if (i < N - 1) s += a[i][2] * x[i + 1];
    y[i] = s;
  }
}""",
        lambda v: _band_product(v.a, v.x),
    ),
    Form(
        "solve_2x2",
        {"N": (20, 80)},
        """(a, b, p, q) -> (x, y)
a T [N] heap
b T [N] heap
p T [N] heap
q T [N] heap
x T [N] heap
y T [N] heap
c T [N] heap
d T [N] heap
e T [N] heap
r T [N] heap
s T [N] heap
t T [N] heap

N c[{0}] = a[{0}] * a[{0}]
N c[{0}] = c[{0}] + 1
N d[{0}] = a[{0}] * b[{0}]
N e[{0}] = b[{0}] * b[{0}]
N e[{0}] = e[{0}] + 1
N r[{0}] = c[{0}] * e[{0}]
N s[{0}] = d[{0}] * d[{0}]
N r[{0}] = r[{0}] - s[{0}]
N r[{0}] = 1 / r[{0}]
N s[{0}] = e[{0}] * p[{0}]
N t[{0}] = d[{0}] * q[{0}]
N s[{0}] = s[{0}] - t[{0}]
N x[{0}] = s[{0}] * r[{0}]
N s[{0}] = c[{0}] * q[{0}]
N t[{0}] = d[{0}] * p[{0}]
N s[{0}] = s[{0}] - t[{0}]
N y[{0}] = s[{0}] * r[{0}]
""",
        """(const T *restrict a, const T *restrict b, const T *restrict p, const T *restrict q, T *restrict x,
           T *restrict y) {
  for (int i = 0; i < N; i++) {
    T c = a[i] * a[i] + 1, d = a[i] * b[i], e = b[i] * b[i] + 1;
    T r = 1 / (c * e - d * d);
    x[i] = (e * p[i] - d * q[i]) * r;
    y[i] = (c * q[i] - d * p[i]) * r;
  }
}""",
        lambda v: _rank_one_solutions(v.a, v.b, v.p, v.q),
        divides=True,
    ),
)
