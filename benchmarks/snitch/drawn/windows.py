"""Windows: stencils, pools with strides, filters, frames, correlations."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from benchmarks.snitch.drawn.form import Form

_LINE = {"N": (50, 240)}
_IMAGE = {"H": (7, 16), "W": (8, 20)}
_INSIDE = {"P": "H + 2", "Q": "W + 2"}

FORMS = (
    Form(
        "stencil_3",
        _LINE,
        """(x) -> (y)
x T [K] heap
y T [N] heap
t T [N] heap

N t[{0}] = x[{0}] + x[{0}+2]
N t[{0}] = t[{0}] * A
N y[{0}] = t[{0}] + x[{0}+1]
""",
        """(const T *restrict x, T *restrict y) {
  for (int i = 0; i < N; i++) y[i] = (x[i] + x[i + 2]) * A + x[i + 1];
}""",
        lambda v: (v.x[:-2] + v.x[2:]) * v.A + v.x[1:-1],
        derived={"K": "N + 2"},
        drawn="A",
    ),
    Form(
        "stencil_5",
        _IMAGE,
        """(x) -> (y)
x T [P, Q] heap
y T [H, W] heap
s T [] stack
c T [] stack

H W
| s[] = x[{0},{1}+1] + x[{0}+2,{1}+1]
| s[] = s[] + x[{0}+1,{1}]
| s[] = s[] + x[{0}+1,{1}+2]
| s[] = s[] * A
| c[] = x[{0}+1,{1}+1] * B
| y[{0},{1}] = s[] + c[]
""",
        """(const T (*restrict x)[Q], T (*restrict y)[W]) {
  for (int i = 0; i < H; i++)
    for (int j = 0; j < W; j++)
      y[i][j] = (x[i][j + 1] + x[i + 2][j + 1] + x[i + 1][j] + x[i + 1][j + 2]) * A + x[i + 1][j + 1] * B;
}""",
        lambda v: (v.x[:-2, 1:-1] + v.x[2:, 1:-1] + v.x[1:-1, :-2] + v.x[1:-1, 2:]) * v.A + v.x[1:-1, 1:-1] * v.B,
        derived=_INSIDE,
        drawn="A B",
    ),
    Form(
        "stencil_9",
        _IMAGE,
        """(x, w) -> (y)
x T [P, Q] heap
w T [3, 3] heap
y T [H, W] heap

H W
| y[{0},{1}] = 0
| 3 3 y[{0},{1}] += x[{0}+{2},{1}+{3}] * w[{2},{3}]
""",
        """(const T (*restrict x)[Q], const T (*restrict w)[3], T (*restrict y)[W]) {
  for (int i = 0; i < H; i++)
    for (int j = 0; j < W; j++) {
      T s = 0;
      for (int k = 0; k < 3; k++)
        for (int l = 0; l < 3; l++) s += x[i + k][j + l] * w[k][l];
      y[i][j] = s;
    }
}""",
        lambda v: (sliding_window_view(v.x, (3, 3)) * v.w).sum((2, 3)),
        derived=_INSIDE,
    ),
    Form(
        "gradient",
        _IMAGE,
        """(x) -> (g)
x T [P, Q] heap
g T [H, W] heap
a T [H, W] heap
b T [H, W] heap

H W a[{0},{1}] = x[{0}+1,{1}+2] - x[{0}+1,{1}]
H W b[{0},{1}] = x[{0}+2,{1}+1] - x[{0},{1}+1]
H W a[{0},{1}] = a[{0},{1}] * a[{0},{1}]
H W b[{0},{1}] = b[{0},{1}] * b[{0},{1}]
H W g[{0},{1}] = a[{0},{1}] + b[{0},{1}]
""",
        """(const T (*restrict x)[Q], T (*restrict g)[W]) {
  for (int i = 0; i < H; i++)
    for (int j = 0; j < W; j++) {
      T a = x[i + 1][j + 2] - x[i + 1][j];
      T b = x[i + 2][j + 1] - x[i][j + 1];
      g[i][j] = a * a + b * b;
    }
}""",
        lambda v: (v.x[1:-1, 2:] - v.x[1:-1, :-2]) ** 2 + (v.x[2:, 1:-1] - v.x[:-2, 1:-1]) ** 2,
        derived=_INSIDE,
    ),
    Form(
        "box_filter",
        _LINE,
        """(x) -> (y)
x T [K] heap
y T [N] heap

N
| y[{0}] = 0
| 5 y[{0}] += x[{0}+{1}]
N y[{0}] = y[{0}] * A
""",
        """(const T *restrict x, T *restrict y) {
  for (int i = 0; i < N; i++) {
    T s = 0;
    for (int k = 0; k < 5; k++) s += x[i + k];
    y[i] = s * A;
  }
}""",
        lambda v: sliding_window_view(v.x, 5).sum(1) * v.A,
        derived={"K": "N + 4"},
        drawn="A",
    ),
    Form(
        "fir",
        {"N": (30, 120), "K": (5, 12)},
        """(x, h) -> (y)
x T [M] heap
h T [K] heap
y T [N] heap

N
| y[{0}] = 0
| K y[{0}] += x[{0}+{1}] * h[{1}]
""",
        """(const T *restrict x, const T *restrict h, T *restrict y) {
  for (int i = 0; i < N; i++) {
    T s = 0;
    for (int k = 0; k < K; k++) s += x[i + k] * h[k];
    y[i] = s;
  }
}""",
        lambda v: np.correlate(v.x, v.h, "valid"),
        derived={"M": "N + K - 1"},
    ),
    Form(
        "correlation",
        {"N": (40, 100), "L": (6, 12)},
        """(x) -> (r)
x T [M] heap
r T [L] heap

L
| r[{0}] = 0
| N r[{0}] += x[{1}] * x[{1}+{0}]
""",
        """(const T *restrict x, T *restrict r) {
  for (int k = 0; k < L; k++) {
    T s = 0;
    for (int i = 0; i < N; i++) s += x[i] * x[i + k];
    r[k] = s;
  }
}""",
        lambda v: np.correlate(v.x, v.x[: v.N], "valid"),
        derived={"M": "N + L - 1"},
    ),
    Form(
        "frames",
        {"F": (4, 9), "N": (12, 30)},
        """(x, w) -> (y)
x T [M] heap
w T [N] heap
y T [F, N] heap

F N y[{0},{1}] = x[{0}*6+{1}] * w[{1}]
""",
        """(const T *restrict x, const T *restrict w, T (*restrict y)[N]) {
  for (int f = 0; f < F; f++)
    for (int i = 0; i < N; i++) y[f][i] = x[f * 6 + i] * w[i];
}""",
        lambda v: sliding_window_view(v.x, v.N)[::6][: v.F] * v.w,
        derived={"M": "F * 6 + N"},
    ),
    Form(
        "maxpool_2",
        {"H": (5, 10), "W": (6, 14)},
        """(x) -> (y)
x T [P, Q] heap
y T [H, W] heap

H W
| y[{0},{1}] = -inf
| 2 2 y[{0},{1}] max= x[{0}*2+{2},{1}*2+{3}]
""",
        """(const T (*restrict x)[Q], T (*restrict y)[W]) {
  for (int i = 0; i < H; i++)
    for (int j = 0; j < W; j++)
      y[i][j] = MAX(MAX(x[2 * i][2 * j], x[2 * i][2 * j + 1]), MAX(x[2 * i + 1][2 * j], x[2 * i + 1][2 * j + 1]));
}""",
        lambda v: sliding_window_view(v.x, (2, 2))[::2, ::2].max((2, 3)),
        derived={"P": "2 * H", "Q": "2 * W"},
        has_maximum=True,
    ),
    Form(
        "average_pool_3",
        {"H": (4, 9), "W": (5, 12)},
        """(x) -> (y)
x T [P, Q] heap
y T [H, W] heap

H W
| y[{0},{1}] = 0
| 3 3 y[{0},{1}] += x[{0}*2+{2},{1}*2+{3}]
H W y[{0},{1}] = y[{0},{1}] * A
""",
        """(const T (*restrict x)[Q], T (*restrict y)[W]) {
  for (int i = 0; i < H; i++)
    for (int j = 0; j < W; j++) {
      T s = 0;
      for (int k = 0; k < 3; k++)
        for (int l = 0; l < 3; l++) s += x[2 * i + k][2 * j + l];
      y[i][j] = s * A;
    }
}""",
        lambda v: sliding_window_view(v.x, (3, 3))[::2, ::2].sum((2, 3)) * v.A,
        {"A": 1 / 9},
        derived={"P": "2 * H + 1", "Q": "2 * W + 1"},
    ),
    Form(
        "maxpool_line",
        {"C": (3, 8), "N": (13, 40)},
        """(x) -> (y)
x T [C, M] heap
y T [C, N] heap

C N
| y[{0},{1}] = -inf
| 3 y[{0},{1}] max= x[{0},{1}*2+{2}]
""",
        """(const T (*restrict x)[M], T (*restrict y)[N]) {
  for (int c = 0; c < C; c++)
    for (int i = 0; i < N; i++) y[c][i] = MAX(MAX(x[c][2 * i], x[c][2 * i + 1]), x[c][2 * i + 2]);
}""",
        lambda v: sliding_window_view(v.x, 3, 1)[:, ::2].max(-1),
        derived={"M": "2 * N + 1"},
        has_maximum=True,
    ),
)
