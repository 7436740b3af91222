"""Programs of a folder in MLIR's generic form: `python generic_forms.py FOLDER` writes NAME.generic for NAME.mlir.

MLIR is the one of jaxlib, in a process of its own, because JAX starts threads.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from jaxlib.mlir.passmanager import PassManager

stablehlo.register_stablehlo_passes()


def main(folder: Path) -> None:
    module = jax.jit(lambda x: x + x).lower(jnp.zeros(2)).compiler_ir(dialect="stablehlo")
    with module.context:
        # The pass loads the dialects that it produces into the context.
        PassManager.parse("builtin.module(func.func(stablehlo-legalize-to-linalg))").run(module.operation.clone())
        for path in folder.glob("*.mlir"):
            found = ir.Module.parse(path.read_text()).operation.get_asm(print_generic_op_form=True)
            path.with_suffix(".generic").write_text(found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
