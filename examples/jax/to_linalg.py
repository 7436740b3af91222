"""A JAX function as a program of linalg: JAX -> StableHLO -> linalg, with the passes that jaxlib brings along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxlib.mlir.dialects import stablehlo
from jaxlib.mlir.passmanager import PassManager

stablehlo.register_stablehlo_passes()
PASSES = "func.func(chlo-legalize-to-stablehlo,stablehlo-legalize-to-linalg)"


def linalg_of(function: Callable[..., Any], *arguments: Any) -> str:
    """The function for arguments of these shapes and types, as MLIR text."""
    module = jax.jit(function).lower(*arguments).compiler_ir(dialect="stablehlo")
    with module.context:
        # A copy: JAX compiles the module when the function is called.
        operation = module.operation.clone()
        PassManager.parse(f"builtin.module({PASSES})").run(operation)
        # The generic form, because xDSL does not read all of the others.
        return operation.get_asm(print_generic_op_form=True)


def mlp(x: jax.Array, w1: jax.Array, b1: jax.Array, w2: jax.Array, b2: jax.Array) -> jax.Array:
    """Two layers with a softmax behind them."""
    return jax.nn.softmax(jax.nn.gelu(x @ w1 + b1) @ w2 + b2)


if __name__ == "__main__":
    shapes = [(16, 32), (32, 64), (64,), (64, 32), (32,)]
    print(linalg_of(mlp, *[jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]))
