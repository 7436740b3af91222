"""Functions of JAX, written to a folder as linalg, with arguments and results: `python programs.py FOLDER`.

A process of its own, because JAX starts threads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "examples/jax"))
from to_linalg import linalg_of, mlp


def softmax(x: Any, w: Any) -> Any:
    return jax.nn.softmax(x @ w)


def layernorm(x: Any, g: Any, b: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * g + b


def relu_mlp(x: Any, w1: Any, b1: Any, w2: Any) -> Any:
    return jax.nn.relu(x @ w1 + b1) @ w2


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.float32(np.sqrt(q.shape[-1]))
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(mask, scores, -jnp.inf)), v)


def conv(x: Any, w: Any) -> Any:
    return jax.nn.relu(jax.lax.conv(x, w, (2, 2), "SAME"))


def pool(x: Any) -> Any:
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def pieces(x: Any, y: Any) -> Any:
    return jnp.concatenate([jnp.flip(x, 0)[1:], jnp.pad(y, [(1, 0), (0, 2)])[:, 1:-1]]).reshape(-1, 3).T


def mixed(x: Any, y: Any) -> Any:
    return (x.astype(jnp.float16) * 3).sum(1), jnp.where(y > 3, y % 5, -y) // 2, jnp.argmax(x, 1)


def batched(x: Any, y: Any) -> Any:
    return jnp.matmul(x, y), x[0] @ y[0, :, 0], x[0, 0] @ y[1]


PROGRAMS: dict[str, tuple[Callable[..., Any], Sequence[tuple[tuple[int, ...], str]]]] = {
    "softmax": (softmax, [((4, 8), "f4"), ((8, 16), "f4")]),
    "layernorm": (layernorm, [((4, 8), "f4"), ((8,), "f4"), ((8,), "f4")]),
    "mlp": (mlp, [((4, 8), "f4"), ((8, 16), "f4"), ((16,), "f4"), ((16, 8), "f4"), ((8,), "f4")]),
    "relu_mlp": (relu_mlp, [((4, 8), "f4"), ((8, 16), "f4"), ((16,), "f4"), ((16, 8), "f4")]),
    "attention": (attention, [((2, 3, 6, 4), "f4")] * 3),
    "conv": (conv, [((1, 3, 8, 8), "f4"), ((4, 3, 3, 3), "f4")]),
    "pool": (pool, [((1, 2, 6, 6), "f4")]),
    "pieces": (pieces, [((4, 6), "f4"), ((3, 6), "f4")]),
    "mixed": (mixed, [((4, 6), "f4"), ((3, 6), "i4")]),
    "batched": (batched, [((2, 4, 6), "f4"), ((2, 6, 5), "f4")]),
}


def main(folder: Path) -> None:
    rng = np.random.default_rng(3)
    for name, (function, kinds) in PROGRAMS.items():
        arguments = [(rng.normal(size=shape) * (10 if kind == "i4" else 1)).astype(kind) for shape, kind in kinds]
        (folder / f"{name}.mlir").write_text(linalg_of(function, *arguments))
        found = jax.jit(function)(*arguments)
        results = found if isinstance(found, tuple) else (found,)
        np.savez(
            folder / f"{name}.npz",
            **{f"x{k}": a for k, a in enumerate(arguments)},
            **{f"y{k}": np.asarray(r) for k, r in enumerate(results)},
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
