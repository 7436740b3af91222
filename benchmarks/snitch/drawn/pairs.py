"""Forms that read several neighbours, or several parts of one array: complex numbers, transforms, pixels, vectors."""

from __future__ import annotations

import numpy as np

from benchmarks.snitch.drawn.form import Array, Form

_PAIRS = {"N": (25, 100)}
_TWICE = {"M": "2 * N"}


def _complex(x: Array) -> Array:
    return x[0::2] + 1j * x[1::2]


def _parts(z: Array) -> Array:
    return np.ascontiguousarray(z).view(np.float64)


def _butterflies(x: Array, w: Array) -> Array:
    half = len(x) // 2
    a, b = _complex(x[:half]), _complex(x[half:]) * _complex(w)
    return np.concatenate([_parts(a + b), _parts(a - b)])


FORMS = (
    Form(
        "complex_product",
        _PAIRS,
        """(a, b) -> (y)
a T [M] heap
b T [M] heap
y T [M] heap
p T [N] heap
q T [N] heap

N p[{0}] = a[{0}*2] * b[{0}*2]
N q[{0}] = a[{0}*2+1] * b[{0}*2+1]
N y[{0}*2] = p[{0}] - q[{0}]
N p[{0}] = a[{0}*2] * b[{0}*2+1]
N q[{0}] = a[{0}*2+1] * b[{0}*2]
N y[{0}*2+1] = p[{0}] + q[{0}]
""",
        """(const T *restrict a, const T *restrict b, T *restrict y) {
  for (int i = 0; i < N; i++) {
    y[2 * i] = a[2 * i] * b[2 * i] - a[2 * i + 1] * b[2 * i + 1];
    y[2 * i + 1] = a[2 * i] * b[2 * i + 1] + a[2 * i + 1] * b[2 * i];
  }
}""",
        lambda v: _parts(_complex(v.a) * _complex(v.b)),
        derived=_TWICE,
    ),
    Form(
        "complex_dot",
        _PAIRS,
        """(a, b, c, d) -> (y)
a T [N] heap
b T [N] heap
c T [N] heap
d T [N] heap
y T [2] heap

1
| y[0] = 0
| y[1] = 0
| N
| | y[0] += a[{1}] * c[{1}]
| | y[0] += b[{1}] * d[{1}]
| | y[1] += a[{1}] * d[{1}]
| | y[1] += b[{1}] * c[{1}]
""",
        """(const T *restrict a, const T *restrict b, const T *restrict c, const T *restrict d, T *restrict y) {
  T p = 0, q = 0;
  for (int i = 0; i < N; i++) {
    p += a[i] * c[i] + b[i] * d[i];
    q += a[i] * d[i] + b[i] * c[i];
  }
  y[0] = p;
  y[1] = q;
}""",
        lambda v: np.array([v.a @ v.c + v.b @ v.d, v.a @ v.d + v.b @ v.c]),
    ),
    Form(
        "fft_stage",
        _PAIRS,
        """(x, w) -> (y)
x T [Q] heap
w T [M] heap
y T [Q] heap
p T [] stack
q T [] stack
r T [] stack
s T [] stack

N
| p[] = x[{0}*2+M] * w[{0}*2]
| q[] = x[{0}*2+1+M] * w[{0}*2+1]
| r[] = p[] - q[]
| p[] = x[{0}*2+M] * w[{0}*2+1]
| q[] = x[{0}*2+1+M] * w[{0}*2]
| s[] = p[] + q[]
| y[{0}*2] = x[{0}*2] + r[]
| y[{0}*2+1] = x[{0}*2+1] + s[]
| y[{0}*2+M] = x[{0}*2] - r[]
| y[{0}*2+1+M] = x[{0}*2+1] - s[]
""",
        """(const T *restrict x, const T *restrict w, T *restrict y) {
  for (int i = 0; i < N; i++) {
    T r = x[2 * i + M] * w[2 * i] - x[2 * i + 1 + M] * w[2 * i + 1];
    T s = x[2 * i + M] * w[2 * i + 1] + x[2 * i + 1 + M] * w[2 * i];
    y[2 * i] = x[2 * i] + r;
    y[2 * i + 1] = x[2 * i + 1] + s;
    y[2 * i + M] = x[2 * i] - r;
    y[2 * i + 1 + M] = x[2 * i + 1] - s;
  }
}""",
        lambda v: _butterflies(v.x, v.w),
        derived={"M": "2 * N", "Q": "4 * N"},
    ),
    Form(
        "haar",
        _PAIRS,
        """(x) -> (a, d)
x T [M] heap
a T [N] heap
d T [N] heap
t T [N] heap

N t[{0}] = x[{0}*2] + x[{0}*2+1]
N a[{0}] = t[{0}] * H
N t[{0}] = x[{0}*2] - x[{0}*2+1]
N d[{0}] = t[{0}] * H
""",
        """(const T *restrict x, T *restrict a, T *restrict d) {
  for (int i = 0; i < N; i++) {
    a[i] = (x[2 * i] + x[2 * i + 1]) * H;
    d[i] = (x[2 * i] - x[2 * i + 1]) * H;
  }
}""",
        lambda v: ((v.x[0::2] + v.x[1::2]) * v.H, (v.x[0::2] - v.x[1::2]) * v.H),
        derived=_TWICE,
        drawn="H",
    ),
    Form(
        "rotate_points",
        _PAIRS,
        """(x) -> (y)
x T [N, 2] heap
y T [N, 2] heap
p T [] stack
q T [] stack

N
| p[] = x[{0},0] * C
| q[] = x[{0},1] * S
| y[{0},0] = p[] - q[]
| p[] = x[{0},0] * S
| q[] = x[{0},1] * C
| y[{0},1] = p[] + q[]
""",
        """(const T (*restrict x)[2], T (*restrict y)[2]) {
  for (int i = 0; i < N; i++) {
    y[i][0] = x[i][0] * C - x[i][1] * S;
    y[i][1] = x[i][0] * S + x[i][1] * C;
  }
}""",
        lambda v: v.x @ np.array([[v.C, v.S], [-v.S, v.C]]),
        drawn="C S",
    ),
    Form(
        "cross_product",
        {"N": (18, 60)},
        """(a, b) -> (y)
a T [N, 3] heap
b T [N, 3] heap
y T [N, 3] heap
p T [N, 3] heap
q T [N, 3] heap

N
| p[{0},0] = a[{0},1] * b[{0},2]
| q[{0},0] = a[{0},2] * b[{0},1]
| y[{0},0] = p[{0},0] - q[{0},0]
| p[{0},1] = a[{0},2] * b[{0},0]
| q[{0},1] = a[{0},0] * b[{0},2]
| y[{0},1] = p[{0},1] - q[{0},1]
| p[{0},2] = a[{0},0] * b[{0},1]
| q[{0},2] = a[{0},1] * b[{0},0]
| y[{0},2] = p[{0},2] - q[{0},2]
""",
        """(const T (*restrict a)[3], const T (*restrict b)[3], T (*restrict y)[3]) {
  for (int i = 0; i < N; i++) {
    y[i][0] = a[i][1] * b[i][2] - a[i][2] * b[i][1];
    y[i][1] = a[i][2] * b[i][0] - a[i][0] * b[i][2];
    y[i][2] = a[i][0] * b[i][1] - a[i][1] * b[i][0];
  }
}""",
        lambda v: np.cross(v.a, v.b),
    ),
    Form(
        "grey",
        {"N": (30, 120)},
        """(x) -> (y)
x T [N, 3] heap
y T [N] heap
t T [N] heap
u T [N] heap

N t[{0}] = x[{0},0] * A
N u[{0}] = x[{0},1] * B
N t[{0}] = t[{0}] + u[{0}]
N u[{0}] = x[{0},2] * D
N y[{0}] = t[{0}] + u[{0}]
""",
        """(const T (*restrict x)[3], T *restrict y) {
  for (int i = 0; i < N; i++) y[i] = x[i][0] * A + x[i][1] * B + x[i][2] * D;
}""",
        lambda v: v.x @ np.array([v.A, v.B, v.D]),
        drawn="A B D",
    ),
    Form(
        "strided_scale",
        {"N": (40, 160)},
        """(x, y) -> (y)
x T [Q] heap
y T [Q] heap
t T [] stack

N
| t[] = x[{0}*3] * A
| y[{0}*3+1] = y[{0}*3+1] + t[]
""",
        """(const T *restrict x, T *restrict y) {
  for (int i = 0; i < N; i++) y[3 * i + 1] += x[3 * i] * A;
}""",
        lambda v: v.y + v.A * np.where(np.arange(len(v.y)) % 3 == 1, np.roll(v.x, 1), 0),
        derived={"Q": "3 * N"},
        drawn="A",
    ),
    Form(
        "upsample",
        _PAIRS,
        """(x) -> (y)
x T [K] heap
y T [M] heap
d T [N] heap

N y[{0}*2] = x[{0}]
N d[{0}] = x[{0}+1] - x[{0}]
N d[{0}] = d[{0}] * A
N y[{0}*2+1] = x[{0}] + d[{0}]
""",
        """(const T *restrict x, T *restrict y) {
  for (int i = 0; i < N; i++) {
    y[2 * i] = x[i];
    y[2 * i + 1] = x[i] + A * (x[i + 1] - x[i]);
  }
}""",
        lambda v: np.stack([v.x[:-1], v.x[:-1] + v.A * np.diff(v.x)], -1).reshape(-1),
        derived={"M": "2 * N", "K": "N + 1"},
        drawn="A",
    ),
)
