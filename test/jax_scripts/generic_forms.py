"""Programs of a folder, read and verified by MLIR: `python generic_forms.py FOLDER`.

For NAME.mlir it writes NAME.generic, the program in the generic form; what MLIR refuses is reported at the end. MLIR is
the one of jaxlib, in a process of its own, because JAX starts threads.
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
    assert module is not None
    failures: list[str] = []
    with module.context:
        # The pass loads the dialects that it may produce into the context.
        PassManager.parse("builtin.module(func.func(stablehlo-legalize-to-linalg))").run(module.operation.clone())
        for path in sorted(folder.glob("*.mlir")):
            try:
                found = ir.Module.parse(path.read_text()).operation.get_asm(print_generic_op_form=True)
            except ir.MLIRError as error:
                failures.append(f"{path.name}: {error}")
                continue
            path.with_suffix(".generic").write_text(found)
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
