"""The error of verification; it holds the operation at fault."""

from __future__ import annotations

from typing import NoReturn

from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException


class KernelVerifyException(VerifyException):
    """A verification error with the operation at fault, and perhaps one of its accesses and a remedy."""

    def __init__(self, message: str, operation: Operation, access: int | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.operation = operation
        self.access = access
        self.hint = hint


def fail(operation: Operation, message: str) -> NoReturn:
    """Raise `KernelVerifyException` about an operation."""
    raise KernelVerifyException(message, operation)
