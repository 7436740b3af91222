"""Scopes, threads, memory and hints: right results, and the code that was asked for."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from differential.compiled import Arrays, compiled, kernel, random_inputs, run, same
from pdojo.backends.llvm import control
from pdojo.backends.llvm.executable import compile
from pdojo.dialect.semantics.interpreter import interpret_stepwise
from pdojo.errors import LoweringError

SOFTMAX = """
kernel softmax(x) -> (y)
x f32 [{rows}, 512] heap align 64
y f32 [{rows}, 512] heap align 64
pm f32 [{rows}:N, 4, 16] stack
m f32 [{rows}:N] stack
t f32 [{rows}:N, 512:N] stack
e f32 [{rows}:N, 512] stack
ps f32 [{rows}:N, 4, 16] register
s f32 [{rows}:N] stack
r f32 [{rows}:N] register

{rows}:p
| 4:u 16:v pm[{{0}},{{1}},{{2}}] = -inf
| 8 4:u 16:v pm[{{0}},{{2}},{{3}}] max= x[{{0}},{{1}}*64+{{2}}*16+{{3}}]!prefetch(2048)
| m[{{0}}] = -inf
| 4:u 16:v m[{{0}}] max= pm[{{0}},{{1}},{{2}}]
| 4:u 16:v ps[{{0}},{{1}},{{2}}] = 0
| 8 4:u
| | 16:v t[{{0}},{{1}}*64+{{2}}*16+{{3}}] = x[{{0}},{{1}}*64+{{2}}*16+{{3}}] - m[{{0}}]
| | 16:v t[{{0}},{{1}}*64+{{2}}*16+{{3}}] = exp(t[{{0}},{{1}}*64+{{2}}*16+{{3}}])
| | 16:v e[{{0}},{{1}}*64+{{2}}*16+{{3}}] = t[{{0}},{{1}}*64+{{2}}*16+{{3}}]
| | 16:v ps[{{0}},{{2}},{{3}}] += t[{{0}},{{1}}*64+{{2}}*16+{{3}}]
| s[{{0}}] = 0
| 4:u 16:v s[{{0}}] += ps[{{0}},{{1}},{{2}}]
| r[{{0}}] = 1 / s[{{0}}]
| 8 4:u 16:v y[{{0}},{{1}}*64+{{2}}*16+{{3}}]!nontemporal = e[{{0}},{{1}}*64+{{2}}*16+{{3}}] * r[{{0}}]
"""
"""A softmax as an engineer would tune it by hand: every feature in one program."""


@pytest.mark.parametrize("rows", [1, 2, 7, 64])
@pytest.mark.parametrize("threads", [1, 3])
def test_tuned_softmax(rows: int, threads: int) -> None:
    executable, found = compiled(SOFTMAX.format(rows=rows), threads=threads, optimize="full")
    x = random_inputs(executable.parameters, 0)["x"].astype(np.float64)
    exponentials = np.exp(x - x.max(1, keepdims=True))
    assert np.allclose(found["y"], exponentials / exponentials.sum(1, keepdims=True), 2e-6, 0)


def test_tuned_softmax_code() -> None:
    executable = compile(kernel(SOFTMAX.format(rows=64)), threads=2, optimize="search")
    ir = executable.optimized_ir
    # Only the row of exponentials stays in memory, and the record for the threads.
    assert sorted(re.findall(r"alloca \[(\d+ x \w+)\]", ir))[-1] == "512 x float"
    assert len(re.findall("alloca", ir)) == 2
    assert "!nontemporal" in ir
    assert "fence seq_cst" in ir
    assert "call void @llvm.prefetch" in ir
    assert "GOMP_parallel" in ir
    assert "vmovntps" in executable.asm or "movntps" in executable.asm


def test_maximum_is_special_values() -> None:
    executable = compile(kernel(SOFTMAX.format(rows=3)), threads=2)
    x = np.zeros((3, 512), np.float32)
    x[0, 77], x[1, 5], x[2] = np.nan, np.inf, -np.inf
    y = run(executable, {"x": x})["y"]
    assert np.isnan(y[[0, 2]]).all()
    assert np.isnan(y[1, 5])


PROGRAMS = {
    "thread-private heap": (
        "kernel k(x) -> (y)\nx f64 [13, 40] heap\ny f64 [13] heap\nt f64 [13:N, 40] heap\n\n"
        "13:p\n| 40 t[{0},{1}] = x[{0},{1}] * 2\n| y[{0}] = 0\n| 40 y[{0}] max= t[{0},39-{1}]\n"
    ),
    "thread-private heap in two scopes": (
        "kernel k(x) -> (y, z)\nx f64 [13, 4] heap\ny f64 [13, 4] heap\nz f64 [13, 4] heap\nt f64 [13:N, 4] heap\n\n"
        "13:p\n| 4 t[{0},{1}] = x[{0},{1}] * 2\n| 4 y[{0},{1}] = t[{0},3-{1}]\n"
        "13:p\n| 4 t[{0},{1}] = x[{0},{1}] * 3\n| 4 z[{0},{1}] = t[{0},3-{1}]\n"
    ),
    "shared heap": (
        "kernel k(x) -> (y)\nx i32 [13, 40] heap\ny i32 [13, 40] heap\nt i32 [13, 40] heap\n\n"
        "13:p 40 t[{0},{1}] = x[{0},{1}] * 2\n40:p 13 y[{1},{0}] = t[12-{1},39-{0}]\n"
    ),
    "shared stack": (
        "kernel k(x) -> (y)\nx i32 [13, 40] heap\ny i32 [13, 40] heap\nt i32 [40] stack\ns i32 [] stack\n\n"
        "s[] = 5\n40 t[{0}] = x[3,{0}]\n13:p 40 y[{0},{1}] = t[39-{1}] * s[]\n"
    ),
    "parallel in a loop": (
        "kernel k(x) -> (y)\nx i32 [5, 13] heap\ny i32 [13] heap\nt i32 [13] stack\n\n"
        "13 t[{0}] = 1\n5\n| 13:p t[{1}] += x[{0},{1}] * x[{0},12-{1}]\n13 y[{0}] = t[{0}]\n"
    ),
    "guarded parallel": (
        "kernel k(x) -> (y)\nx i32 [40] heap\ny i32 [40] heap\n\n40 y[{0}] = 7\n"
        "3 16:p where ({0}*16+{1} < 40, {1} >= 3) y[{0}*16+{1}] = x[{0}*16+{1}]\n"
    ),
    "parallel over fewer than threads": (
        "kernel k(x) -> (y)\nx i32 [2] heap\ny i32 [2] heap\n\n2:p y[{0}] = x[1-{0}]\n"
    ),
    "shared buffer": (
        "kernel k(x) -> (y)\nx f32 [32] heap\ny f32 [32] heap\nbuffer f32 [32] stack -> a, b\n\n"
        "32 a[{0}] = x[{0}] + 1\n4 8:v b[{0}*8+{1}] = a[{0}*8+{1}] * 2\n32 y[{0}] = b[31-{0}]\n"
    ),
    "reused lanes": (
        "kernel k(x) -> (y)\nx f32 [32] heap\ny f32 [32] heap\nt f32 [32:N] register\n\n"
        "4\n| 8:v t[{0}*8+{1}] = x[{0}*8+{1}] + 1\n| 8:v y[{0}*8+{1}] = t[{0}*8+{1}] * 2\n"
    ),
    "registers": (
        "kernel k(x) -> (y)\nx f32 [4, 8] heap\ny f32 [4, 8] heap\nt f32 [8] register\n\n"
        "4\n| 8:u t[{1}] = x[{0},{1}]\n| 8:v y[{0},{1}] = t[7-{1}]\n"
    ),
    "masked registers": (
        "kernel k(x) -> (y)\nx f32 [8, 30] heap\ny f32 [8, 30] heap\nt f32 [8:N, 32:N] register\n\n"
        "8:p 4\n| 8:v where ({1}*8+{2} < 30) t[{0},{1}*8+{2}] = x[{0},{1}*8+{2}] * 2\n"
        "| 8:v where ({1}*8+{2} < 30) y[{0},{1}*8+{2}] = t[{0},{1}*8+{2}]\n"
    ),
    "masked stack": (
        "kernel k(x) -> (y)\nx f32 [30] heap\ny f32 [30] heap\nt f32 [30] stack\n\n"
        "4 8:v where ({0}*8+{1} < 30) t[29-{0}*8-{1}] = x[{0}*8+{1}]\n"
        "4 8:v where ({0}*8+{1} < 30) y[{0}*8+{1}] = t[{0}*8+{1}]\n"
    ),
    "matrix product": (
        "kernel k(a, b) -> (c)\na f64 [6, 9] heap\nb f64 [9, 8] heap\nc f64 [6, 8] heap\nt f64 [6, 8] register\n\n"
        "6:u 8:v t[{0},{1}] = 0\n9 6:u 8:v t[{1},{2}] += a[{1},{0}] * b[{0},{2}]\n6:u 8:v c[{0},{1}] = t[{0},{1}]\n"
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("optimize", ["search", "full"])
def test_program(name: str, optimize: str) -> None:
    program = kernel(PROGRAMS[name])
    effort = "search" if optimize == "search" else "full"
    executable = compile(program, threads=3, optimize=effort)
    for seed in range(2):
        inputs = random_inputs(executable.parameters, seed)
        wanted = interpret_stepwise(program, inputs)
        for found in (run(executable, inputs), run(executable, inputs)):
            for parameter in executable.parameters:
                if parameter.written:
                    assert same(found[parameter.name], wanted[parameter.name], parameter.dtype)


def test_calls_from_several_threads() -> None:
    program = kernel(PROGRAMS["thread-private heap"])
    executable = compile(program, threads=2)

    def call(seed: int) -> bool:
        inputs = random_inputs(executable.parameters, seed)
        return bool(same(run(executable, inputs)["y"], interpret_stepwise(program, inputs)["y"], "f64"))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(24)))


@pytest.mark.parametrize("name", ["registers", "reused lanes", "matrix product", "masked registers"])
def test_registers_leave_no_memory(name: str) -> None:
    executable = compile(kernel(PROGRAMS[name]), optimize="search")
    assert re.findall(r"alloca \[\d+ x (?:float|double)\]", executable.optimized_ir) == []


@pytest.mark.parametrize("optimize", ["search", "full"])
def test_accumulation_into_memory_is_kept_in_a_register(optimize: str) -> None:
    text = "kernel k(x) -> (s)\nx f32 [8, 512] heap\ns f32 [8] heap\n\n8\n| s[{0}] = 0\n| 512 s[{0}] += x[{0},{1}]\n"
    executable = compile(kernel(text), optimize="full" if optimize == "full" else "search")
    loops = re.findall(r"\n(\S+):[^\n]*\n((?:[^\n]+\n)*?)\s+br i1 [^\n]*label %", executable.optimized_ir)
    inner = [body for _, body in loops if "fadd" in body]
    assert inner
    assert all("store" not in body.split("fadd")[0] and body.count("load") <= 1 for body in inner)


def test_vector_accumulators_are_kept_in_registers() -> None:
    text = (
        "kernel k(x) -> (s)\nx f32 [8, 512] heap\ns f32 [8, 16] heap\nacc f32 [16] stack\n\n8\n"
        "| 16:v acc[{1}] = 0\n| 32 16:v acc[{2}] += x[{0},{1}*16+{2}]\n| 16:v s[{0},{1}] = acc[{1}]\n"
    )
    executable = compile(kernel(text), optimize="search")
    assert "alloca" not in executable.optimized_ir
    assert executable.optimized_ir.count("store <16 x float>") == 1


def test_equal_kernels_give_equal_text() -> None:
    texts = [compile(kernel(SOFTMAX.format(rows=8)), threads=2).llvm_ir for _ in range(2)]
    assert texts[0] == texts[1]
    assert '"min-legal-vector-width"' not in texts[0]


HEAD = "kernel k(x) -> (y)\nx f32 [8, 64] heap\ny f32 [8, 64] heap\nt f32 [64] {memory}\n\n64 t[{{0}}] = 0\n"
REFUSED = {
    "streams": ("8:s 64 y[{0},{1}] = x[{0},{1}]", "is mapped to 's', which a CPU does not have"),
    "hardware loop": ("8 64:f y[{0},{1}] = x[{0},{1}]", "is mapped to 'f', which a CPU does not have"),
    "grid": ("8:g 64 y[{0},{1}] = x[{0},{1}]", "is mapped to 'g', which a CPU does not have"),
    "unaligned stream": ("8 4 16:v y[{0},{1}*16+{2}]!nontemporal = 0", "declare its alignment 64"),
    "strided stream": ("8 4 16:v y[{0},{1}+{2}*4]!nontemporal = 0", "its lanes are not contiguous"),
    "masked stream": ("8 4 16:v where ({1}*16+{2} < 50) y[{0},{1}*16+{2}]!nontemporal = 0", "masked by a guard"),
    "coinciding lanes": ("8 16:v y[{0},{1}//2] += 1", "of which some do coincide"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    body, message = REFUSED[name]
    with pytest.raises(LoweringError, match=re.escape(message)):
        compile(kernel(HEAD.format(memory="heap") + body + "\n"))


def test_register_needs_constant_index() -> None:
    with pytest.raises(LoweringError, match="only constants can index"):
        compile(kernel(HEAD.format(memory="register") + "8 64 y[{0},{1}] = t[{1}]\n"))


def test_misaligned_stride_of_a_stream() -> None:
    head = "kernel k(x) -> (y)\nx f32 [8, 20] heap\ny f32 [8, 20] heap align 64\n\n"
    text = head + "8 16:v y[{0},{1}]!nontemporal = x[{0},{1}]\n"
    with pytest.raises(LoweringError, match="the strides of the access are not multiples of 64"):
        compile(kernel(text))


def test_stack_frame_too_large() -> None:
    text = (
        "kernel k(x) -> (y)\nx f32 [] heap\ny f32 [] heap\nt f32 [1000000] stack\n\n1000000 t[{0}] = x[]\ny[] = t[0]\n"
    )
    with pytest.raises(LoweringError, match="move the largest to the heap"):
        compile(kernel(text))


def test_unrolling_out_of_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "INSTANCE_LIMIT", 1000)
    text = "kernel k(x) -> (y)\nx f32 [40, 40] heap\ny f32 [40, 40] heap\n\n40:u 40:u y[{0},{1}] = x[{0},{1}]\n"
    with pytest.raises(LoweringError, match="unroll fewer scopes"):
        compile(kernel(text))


def test_value_between_private_copies() -> None:
    text = (
        "kernel k(x) -> (y)\nx f32 [8, 4] heap\ny f32 [8, 4] heap\nt f32 [8:N, 4] heap\n\n"
        "8:p 4 t[{0},{1}] = x[{0},{1}]\n8:p 4 y[{0},{1}] = t[{0},{1}]\n"
    )
    with pytest.raises(LoweringError, match="each thread has its own copy"):
        compile(kernel(text))


def test_threads_that_never_run() -> None:
    text = (
        "kernel k(x) -> (y)\nx f32 [4] heap\ny f32 [4] heap\n\n4 y[{0}] = x[{0}]\n4:p where ({0}*2 == 3) y[{0}] = 0\n"
    )
    executable, found = compiled(text)
    arrays = random_inputs(executable.parameters, 0)
    assert np.array_equal(found["y"], arrays["x"])


def test_inputs_by_name() -> None:
    arrays: Arrays = {"x": np.arange(2, dtype=np.int32)}
    _, found = compiled(PROGRAMS["parallel over fewer than threads"], arrays)
    assert found["y"].tolist() == [1, 0]
