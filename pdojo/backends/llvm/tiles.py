"""Permission to use the tiles of AMX; a process has to request it from Linux."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys

from pdojo.errors import LoweringError

FEATURE = "amx-tile"
"""The feature whose instructions need the permission."""
_ARCH_PRCTL = 158
"""The number of the system call on x86-64 (arch/x86/entry/syscalls/syscall_64.tbl)."""
_REQUEST, _TILES = 0x1023, 18
"""ARCH_REQ_XCOMP_PERM, and the state component of tile data (Linux, Documentation/arch/x86/xstate.rst)."""
_MEANING = {
    errno.EINVAL: "this version of Linux does not know them",
    errno.EOPNOTSUPP: "the processor or the system lacks them",
    errno.ENOSYS: "the system does not know the request",
    errno.ENOSPC: "the signal stack of a thread is too small for them",
    errno.EPERM: "it is not permitted here",
}


def permit_tiles() -> None:
    """Request the permission for all threads of this process; without it, the first tile instruction ends the process.

    Raises LoweringError with the system's reason if it refuses.
    """
    reason = _ask()
    if reason:
        raise LoweringError(
            f"the system refuses the tiles of AMX, which this program uses: {reason}; unmap the scopes that use them, "
            f"or tune for another machine"
        )


def _ask() -> str:
    """The system's reason for refusing; empty if it grants the permission."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "tile registers need Linux on x86-64"
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(ctypes.c_long(_ARCH_PRCTL), ctypes.c_long(_REQUEST), ctypes.c_ulong(_TILES)) == 0:
        return ""
    code = ctypes.get_errno()
    return _MEANING.get(code, os.strerror(code))
