"""An entry of a generated library as a peer of the measuring process: its C function on the process's arrays."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from benchmarks import peers
from benchmarks.peers.calls import Into
from benchmarks.peers.threads import unbound
from benchmarks.records import OURS
from pdojo.backends.measure import Peer
from pdojo.backends.measure.tools import PeerBuild
from pdojo.library.client.runtime import Library
from pdojo.library.records import Entry


def entry_peer(library: Path, prefix: str, entry: Entry) -> Peer:
    """An entry of a shared library, for `build`."""
    sizes = [size if isinstance(size, int) else size[-1] for size in entry.sizes.values()]
    facts = {"prefix": prefix, "operator": entry.operator, "sizes": sizes}
    return Peer(OURS, json.dumps({"path": str(library.resolve()), **facts}), library.name)


class _Built:
    """A C function of a library with a handle."""

    def __init__(self, facts: dict[str, Any], threads: int) -> None:
        self._facts = facts
        self._library = Library(facts["path"], facts["prefix"])
        with unbound():
            self._handle = self._library.new_handle(threads)

    def bind(self, arrays: Sequence[NDArray[Any]]) -> Into:
        """A call on arrays."""
        sizes = self._facts["sizes"]
        kinds = [ctypes.c_void_p, *[ctypes.c_int64] * len(sizes), *[ctypes.c_void_p] * len(arrays)]
        function = self._library.function(self._facts["operator"], ctypes.c_int, *kinds)
        arguments = [self._handle.pointer, *sizes, *(array.ctypes.data for array in arrays)]
        return Into(lambda: self._library.check(function(*arguments)))


def build(peer: Peer, threads: int) -> PeerBuild:
    """An entry, or another library's implementation. Raises the errors of `benchmarks.peers.build`."""
    return _Built(json.loads(peer.workload), threads) if peer.library == OURS else peers.build(peer, threads)
