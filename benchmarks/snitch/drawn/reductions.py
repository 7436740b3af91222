"""Reductions over each axis, distances, norms, products."""

from __future__ import annotations

import numpy as np

from benchmarks.snitch.drawn.form import Form

_TABLE = {"R": (8, 20), "C": (12, 28)}
_PRODUCT = {"M": (5, 14), "K": (6, 18), "N": (6, 16)}

FORMS = (
    Form(
        "column_sums",
        _TABLE,
        """(x) -> (y)
x T [R, C] heap
y T [C] heap

C
| y[{0}] = 0
| R y[{0}] += x[{1},{0}]
""",
        """(const T (*restrict x)[C], T *restrict y) {
  for (int j = 0; j < C; j++) y[j] = 0;
  for (int i = 0; i < R; i++)
    for (int j = 0; j < C; j++) y[j] += x[i][j];
}""",
        lambda v: v.x.sum(0),
    ),
    Form(
        "weighted_rows",
        _TABLE,
        """(x, w) -> (y)
x T [R, C] heap
w T [C] heap
y T [R] heap

R
| y[{0}] = 0
| C y[{0}] += x[{0},{1}] * w[{1}]
R y[{0}] = y[{0}] * A
""",
        """(const T (*restrict x)[C], const T *restrict w, T *restrict y) {
  for (int i = 0; i < R; i++) {
    T s = 0;
    for (int j = 0; j < C; j++) s += x[i][j] * w[j];
    y[i] = s * A;
  }
}""",
        lambda v: v.x @ v.w * v.A,
        drawn="A",
    ),
    Form(
        "middle_sums",
        {"B": (3, 8), "R": (5, 12), "C": (6, 14)},
        """(x) -> (y)
x T [B, R, C] heap
y T [B, C] heap

B C
| y[{0},{1}] = 0
| R y[{0},{1}] += x[{0},{2},{1}]
""",
        """(const T (*restrict x)[R][C], T (*restrict y)[C]) {
  for (int b = 0; b < B; b++)
    for (int j = 0; j < C; j++) {
      T s = 0;
      for (int i = 0; i < R; i++) s += x[b][i][j];
      y[b][j] = s;
    }
}""",
        lambda v: v.x.sum(1),
    ),
    Form(
        "squares",
        {"N": (60, 300)},
        """(x, y) -> (s)
x T [N] heap
y T [N] heap
s T [1] heap
d T [N] heap

N d[{0}] = x[{0}] - y[{0}]
1
| s[0] = 0
| N s[0] += d[{1}] * d[{1}]
""",
        """(const T *restrict x, const T *restrict y, T *restrict s) {
  T a = 0;
  for (int i = 0; i < N; i++) a += (x[i] - y[i]) * (x[i] - y[i]);
  s[0] = a;
}""",
        lambda v: np.square(v.x - v.y).sum(keepdims=True),
    ),
    Form(
        "column_maxima",
        _TABLE,
        """(x) -> (y)
x T [R, C] heap
y T [C] heap

C
| y[{0}] = -inf
| R y[{0}] max= x[{1},{0}]
""",
        """(const T (*restrict x)[C], T *restrict y) {
  for (int j = 0; j < C; j++) y[j] = -__builtin_inf();
  for (int i = 0; i < R; i++)
    for (int j = 0; j < C; j++) y[j] = MAX(y[j], x[i][j]);
}""",
        lambda v: v.x.max(0),
        has_maximum=True,
    ),
    Form(
        "absolute_sum",
        {"N": (60, 300)},
        """(x) -> (s)
x T [N] heap
s T [1] heap
a T [N] heap

N a[{0}] = abs(x[{0}])
1
| s[0] = 0
| N s[0] += a[{1}]
""",
        """(const T *restrict x, T *restrict s) {
  T a = 0;
  for (int i = 0; i < N; i++) a += ABS(x[i]);
  s[0] = a;
}""",
        lambda v: np.abs(v.x).sum(keepdims=True),
    ),
    Form(
        "distances",
        {"M": (5, 12), "N": (6, 12), "K": (3, 10)},
        """(x, y) -> (d)
x T [M, K] heap
y T [N, K] heap
d T [M, N] heap
t T [] stack

M N
| d[{0},{1}] = 0
| K
| | t[] = x[{0},{2}] - y[{1},{2}]
| | d[{0},{1}] += t[] * t[]
""",
        """(const T (*restrict x)[K], const T (*restrict y)[K], T (*restrict d)[N]) {
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      T s = 0;
      for (int k = 0; k < K; k++) s += (x[i][k] - y[j][k]) * (x[i][k] - y[j][k]);
      d[i][j] = s;
    }
}""",
        lambda v: np.square(v.x[:, None] - v.y).sum(-1),
    ),
    Form(
        "l2norm",
        _TABLE,
        """(x) -> (y)
x T [R, C] heap
y T [R, C] heap
q T [R] heap
s T [R] heap
r T [R] heap

R
| q[{0}] = 0
| C q[{0}] += x[{0},{1}] * x[{0},{1}]
| s[{0}] = sqrt(q[{0}])
| r[{0}] = 1 / s[{0}]
| C y[{0},{1}] = x[{0},{1}] * r[{0}]
""",
        """(const T (*restrict x)[C], T (*restrict y)[C]) {
  for (int i = 0; i < R; i++) {
    T s = 0;
    for (int j = 0; j < C; j++) s += x[i][j] * x[i][j];
    T r = 1 / SQRT(s);
    for (int j = 0; j < C; j++) y[i][j] = x[i][j] * r;
  }
}""",
        lambda v: v.x / np.linalg.norm(v.x, axis=1, keepdims=True),
        divides=True,
    ),
    Form(
        "row_variance",
        _TABLE,
        """(x) -> (y)
x T [R, C] heap
y T [R] heap
m T [R] heap
d T [R, C] heap

R
| m[{0}] = 0
| C m[{0}] += x[{0},{1}]
R m[{0}] = m[{0}] * A
R C d[{0},{1}] = x[{0},{1}] - m[{0}]
R
| y[{0}] = 0
| C y[{0}] += d[{0},{1}] * d[{0},{1}]
""",
        """(const T (*restrict x)[C], T *restrict y) {
  for (int i = 0; i < R; i++) {
    T m = 0, s = 0;
    for (int j = 0; j < C; j++) m += x[i][j];
    m *= A;
    for (int j = 0; j < C; j++) s += (x[i][j] - m) * (x[i][j] - m);
    y[i] = s;
  }
}""",
        lambda v: np.square(v.x - v.A * v.x.sum(1, keepdims=True)).sum(1),
        {"A": 1 / 16},
    ),
    Form(
        "gemv_transposed",
        _TABLE,
        """(a, x) -> (y)
a T [R, C] heap
x T [R] heap
y T [C] heap

C
| y[{0}] = 0
| R y[{0}] += a[{1},{0}] * x[{1}]
""",
        """(const T (*restrict a)[C], const T *restrict x, T *restrict y) {
  for (int j = 0; j < C; j++) y[j] = 0;
  for (int i = 0; i < R; i++)
    for (int j = 0; j < C; j++) y[j] += a[i][j] * x[i];
}""",
        lambda v: v.x @ v.a,
    ),
    Form(
        "small_gemm",
        _PRODUCT,
        """(a, b, c) -> (c)
a T [M, K] heap
b T [K, N] heap
c T [M, N] heap

M N K c[{0},{1}] += a[{0},{2}] * b[{2},{1}]
""",
        """(const T (*restrict a)[K], const T (*restrict b)[N], T (*restrict c)[N]) {
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      T s = c[i][j];
      for (int k = 0; k < K; k++) s += a[i][k] * b[k][j];
      c[i][j] = s;
    }
}""",
        lambda v: v.c + v.a @ v.b,
    ),
)
