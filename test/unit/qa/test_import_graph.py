"""The graph of imports in docs/architecture.md is that of the code."""

from __future__ import annotations

import grimp

from qa.import_graph import PAGE, circles, drawn, import_graph, reduced, with_graphs


def test_the_page_shows_the_imports() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_graphs(page, drawn(import_graph())) == page, "python -m qa.import_graph"


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = import_graph()
    assert circles(graph) == []
    graph.add_import(importer="pdojo.dialect.affine", imported="pdojo.dialect.view.nest")
    (circle,) = circles(graph)
    assert {"pdojo.dialect.affine", "pdojo.dialect.view.nest"} <= circle


def test_arrows_that_follow_from_others_are_left_out() -> None:
    assert list(reduced({"a": {"b", "c"}, "b": {"c"}, "c": set()})) == [("a", "b"), ("b", "c")]
    assert list(reduced({"a": {"b"}, "b": {"a"}})) == [("a", "b"), ("b", "a")]


def test_imports_for_type_checkers_are_no_imports() -> None:
    assert isinstance(import_graph(), grimp.ImportGraph)
    assert not import_graph().direct_import_exists(
        importer="pdojo.backends.snitch.packed", imported="pdojo.backends.snitch.statement"
    )
