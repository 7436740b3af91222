"""Names and texts of a library that reach C, linkers, paths and packages: a specification and a manifest may have these
only.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable

from pdojo.errors import UsageError
from pdojo.library.paths import shown

FUNCTIONS = ("create", "create_level", "destroy", "message", "version", "level")
"""Functions of every library, without its prefix; no operator has such a name."""
TAKEN = frozenset((*FUNCTIONS, "handle", "code"))
_WORD = re.compile(r"[a-z][a-z0-9_]{0,62}")
_RELEASE = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}(?:[-+][0-9A-Za-z.-]{1,60})?")
_VERSION = re.compile(r"(\d+\.\d+\.\d+)(?:-(alpha|beta|a|b|rc)\.?(\d+))?(?:\+([0-9A-Za-z.-]+))?")
"""A semantic version that Python knows in another form (PEP 440, appendix B)."""
_SPDX = re.compile(r"[A-Za-z0-9(][A-Za-z0-9.+() -]{0,199}")
_EXTENT = re.compile(r"(?!.*(?:--|\b\d+[A-Za-z_]))[A-Za-z0-9_+*/%()-]{1,200}")
"""Characters of extents. Neither numbers such as `0x10` nor `--` mean the same in C."""
_ARITHMETIC = (
    *(ast.BinOp, ast.UnaryOp, ast.Name, ast.Load, ast.Constant),
    *(ast.Add, ast.Sub, ast.USub, ast.Mult, ast.FloorDiv, ast.Mod),
)
"""The nodes of expressions of sizes."""
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


def word_problem(name: str) -> str | None:
    """The reason why neither a library nor a function has a name; None if there is none."""
    if _WORD.fullmatch(name):
        return None
    return f"{shown(name)} is no name: at most 63 of a-z, 0-9 and _, a letter first"


def word_of(title: str, otherwise: str, most: int = 56) -> str:
    """A word, for a name of C, from a title such as that of a file; `otherwise` if nothing is left of it."""
    return re.sub(r"[^a-z0-9_]", "_", title.lower()).lstrip("_0123456789")[:most] or otherwise


def name_problem(name: str) -> str | None:
    """The reason why no library has a name; None if there is none."""
    return word_problem(name) or _cannot(name, "name", _name_taken(name))


def prefix_problem(prefix: str) -> str | None:
    """The reason why no library has a prefix; None if there is none."""
    return word_problem(prefix) or _cannot(prefix, "prefix", _prefix_taken(prefix))


def operator_problem(name: str) -> str | None:
    """The reason why no operator has a name; None if there is none."""
    return f"every library has a function '{name}'" if name in TAKEN else word_problem(name)


def version_problem(version: str) -> str | None:
    """The reason why no library has a version; None if there is none."""
    if not _RELEASE.fullmatch(version):
        return f"{shown(version)} is no version; write three numbers: 1.0.0"
    try:
        python_version(version)
    except UsageError as error:
        return str(error)
    return None


def licence_problem(licence: str) -> str | None:
    """The reason why a text is no licence of a library; None if it is one."""
    return None if _SPDX.fullmatch(licence) else f"{shown(licence)} is no SPDX expression, such as Apache-2.0"


def extent_problem(extent: int | str, sizes: Iterable[str]) -> str | None:
    """The reason why no array has an extent, in which `sizes` may appear; None if it is one."""
    text = str(extent)
    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval").body)) if _EXTENT.fullmatch(text) else []
    except SyntaxError:
        nodes = []
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    numbers = [node.value for node in nodes if isinstance(node, ast.Constant)]
    is_one = all(isinstance(node, _ARITHMETIC) for node in nodes) and all(type(each) is int for each in numbers)
    return None if nodes and is_one and names.issubset(sizes) else f"{shown(text)} is no extent"


def licence_line(licence: str) -> str:
    """The line of C source that names its licence."""
    return f"/* SPDX-License-Identifier: {licence} */"


def python_version(version: str) -> str:
    """A version in the form that Python packages have: `1.0.0-rc.1` is `1.0.0rc1`. Raises UsageError if it has none."""
    found = _VERSION.fullmatch(version)
    if found is None:
        raise UsageError(f"'{version}' is no version of a Python package; write 1.2.3, 1.2.3-rc.1 or 1.2.3+local")
    release, stage, number, local = found.groups()
    before = "" if stage is None else f"{stage.replace('alpha', 'a').replace('beta', 'b')}{number}"
    return f"{release}{before}{'' if local is None else '+' + local.replace('-', '.').lower()}"


def _cannot(value: str, key: str, reason: str | None) -> str | None:
    return None if reason is None else f"'{value}' cannot be the {key} of a library: {reason}"


def _name_taken(name: str) -> str | None:
    if name == "runtime":
        return "every library has a source file runtime.h"
    if name in _HEADERS:
        return f"its header would hide <{name}.h> of C"
    if name in _LINKED:
        return f"-l{name} is another library"
    if name in _PACKAGES or name in sys.stdlib_module_names:
        return f"its wheel would take the place of Python's module '{name}', or be hidden by it"
    return None


def _prefix_taken(prefix: str) -> str | None:
    if prefix == _RUNTIME:
        return "functions that are part of every library begin with it"
    if prefix in _SYMBOLS:
        return "functions of the C library begin with it"
    return None
