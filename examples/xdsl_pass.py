"""A pass of your own in an xDSL pipeline: it tunes the kernels of a module, and xDSL's passes lower the rest.

python examples/xdsl_pass.py
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass, PassPipeline
from xdsl.rewriter import Rewriter
from xdsl.universe import Universe

import pdojo
from pdojo.dialect.ops import KernelOp

HOST = Path(__file__).parent / "embedding" / "host.mlir"


@dataclass(frozen=True)
class TuneKernels(ModulePass):
    """Replaces every kernel by the program of an expert pass."""

    name = "tune-kernels"
    expert: str = "heuristic"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Tune the kernels of a module; callers promise no more than the alignment of elements."""
        for kernel in [each for each in op.walk() if isinstance(each, KernelOp)]:
            tuned = pdojo.tune(kernel, expert=self.expert, align=1, threads=1, measure=False)
            assert tuned.is_verified
            print(f"{kernel.sym_name.data}: {len(tuned.trace.steps)} moves")
            Rewriter.replace_op(kernel, tuned.kernel.clone())


def main() -> None:
    """Run the pass before xDSL's own."""
    universe = Universe.get_multiverse()
    passes = {**universe.all_passes, TuneKernels.name: lambda: TuneKernels}
    context = Context()
    for name, dialect in universe.all_dialects.items():
        context.register_dialect(name, dialect)
    module = Parser(context, HOST.read_text()).parse_module()
    pipeline = "tune-kernels{expert=naive},convert-pdojo-to-loops,convert-linalg-to-loops,canonicalize"
    PassPipeline.parse_spec(passes, pipeline).apply(context, module)
    module.verify()
    assert not any(isinstance(op, KernelOp) for op in module.walk())
    print(module)


if __name__ == "__main__":
    main()
