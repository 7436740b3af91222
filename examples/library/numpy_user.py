"""A program that uses the library of spec.toml: `pip install dist/wheel/example-*.whl`, then run this file."""

import example
import numpy as np

random = np.random.default_rng(0)

# 100 rows are not in the specification, but `rows = true` is.
x = random.standard_normal((100, 512), dtype=np.float32)
y = example.softmax_f32(x)
e = np.exp(x - x.max(1, keepdims=True))
wanted = e / e.sum(1, keepdims=True)
assert np.allclose(y, wanted, atol=1e-6)

# Memory of the caller; arrays of `empty` are aligned to 64 bytes, for which calls are fastest.
a, b, c = (example.empty(shape, "f32") for shape in ((32, 48), (48, 64), (32, 64)))
a[...], b[...] = random.standard_normal(a.shape), random.standard_normal(b.shape)
example.set_threads(1)
assert example.matmul_f32(a, b, out=c) is c
assert np.allclose(c, a @ b, atol=1e-4)

try:
    example.matmul_f32(b, a)
except ValueError as error:
    print(f"refused: {error}")
print(f"example {example.__version__}, level {example.level()}: softmax and matmul agree with NumPy")
