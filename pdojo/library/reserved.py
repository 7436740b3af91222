"""Names that no library has: C or Python programs that use it would get it in place of something else."""

from __future__ import annotations

import sys

_HEADERS = frozenset(
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic "
    "stdbit stdbool stdckdint stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar "
    "wctype".split()
)
"""Headers of C."""
_LINKED = frozenset("atomic c dl gcc gomp m pthread rt util".split())
"""Libraries that programs are linked with by `-lNAME`."""
_PACKAGES = frozenset(("numpy", "pdojo"))
_SYMBOLS = frozenset("cnd mtx pthread sem svc thrd timer tss".split())
"""Prefixes of functions of the C library that are called `PREFIX_create` or `PREFIX_destroy`."""
_RUNTIME = "pd"
"""The prefix of the functions in `runtime.c`."""


def name_problem(name: str) -> str | None:
    """The reason why no library has a name; None if there is none."""
    if name == "runtime":
        return "every library has a source file runtime.h"
    if name in _HEADERS:
        return f"its header would hide <{name}.h> of C"
    if name in _LINKED:
        return f"-l{name} is another library"
    if name in _PACKAGES or name in sys.stdlib_module_names:
        return f"its wheel would take the place of Python's module '{name}', or be hidden by it"
    return None


def prefix_problem(prefix: str) -> str | None:
    """The reason why no library has a prefix; None if there is none."""
    if prefix == _RUNTIME:
        return "functions that are part of every library begin with it"
    if prefix in _SYMBOLS:
        return "functions of the C library begin with it"
    return None
