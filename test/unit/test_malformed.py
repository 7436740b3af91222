"""What a user gets wrong: one clear message, exit code 1 or 2, no traceback, no output file touched."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from pdojo_tools.opt import main

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
    # Moves.
    "unknown move": usage("--apply=join_scope@m:0", expected=("unknown move 'join_scope'", "join_scopes")),
    "no move": usage("--apply=join_scopes", expected=("not a move", "name@location")),
    "empty list of moves": usage("--apply=", expected=("not a move",)),
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


def test_table_is_long_enough() -> None:
    assert len(MISTAKES) >= 30
