"""TVM: the best schedule found by MetaSchedule (`tvm_cache.tune`), on our arrays, without a copy."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from numpy.typing import NDArray

from benchmarks.peers.calls import Into
from benchmarks.peers.threads import unbound
from benchmarks.peers.tvm_cache import found_path, trials_of
from pdojo.errors import UsageError
from pdojo.kernels import Workload


class _Built:
    def __init__(self, call: Any) -> None:
        self._call = call

    def bind(self, arrays: Sequence[NDArray[Any]]) -> Into:
        """A call on arrays."""
        tvm: Any = import_module("tvm")
        given = [tvm.runtime.from_dlpack(array) for array in arrays]
        call = self._call
        with unbound():
            # TVM starts its threads at the first call.
            call(*given)
        return Into(lambda: call(*given))


def build(workload: Workload, variant: str, threads: int) -> _Built:
    """Compile the cached schedule. Raises UsageError if there is none."""
    path = found_path(workload, threads, trials_of(variant))
    if not path.exists():
        raise UsageError(f"TVM has no schedule for this; the benchmark looks for one before it measures ({path})")
    os.environ["TVM_NUM_THREADS"] = str(threads)
    os.environ["TVM_BIND_THREADS"] = "0"
    os.environ["TVM_FFI_DISABLE_TORCH_C_DLPACK"] = "1"
    tvm: Any = import_module("tvm")
    from benchmarks.peers.tvm_tuning import target

    with unbound():
        module = tvm.ir.load_json(json.loads(path.read_text())["module"])
        return _Built(tvm.compile(module, target=target(threads))["main"])
