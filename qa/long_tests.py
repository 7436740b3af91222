"""The tests that `make test` leaves out, by measured times: `python -m qa.long_tests RESULTS.xml` writes test/long.txt.

RESULTS.xml is what `make test-all TESTS=--junitxml=RESULTS.xml` writes. A test of a module is long if one of its cases
takes more than `MODULE` seconds. Of each file of judges (differential and property tests) the quick run takes the first
test that is not long, so there the limit is `JUDGE`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

MODULE = 0.6
JUDGE = 3.0
"""Seconds of a case."""
LONG = Path(__file__).parents[1] / "test" / "long.txt"


def long_tests(results: Path) -> list[str]:
    """The long tests of some results, sorted."""
    found: set[str] = set()
    for case in ElementTree.parse(results).iter("testcase"):
        *module, last = case.attrib["classname"].split(".")
        # Tests of a class have its name there, too.
        path, group = ([*module, last], []) if last.startswith("test_") else (module, [last])
        limit = MODULE if path[1] == "unit" else JUDGE
        if case.find("skipped") is None and float(case.attrib["time"]) > limit:
            found.add("::".join([f"{'/'.join(path)}.py", *group, case.attrib["name"].partition("[")[0]]))
    return sorted(found - {LIT})


LIT = "test/unit/qa/test_filecheck.py::test_lit"
"""Lit says most about moves in a second, so it is quick however long it takes."""


def main() -> int:
    """Write the list."""
    LONG.write_text("".join(f"{test}\n" for test in long_tests(Path(sys.argv[1]))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
