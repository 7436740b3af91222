"""Names of kernels and arrays: one rule for what they may be, one for what the code of all targets calls them."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pdojo_tools.opt import main as opt

from pdojo.backends.c.targets import c_text
from pdojo.backends.llvm.executable import compile as compile_kernel
from pdojo.dialect.attributes import Intent
from pdojo.dialect.names import name_problem, symbol, variable
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import LoweringError, NotationError

RUNTIME = (
    "GOMP_parallel omp_get_thread_num omp_get_num_threads main memcpy memset malloc exp expf sinl int double class "
    "namespace restrict __global__ threadIdx _start a0 ft0 x5 rax xmm0 sp lr v31 zero uint8_t NAN INT32_MAX "
    "k_WORKSPACE k_constants pd_max workspace threads stdout"
).split()
TEXT = "kernel {}(x) -> (y)\nx f32 [4] heap\ny f32 [4] heap\n\n4:p y[{{0}}] = x[{{0}}] + 1\n"
SNITCH = "kernel {}(x) -> (y)\nx f64 [4] heap\ny f64 [4] heap\n\n4 y[{{0}}] = x[{{0}}] + 1\n"
WORDS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True) | st.sampled_from(RUNTIME)


NO_NAMES = ("", "a b", "é", "a.b", "1a", "a-b", 'a"', "*/ x /*", "a\n", "a" * 201, "\x1b[2J", "٣")


@pytest.mark.parametrize("name", NO_NAMES)
def test_no_names(name: str) -> None:
    """In both forms, of kernels and of arrays; what a terminal would take for orders is not repeated."""
    problem = name_problem(name)
    assert problem is not None
    assert "\x1b" not in problem
    quoted = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    with pytest.raises(NotationError) as caught:
        parse_notation(TEXT.format(f'"{quoted}"'))
    assert "\x1b" not in str(caught.value)
    with pytest.raises(LoweringError):
        symbol(name)


def test_no_names_in_mlir(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.mlir"
    scope = "pdojo.scope %i = 4 { pdojo.op %y[%i] = 1.0 : f32 }"
    for text in (
        f'pdojo.kernel @"k\\0A.incbin"(out y %y : memref<4xf32>) {{ {scope} }}',
        f'pdojo.kernel @k(out "*/" %y : memref<4xf32>) {{ {scope} }}',
        f'pdojo.kernel @k(out y %y : memref<4xf32>) {{ %t = pdojo.buffer "" : f32[4] heap {scope} }}',
    ):
        path.write_text(text)
        assert opt([str(path), "-t", "snitch-asm"]) == 1
        assert re.search("is no name|the name is empty", capsys.readouterr().err)


@pytest.mark.parametrize("name", RUNTIME)
def test_names_of_the_runtime(name: str) -> None:
    """Such kernels run, threads included, and all targets call them by one name that means nothing else."""
    (kernel,) = parse_notation(TEXT.format(name))
    assert print_notation(kernel) == TEXT.format(name)
    assert symbol(name) != name
    assert f"void {symbol(name)}(" in c_text(kernel)
    y = np.zeros(4, np.float32)
    compile_kernel(kernel, threads=2)(np.ones(4, np.float32), y)
    assert (y == 2).all()


@pytest.mark.parametrize("name", ["memcpy", "a0", "main", "k_constants"])
def test_one_name_in_all_targets(name: str, tmp_path: Path) -> None:
    path = tmp_path / "k.pdojo"
    for target, text, label in (
        ("llvm", TEXT, f'define void @"{symbol(name)}"('),
        ("c-header", TEXT, f"void {symbol(name)}("),
        ("asm", TEXT, f"{symbol(name)}:"),
        ("snitch-asm", SNITCH, f"{symbol(name)}:"),
    ):
        path.write_text(text.format(name))
        output = tmp_path / f"k.{target}"
        machine = ["--machine", "snitch"] if text is SNITCH else []
        assert opt([str(path), "-t", target, "-o", str(output), *machine]) == 0
        written = output.read_text()
        assert label in written
        assert not re.search(rf'(^|[@ "]){name}["(:]', written, re.MULTILINE)


@given(WORDS, WORDS, st.sampled_from(["", "_", "k", "kk", "__", "f", "l"]))
def test_two_names_stay_two(first: str, second: str, more: str) -> None:
    for one, other in product((first, first + more, more + first), (second, second + more, more + second)):
        if one != other and name_problem(one) is name_problem(other) is None:
            assert symbol(one) != symbol(other)
            assert variable(one) != variable(other)


@given(WORDS)
def test_symbols_are_identifiers_that_mean_nothing(name: str) -> None:
    assert name_problem(symbol(name)) is None
    assert symbol(name) not in RUNTIME


@pytest.mark.parametrize("name", "machine numerics size where f32 inf index kernel async fma u N".split())
def test_arrays_called_like_words_of_the_notation(name: str) -> None:
    declarations = f"{name} f32 [4] heap\ny f32 [4] heap\n\n"
    (kernel,) = parse_notation(f"kernel {name}({name}) -> (y)\n{declarations}4 y[{{0}}] = {name}[{{0}}]\n")
    (again,) = parse_notation(print_notation(kernel))
    assert print_notation(again) == print_notation(kernel)
    assert isinstance(kernel, KernelOp)
    assert kernel.arg_intents.data[0].data is Intent.IN
