"""Configuration of lit: tests are shell lines in `.mlir` and `.pdojo` files, checked by filecheck."""
# pyright: basic, reportUndefinedVariable=false
# lit has no types, and defines `config` before it runs this file.
# ruff: noqa: F821

import os
import sys
from pathlib import Path

import lit.formats
import lit.TestRunner

config.name = "pdojo"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".pdojo"]
config.excludes = ["Inputs", "Output"]
config.test_source_root = str(Path(__file__).parent)
# A test that hangs is a failure after this many seconds.
config.maxIndividualTestTime = 120
config.environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
if "PYTHONPATH" in os.environ:
    # Tests of a copy of the project (qa/mutants.py) run the copy, not what is installed.
    config.environment["PYTHONPATH"] = os.environ["PYTHONPATH"]

sys.path.append(str(Path(__file__).parents[1]))
from forked_tools import ForkingSubprocess, preload  # noqa: E402

preload()
lit.TestRunner.subprocess = ForkingSubprocess()
