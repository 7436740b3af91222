"""The verifier that loading the dialect registers."""

from __future__ import annotations

import subprocess
import sys

OPERATIONS = """
import sys
from xdsl.utils.exceptions import VerifyException
from pdojo.dialect.ops import KernelOp

kernel = KernelOp("k", [])
assert "pdojo.dialect.verification" not in sys.modules
try:
    kernel.verify()
except VerifyException as error:
    assert "pdojo.dialect.verification" in sys.modules
    print(error)
"""


def test_operations_alone_are_verified() -> None:
    done = subprocess.run([sys.executable, "-c", OPERATIONS], capture_output=True, text=True, check=True)
    assert done.stdout == "kernel has no statements\n"
