"""The imports of the code: the graphs in docs/architecture.md, and circles."""

from __future__ import annotations

import re

import pytest

from qa.import_graph import (
    PAGE,
    circles,
    drawn,
    folders,
    import_graph,
    main,
    modules,
    named_modules,
    reduced,
    with_graphs,
)


def test_the_page_shows_the_imports() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_graphs(page, drawn(import_graph())) == page, "python -m qa.import_graph"


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = import_graph()
    assert circles(modules(graph)) == []
    graph.add_import(importer="pdojo.dialect.affine", imported="pdojo.dialect.view.nest")
    (circle,) = circles(modules(graph))
    assert {"pdojo.dialect.affine", "pdojo.dialect.view.nest"} <= circle


def test_strings_are_imports_too() -> None:
    graph = import_graph(strings=True)
    assert circles(modules(graph)) == []
    graph.add_import(importer="pdojo.dialect.affine", imported="pdojo.dialect.shortcuts")
    (circle,) = circles(modules(graph))
    assert {"pdojo.dialect.shortcuts", "pdojo.dialect.shortcuts.digits"} <= circle, "by the list of shortcuts"


@pytest.mark.parametrize("package", ["dialect", "transforms", "backends", "passes", "search"])
def test_folders_have_an_order(package: str) -> None:
    assert circles(folders(import_graph(types=True), f"pdojo.{package}", files=True)) == []


def test_the_page_says_how_many_circles_there_are() -> None:
    found = circles(modules(import_graph(types=True)))
    (count,) = re.findall(r"(\d+) pairs of files", PAGE.read_text(encoding="utf-8"))
    assert [len(circle) for circle in found] == [2] * int(count)


def test_strings_that_name_modules() -> None:
    found = named_modules()
    assert "pdojo.transforms.structure.fusion" in found["pdojo.transforms.registry"], "f'pdojo.transforms.{module}'"
    assert "pdojo.dialect.notation.parser" in found["pdojo.dialect.notation"], "f'{__name__}.{...}'"
    assert found["pdojo.backends.snitch.backend"] == {"pdojo.backends.snitch.session"}, "path:name"
    assert "pdojo.math.references" in found["pdojo.math.functions"], "a path"
    assert "pdojo.dialect.plugins" not in found, "'pdojo.backends' is a group of entry points"


def test_imports_of_types_are_counted_apart() -> None:
    importer, imported = "pdojo.backends.snitch.packed", "pdojo.backends.snitch.statement"
    assert not import_graph().direct_import_exists(importer=importer, imported=imported)
    assert import_graph(types=True).direct_import_exists(importer=importer, imported=imported)


def test_arrows_that_follow_from_others_are_left_out() -> None:
    assert list(reduced({"a": {"b", "c"}, "b": {"c"}, "c": set()})) == [("a", "b"), ("b", "c")]
    assert list(reduced({"a": {"b"}, "b": {"a"}})) == [("a", "b"), ("b", "a")]


def test_circles_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert circles({"a": {"b"}, "b": {"a", "c"}, "c": {"c"}, "d": {"a"}}) == [{"a", "b"}, {"c"}]
    assert main(["--circles"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "imports: 0 circles of 0 modules"
    assert "  pdojo.backends: 0 folders and files in circles" in lines
