"""Round trips: the notation and the MLIR form are two texts of the same program."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

from pdojo.dialect.notation import parse_notation, print_notation, same_program
from pdojo.dialect.ops import PDOJO, KernelOp
from property.kernels import Features, kernel_texts

_CHECKS = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
_GPU = replace(Features(), mappings=("u", "p", "v", "g"))


def parse_mlir(text: str) -> KernelOp:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(PDOJO)
    kernel = Parser(context, text).parse_op()
    assert isinstance(kernel, KernelOp)
    kernel.verify()
    return kernel


@_CHECKS
@given(kernel_texts(_GPU))
def test_notation_round_trip(text: str) -> None:
    (kernel,) = parse_notation(text)
    printed = print_notation(kernel)
    (again,) = parse_notation(printed)
    assert print_notation(again) == printed
    assert same_program(kernel, again)


@_CHECKS
@given(kernel_texts(_GPU))
def test_mlir_round_trip(text: str) -> None:
    (kernel,) = parse_notation(text)
    again = parse_mlir(str(kernel))
    assert str(again) == str(kernel)
    assert same_program(kernel, again)
