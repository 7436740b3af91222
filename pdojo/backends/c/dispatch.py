"""The C function of a kernel with versions: it compares the sizes of a call with ranges, and calls one version."""

from __future__ import annotations

from pdojo.backends.c.names import Identifiers
from pdojo.backends.c.spelling import CSpelling
from pdojo.dialect.affine import Size
from pdojo.dialect.view.nest import Nest
from pdojo.dialect.view.storage import numbers_of
from pdojo.dialect.view.versions import Versions


def dispatch_text(versions: Versions, spelling: CSpelling) -> str:
    """The function, with the parameters of each version's."""
    parameters, names = parameters_of(versions.nests[0], spelling)
    arguments = ", ".join([*names.values(), "workspace", "threads"])
    lines: list[str] = []
    for nest, sizes in versions.tests():
        call = f"{nest.symbol}({arguments});"
        tests = " && ".join(_test(size, names[size.name]) for size in sizes)
        lines.append(f"  if ({tests}) {{ {call} return; }}" if tests else f"  {call}")
    head = spelling.function(versions.symbol, parameters)
    return "\n".join([f"// the first of these versions whose ranges have the sizes\n{head} {{", *lines, "}", ""])


def parameters_of(nest: Nest, spelling: CSpelling) -> tuple[list[str], dict[str, str]]:
    """The parameters of a kernel's function as C, and the names of those for arrays, sizes and strides."""
    local = Identifiers()
    arrays = [b for b in nest.buffers if b.intent is not None]
    numbers = numbers_of(nest)
    names = {name: local.fresh(name.replace(".", "_")) for name in (*(b.names[0] for b in arrays), *numbers)}
    pointers = [spelling.parameter(buffer, names[buffer.names[0]]) for buffer in arrays]
    sizes = [f"int64_t {names[number]}" for number in numbers]
    return [*pointers, *sizes, f"void *{spelling.restrict} workspace", "int32_t threads"], names


def _test(size: Size, name: str) -> str:
    """A comparison of a size with its range."""
    if size.low == size.high:
        return f"{name} == {size.low}"
    multiple = f" && {name} % {size.step} == 0" * (size.step > 1)
    return f"{name} >= {size.low} && {name} <= {size.high}{multiple}"
