"""The worker of this processor."""

from __future__ import annotations

from pdojo.backends.measure.worker import Worker


class CpuWorker(Worker):
    """Measures programs on this processor; LLVM compiles them unless a `compiler` is given."""

    compiler = "pdojo.backends.llvm.executable:compile"
    session = "pdojo.backends.llvm.session:CpuSession"
