"""`--verify` sees a change of meaning."""

from __future__ import annotations

import pytest
from pdojo_tools.verification import verify_meaning
from xdsl.dialects.builtin import ModuleOp

from pdojo.dialect.notation import parse_notation
from pdojo.errors import InvalidKernel, UsageError

KERNEL = """
kernel f(x) -> (y)
x f32 [{n}] heap
y f32 [{n}] heap

{n} y[{{0}}] = x[{{0}}] {sign} 2
"""


def module(n: int, sign: str) -> ModuleOp:
    return ModuleOp(list(parse_notation(KERNEL.format(n=n, sign=sign))))


@pytest.mark.parametrize("n", [8, 300_000])
def test_change_is_seen_small_and_large(n: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidKernel, match="the meaning changed"):
        verify_meaning(module(n, "*"), module(n, "+"))
    verify_meaning(module(n, "*"), module(n, "*"))
    assert ("exact arithmetic under" in capsys.readouterr().err) is (n == 8)


def test_missing_kernel() -> None:
    with pytest.raises(UsageError, match=r"left no pdojo\.kernel"):
        verify_meaning(module(8, "*"), ModuleOp([]))
