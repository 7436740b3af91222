"""What a user gets wrong: one clear message, exit code 1 or 2, no traceback, no output file touched."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from pdojo_tools.opt import main

from pdojo.dialect.notation import parse_notation
from pdojo.errors import NotationError

SOFTMAX = """kernel softmax(x) -> (y)
x f32 [24, 512] heap
y f32 [24, 512] heap
m f32 [24] heap
e f32 [24, 512] heap
s f32 [24] heap

24
| m[{0}] = -inf
| 512 m[{0}] max= x[{0},{1}]
24 512 e[{0},{1}] = x[{0},{1}] - m[{0}]
24 512 e[{0},{1}] = exp(e[{0},{1}])
24
| s[{0}] = 0
| 512 s[{0}] += e[{0},{1}]
24 512 y[{0},{1}] = e[{0},{1}] / s[{0}]
"""

KERNEL = """pdojo.kernel @k(in x %x : memref<8xf32>, out y %y : memref<8xf32>) {
  %t = pdojo.buffer t : f32[8] heap
  pdojo.scope %i = 8 {
    pdojo.op %t[%i] = math.exp(%x[%i])
    pdojo.op %y[%i] = %t[%i]
  }
}
"""


@dataclass(frozen=True)
class Mistake:
    """A text (or None for no file), arguments, and what the message must say."""

    text: str | bytes | None
    arguments: tuple[str, ...]
    expected: tuple[str, ...]


def notation(old: str, new: str, *expected: str) -> Mistake:
    """A mistake in the softmax kernel; the message begins with the position."""
    assert old in SOFTMAX
    return Mistake(SOFTMAX.replace(old, new), (), expected)


def mlir(old: str, new: str, *expected: str) -> Mistake:
    """A mistake in the MLIR kernel."""
    assert old in KERNEL
    return Mistake(KERNEL.replace(old, new), (), expected)


def nested(depth: int) -> str:
    """So many scopes around one."""
    return "".join(f"pdojo.scope %s{k} = 1 {{" for k in range(depth)) + "pdojo.scope %i = 8 {"


def usage(*arguments: str, expected: tuple[str, ...]) -> Mistake:
    """A mistake in the command line for the softmax kernel."""
    return Mistake(SOFTMAX, arguments, expected)


MISTAKES = {
    # Texts in the notation.
    "unknown function": notation("exp(", "exq(", "input:12:", "exq"),
    "unknown array": notation("- m[{0}]", "- q[{0}]", "input:11:", "'q'"),
    "undeclared output": notation("24 512 y[", "24 512 z[", "input:16:", "'z'"),
    "too few indices": notation("x[{0},{1}] - ", "x[{0}] - ", "input:11:", "x"),
    "no such scope": notation("x[{0},{1}] - ", "x[{0},{7}] - ", "input:11:", "7"),
    "out of bounds": notation("x[{0},{1}] - ", "x[{0},{1}+1] - ", "'x'", "512"),
    "negative index": notation("x[{0},{1}] - ", "x[{0},{1}-1] - ", "'x'", "-1"),
    "unknown type": notation("m f32", "m f33", "input:4:", "f33"),
    "unknown memory": notation("[24] heap\ne", "[24] heep\ne", "input:4:", "heep"),
    "zero extent": notation("24 512 y", "0 512 y", "input:16:"),
    "declared twice": notation("e f32 [24, 512]", "m f32 [24, 512]", "'m'"),
    "missing bracket": notation("exp(e[{0},{1}])", "exp(e[{0},{1})", "input:12:"),
    "wrong depth of bars": notation("| m[{0}] = -inf", "| | | m[{0}] = -inf", "input:9:"),
    "unknown mapping": notation("24 512 y", "24:q 512 y", "input:16:", "q"),
    "product of indices": notation("x[{0},{1}] - ", "x[{0},{0}*{1}] - ", "input:11:"),
    "indirect access": notation("x[{0},{1}] - ", "x[{0},m[{0}]] - ", "input:11:", "indirect"),
    "types do not fit": notation("s f32 [24]", "s f64 [24]", "f64"),
    "only a header": Mistake("kernel softmax(x) -> (y)\n", (), ("input:1:",)),
    # Texts in MLIR.
    "unknown op": mlir("pdojo.op %t", "pdojo.opp %t", "input:4:5", "pdojo.opp", "'pdojo.op'"),
    "unknown dialect": mlir("pdojo.kernel", "podjo.kernel", "input:1:1", "podjo", "pdojo.kernel"),
    "unknown array in MLIR": mlir("%y[%i] = %t[%i]", "%y[%i] = %q[%i]", "input:5:", "%q"),
    "unknown variable": mlir("math.exp(%x[%i])", "math.exp(%x[%j])", "input:4:"),
    "out of bounds in MLIR": mlir("%x[%i]", "%x[%i + 1]", "input:4:", "'x'"),
    "unknown function in MLIR": mlir("math.exp", "math.exq", "input:4:", "math.exq"),
    "wrong rank in MLIR": mlir("%x[%i]", "%x[%i, %i]", "input:4:", "2 indices"),
    "integer into float": mlir("math.exp(%x[%i])", "1 : i32", "input:4:", "i32"),
    "array in an input": mlir("f32[8] heap", "f32[8] in %x", "array 't' cannot live in 'x', an input of the kernel"),
    "array in another type": mlir("f32[8] heap", "f32[9] in %y", "input:2:"),
    "slots without meaning": mlir("f32[8] heap", "f32[8:M] heap", "input:2:", "'N'"),
    "as many slots as indices": mlir("f32[8] heap", "f32[8:N8] heap", "8 slots for 8 indices"),
    "swizzle by itself": mlir("f32[8] heap", "f32[8 xor 0] heap", "'by' must be another dimension"),
    "element type without meaning": mlir("f32[8] heap", "index[8] heap", "index"),
    "accumulation without meaning": mlir("%t[%i] = ", "%t[%i] and= ", "input:4:", "and="),
    "unclosed brace": Mistake(KERNEL.rstrip()[:-1], (), ("input:7:", "'}'")),
    "empty scope": mlir("pdojo.scope %i = 8 {", "pdojo.scope %k = 3 { }\n  pdojo.scope %i = 8 {", "input:3:", "empty"),
    "call of no kernel": Mistake(
        "func.func @f(%x : memref<8xf32>) { pdojo.call @k(%x) : memref<8xf32>\n func.return }", (), ("input:1:", "@k")
    ),
    # Too deep, too long, too large.
    "scopes too deep": notation("24 512 y", "1 " * 400 + "24 512 y", "input:16:", "more than 64 deep"),
    "parentheses too deep": notation("x[{0},{1}] - ", f"x[{0},{'(' * 3000}1] - ", "input:11:", "more than 50 deep"),
    "signs too deep": notation("= -inf", "= " + "-" * 3000 + "1", "input:9:", "more than 50 deep"),
    "calls too deep": notation("= exp(e", "= " + "exp(" * 3000 + "e", "input:12:", "more than 50 deep"),
    "sizes too deep": notation("kernel", f"size R = {'-(' * 3000}1\nkernel", "input:1:", "more than 50 deep"),
    "variable of another scope": Mistake(
        """pdojo.kernel @k(out y %y : memref<8xf32>) {
  "pdojo.scope"() <{extent = 8 : index, mapping = #pdojo<mapping seq>}> ({
  ^bb0(%i : index):
    pdojo.op %y[%j] = 1.0 : f32
  }) : () -> ()
  pdojo.scope %j = 8 { pdojo.op %y[%j] = 1.0 : f32 }
}
""",
        (),
        ("input:4:", "%j"),
    ),
    "variable of another scope in the generic form": Mistake(
        """pdojo.kernel @k(out y %y : memref<8xf32>) {
  "pdojo.scope"() <{extent = 8 : index, mapping = #pdojo<mapping seq>}> ({
  ^bb0(%i : index):
    "pdojo.op"(%y, %j) <{output_map = affine_map<(d0) -> (d0)>, inputs = [1.0 : f32],
      operandSegmentSizes = array<i32: 1, 0, 1>}> : (memref<8xf32>, index) -> ()
  }) : () -> ()
  pdojo.scope %j = 8 { pdojo.op %y[%j] = 1.0 : f32 }
}
""",
        (),
        ("input:4:", "enclosing scopes"),
    ),
    "granule of 2^64": notation("m f32 [24]", f"m f32 [24^0*{2**64}]", "input:4:", "2^62"),
    "dimension of 2^64": notation("m f32 [24]", f"m f32 [24^{2**64}]", "input:4:", "2^62"),
    "alignment of 2^64": notation("x f32 [24, 512] heap", f"x f32 [24, 512] heap align {2**64}", "input:2:", "2^62"),
    "integer of a hint": notation(
        "= exp(e[{0},{1}])", f"= exp(e[{{0}},{{1}}]!prefetch({2**64}))", "input:12:", "64 bits"
    ),
    "digits of a constant": notation("= -inf", "= " + "1" * 4400, "input:9:", "at most 400 digits"),
    "digits of an extent": notation("24 512 y", "2" * 4400 + " 512 y", "input:16:", "at most 400 digits"),
    "digits of an iteration": notation("m[{0}] = -inf", f"m[{{{'1' * 4400}}}] = -inf", "input:9:", "400 digits"),
    "power of a size": notation("kernel", f"size R = {'9' * 390} * {'9' * 390}\nkernel", "input:1:", "too large"),
    "extent of 2^63": notation("24 512 y", f"{2**63} 512 y", "input:16:", "fewer than 2^62"),
    "array of 2^63": Mistake(
        f"kernel k() -> (y)\ny f32 [{2**32}, {2**31}] heap\n8 8 y[{{0}},{{1}}] = 0\n", (), ("input:1:", "any memory")
    ),
    "reused slots beyond all": notation("[24] heap\ne", f"[24:N{'9' * 30}] heap\ne", "input:4:", "512:N4"),
    "scopes too deep in MLIR": Mistake(
        KERNEL.replace("pdojo.scope %i = 8 {", nested(70)) + "}" * 70, (), ("input:3:", "more than 64 deep")
    ),
    "more than Python takes": mlir("pdojo.scope %i = 8 {", nested(3000), "nested too deeply"),
    "parentheses too deep in MLIR": mlir("%x[%i]", f"%x[{'(' * 3000}%i]", "input:4:", "50 parentheses"),
    "parts of an expression": mlir("%x[%i]", f"%x[%i{' floordiv 3 * 2' * 300}]", "input:4:", "at most 200 parts"),
    "parts of a map": Mistake(
        f'"builtin.module"() ({{}}) {{m = affine_map<(d0) -> ({"(" * 900}d0{")" * 900})>}} : () -> ()', (), ("deeply",)
    ),
    "digits in MLIR": mlir("%i = 8", f"%i = {'8' * 4400}", "input:3:", "at most 400 digits"),
    "extent of 2^63 in MLIR": mlir("%i = 8", f"%i = {2**63}", "input:3:"),
    "digits in a move": usage(f"--apply=tile_scope@y:0{{size={'1' * 4400}}}", expected=("'size'", "integer")),
    "digits in a location": usage(f"--apply=unroll@y:{'1' * 4400}", expected=("is not a location",)),
    "quote in a move": usage('--apply=insert_op@y:0{text="8}', expected=("a quote is not closed",)),
    # What MLIR has no token for.
    **{
        f"no token {token}": Mistake(f"{token}\n{KERNEL}", (), ("input:1:1",))
        for token in ("$x", "~", "'a'", "..", "\\", "\x1b[31m")
    },
    "unclosed string": Mistake(f'module "{"a" * 60}\n{KERNEL}', (), ("input:1:8", "closing string")),
    "unclosed string by an escape": Mistake(f'module "{"a" * 60}\\q"\n{KERNEL}', (), ("input:1:8", "closing string")),
    "name that is not ASCII": mlir("buffer t", "buffer \u00f4", "input:2:", "ASCII"),
    "number that is not ASCII": mlir("%x[%i]", "%x[\u00bc]", "input:4:", "ASCII"),
    "name that is not ASCII in the notation": notation("m[{0}] = -inf", "\u00e9[{0}] = -inf", "input:9:", "'\u00e9'"),
    # Texts that only the generic form can write.
    "op without properties": mlir("pdojo.op %t[%i] = math.exp(%x[%i])", '"pdojo.op"() : () -> ()', "input:4:"),
    "op with a region": mlir("pdojo.op %t[%i] = math.exp(%x[%i])", '"pdojo.op"() ({}) : () -> ()', "input:4:"),
    "scope without properties": mlir(
        "pdojo.op %t[%i] = math.exp(%x[%i])", '"pdojo.scope"() ({}) : () -> ()', "input:4:"
    ),
    "scope of two blocks": mlir(
        "pdojo.scope %i = 8 {",
        '"pdojo.scope"() <{extent = 4 : index, mapping = #pdojo<mapping seq>}> '
        "({\n^bb0(%k : index):\n^bb1:\n}) : () -> ()\npdojo.scope %i = 8 {",
        "input:3:",
    ),
    "kernel without arguments' names": Mistake(
        '"pdojo.kernel"() <{sym_name = "k"}> ({}) : () -> ()', (), ("input:1:1",)
    ),
    "variable as an array": mlir("%x[%i]", "%i[%i]", "input:4:"),
    "constant out of range": mlir("math.exp(%x[%i])", "1.0e39 : f32", "input:4:", "does not fit f32"),
    "integer out of range": mlir(
        "math.exp(%x[%i])", "arith.sitofp(2147483648000 : i32)", "input:4:", "does not fit i32"
    ),
    "accumulation of indices": Mistake(
        KERNEL.replace("f32[8] heap", "index[8] heap").replace("%t[%i] =", "%t[%i] +="), (), ("input:4:", "accumulate")
    ),
    "strided layout": mlir("%x : memref<8xf32>", "%x : memref<8xf32, strided<[2]>>", "layout strided<[2]>"),
    "layout by a map": mlir(
        "%x : memref<8xf32>", "%x : memref<8xf32, affine_map<(d0) -> (7 - d0)>>", "layout affine_map<(d0) -> "
    ),
    "memory space": mlir("%x : memref<8xf32>", "%x : memref<8xf32, 3 : i32>", "memory space 3"),
    # Targets and passes of xDSL that do not know the program.
    **{
        f"target {target}": usage(
            "-t", target, expected=(f"'{target}' knows no pdojo.kernel", "convert-pdojo-to-loops")
        )
        for target in ("riscv-asm", "arm-asm", "x86-asm", "wat", "wgsl", "csl", "mps")
    },
    "target for other code": usage("-p", "convert-pdojo-to-loops", "-t", "riscv-asm", expected=("cannot print this",)),
    # Moves.
    "unknown move": usage("--apply=join_scope@m:0", expected=("unknown move 'join_scope'", "join_scopes")),
    "no move": usage("--apply=join_scopes", expected=("not a move", "name@location")),
    "empty list of moves": usage("--apply=", expected=("--apply: it is empty",)),
    "unclosed parameters": usage("--apply=tile_scope@y:1{size=16", expected=("tile_scope",)),
    "ambiguous location": usage("--apply=join_scopes@m:0", "--apply=unroll@e:1", expected=("'e:1'", "e#0:1", "e#1:1")),
    "unknown array in location": usage("--apply=unroll@q:0", expected=("'q'",)),
    "too deep location": usage("--apply=unroll@y:5", expected=("y:5",)),
    "no such writer": usage("--apply=unroll@s#4:0", expected=("s#4:0",)),
    "illegal move": usage("--apply=swap_nodes@m:0", expected=("refused", "witness")),
    "wrong parameter": usage("--apply=tile_scope@y:1{sise=16}", expected=("'sise'", "'size'")),
    "missing parameter": usage("--apply=tile_scope@y:1", expected=("'size'", "missing")),
    "parameter of the wrong kind": usage("--apply=tile_scope@y:1{size=big}", expected=("'size'", "integer")),
    "parameter twice": usage("--apply=tile_scope@y:1{size=2 size=4}", expected=("'size'", "twice")),
    "second of two moves": usage("--apply=join_scopes@m:0,join_scopes@q:0", expected=("'q'",)),
    "no trace file": usage("--apply-trace=/no/such/trace", expected=("/no/such/trace",)),
    "undo of nothing": usage("--undo=0", expected=("undo", "0 moves")),
    "undo of a word": usage("--undo=last", expected=("--undo last", "-1")),
    "move without kernel": Mistake("func.func @f() { func.return }", ("--apply=unroll@y:0",), ("no pdojo.kernel",)),
    "no such kernel": usage("--kernel=softmac", "--list-moves", expected=("softmac", "softmax")),
    "two kernels": Mistake(KERNEL + KERNEL.replace("@k", "@l"), ("--list-moves",), ("k, l", "--kernel")),
    # The command line.
    "unknown pass": usage("-p", "pdojo-tile-scop", expected=("unknown pass", "pdojo-tile-scope")),
    "pass syntax": usage("-p", "cse{", expected=("-p cse{",)),
    "pass parameter": usage("-p", "cse{x=1}", expected=("pass 'cse'", "x")),
    "pass on the wrong program": usage("-p", 'pdojo-unroll{at="q:0"}', expected=("'q'",)),
    "unknown target": usage("-t", "notatoin", expected=("unknown target", "notation")),
    "target parameter": usage("-t", "notation{x=1}", expected=("target 'notation'", "x")),
    "unknown machine": usage("--machine=pdp11", expected=("unknown machine 'pdp11'", "host")),
    "unknown option": usage("--aply=x", expected=("--aply",)),
    "unknown input format": usage("--input-format=c", expected=("'c'", "notation")),
    "refused without list": usage("--refused", expected=("--refused", "--list-moves")),
    "family without list": usage("--family=unroll", expected=("--family", "--list-moves")),
    "location without list": usage("--at=y", expected=("--at", "--list-moves")),
    "no such family": usage("--list-moves", "--family=unrol", expected=("unknown move 'unrol'", "unroll")),
    "no such place": usage("--list-moves", "--at=q", expected=("there is no array 'q'",)),
    "wrong input format": usage("--input-format=mlir", expected=("input:1:1", "--input-format=notation")),
    "output in no folder": usage("-o", "/no/such/folder/out", expected=("/no/such/folder/out",)),
    "verify after lowering": usage("--verify", "-p", "convert-pdojo-to-loops", expected=("softmax", "--verify")),
    # Files.
    "missing file": Mistake(None, (), ("no file",)),
    "empty file": Mistake("", (), ("is empty",)),
    "blank file": Mistake("  \n\n", (), ("is empty",)),
    "binary file": Mistake(bytes(range(256)), (), ("no text",)),
    "zero bytes": Mistake(b"kernel\0k", (), ("no text",)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mistake = MISTAKES[name]
    monkeypatch.chdir(tmp_path)
    match mistake.text:
        case str():
            Path("input").write_text(mistake.text)
        case bytes():
            Path("input").write_bytes(mistake.text)
        case None:
            pass
    output = Path("output")
    output.write_text("precious")
    code = main(["input", "-o", "output", *mistake.arguments])
    shown = capsys.readouterr()
    assert code in (1, 2), shown
    assert not shown.out
    assert "Traceback" not in shown.err
    assert shown.err.count("error:") == 1, shown.err
    for expected in mistake.expected:
        assert expected in shown.err, shown.err
    assert output.read_text() == "precious"
    assert sorted(os.listdir()) == sorted({"output", *(["input"] if mistake.text is not None else [])})


def run(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A shell command that calls pdojo-opt as `$OPT`."""
    settings = {**os.environ, "OPT": f"{sys.executable} -m pdojo_tools.opt", **environment}
    return subprocess.run(["sh", "-c", command], cwd=folder, env=settings, capture_output=True, text=True, check=False)


def last(text: str) -> str:
    """The last line."""
    return text.splitlines()[-1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is full")
def test_output_that_takes_no_more(tmp_path: Path) -> None:
    done = run("$OPT softmax -t notation > /dev/full", tmp_path)
    # A tool that takes long to load says so first.
    assert (done.returncode, last(done.stderr)) == (1, "error: cannot write the output: No space left on device")
    done = run("$OPT softmax -t notation >&-", tmp_path)
    assert (done.returncode, last(done.stderr)) == (1, "error: cannot write the output: Bad file descriptor")


def test_character_sets(tmp_path: Path) -> None:
    """A byte order mark is no part of the text; a terminal that lacks a character gets an escape."""
    (tmp_path / "k.pdojo").write_text("\ufeff" + SOFTMAX, encoding="utf-8")
    assert run("$OPT k.pdojo -t notation", tmp_path).stdout == SOFTMAX
    (tmp_path / "k.pdojo").write_text(SOFTMAX.replace("= -inf", "= \u00e9"), encoding="utf-8")
    done = run("$OPT k.pdojo", tmp_path, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 1
    assert "unexpected character '\\xe9'" in done.stderr
    assert "Traceback" not in done.stderr


def test_messages_do_not_steer_terminals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.pdojo"
    path.write_text("kernel k(x) -> (y) \x1b[2J\x07\n")
    assert main([str(path)]) == 1
    assert not {"\x1b", "\x07"} & {*capsys.readouterr().err}


def test_scopes_of_a_line_are_read_once() -> None:
    """A line of very many scopes is refused at the one that is too deep; the others are not looked at."""
    with pytest.raises(NotationError, match="more than 64 deep"):
        parse_notation("kernel k() -> (y)\ny f32 [] heap\n" + "1 " * 200_000 + "y[] = 0\n")


def test_remainders_of_remainders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each doubles the expression, since `e mod c` is `e - c * (e floordiv c)`: 20 of them took minutes."""
    index, generic = "{0}", "%i"
    for prime in (509, 503, 499, 491, 487, 479, 467, 463, 461, 457, 449, 443, 439, 433, 431, 421, 419, 409, 401, 397):
        index, generic = f"({index}*77+{{0}})%{prime}", f"({generic} * 77 + %i) mod {prime}"
    with pytest.raises(NotationError, match="the index expression is too large"):
        parse_notation(f"kernel k() -> (y)\ny f32 [397] heap\n1000000 y[{index}] = 0\n")
    path = tmp_path / "k.mlir"
    scope = f"pdojo.scope %i = 1000000 {{ pdojo.op %y[{generic}] = 0.0 : f32 }}"
    path.write_text(f"pdojo.kernel @k(out y %y : memref<397xf32>) {{ {scope} }}")
    assert main([str(path)]) == 1
    assert "an index expression is too large" in capsys.readouterr().err


def test_table_is_long_enough() -> None:
    assert len(MISTAKES) >= 30
