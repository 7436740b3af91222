"""`python -m qa.budget`: counts beside their ceilings."""

from __future__ import annotations

from pathlib import Path

from qa.budget import Table, rows

CEILINGS: Table = {
    "lines": {"pdojo": 9, "pdojo/dialect": 3, "test": 100},
    "limits": {"file": 7, "function": 3},
    "silenced": {"noqa": 0, "type ignores": 1},
}
LONG = """\
def f() -> int:
    '''Docstring.'''
    a = 1
    b = 2
    return a + b


X = 1  # noqa: A
Y = 2  # pyright: ignore[x]
"""


def test_rows(tmp_path: Path) -> None:
    for name, text in {"dialect/a": "A = 1\n" * 3, "b": LONG, "c": "C = 1\n"}.items():
        (tmp_path / f"pdojo/{name}.py").parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / f"pdojo/{name}.py").write_text(text)
    (tmp_path / "test").mkdir()
    (tmp_path / "test/d.py").write_text(LONG * 2)
    found = {row.name: (row.count, row.is_kept) for row in rows(tmp_path, CEILINGS)}
    assert found == {
        "pdojo": (10, False),
        "pdojo/dialect": (3, True),
        "test": (18, True),
        "noqa": (1, False),
        "type ignores": (1, True),
        "pdojo/b.py": (9, False),
        "pdojo/b.py: f": (4, False),
    }


def test_a_folder_without_a_ceiling_has_none_to_spend(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/a.py").write_text("A = 1\n")
    ceilings = {**CEILINGS, "lines": {"tools/b": 5}}
    assert {row.name: row.is_kept for row in rows(tmp_path, ceilings)}["tools"] is False
