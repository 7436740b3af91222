"""The notation: the textual form of kernels for people and language models (paper section 2.1, docs/notation.md)."""

from pdojo.dialect.notation.equality import plain_mlir, same_program
from pdojo.dialect.notation.parser import parse_notation
from pdojo.dialect.notation.printer import print_nest, print_notation

__all__ = ["parse_notation", "plain_mlir", "print_nest", "print_notation", "same_program"]
