"""The pane of moves: a tree grouped by name, filtered, of legal or refused moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdojo_tools.playing.choice import ListedMove, filtered, grouped
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Static, Tree
from textual.widgets.tree import TreeNode

OPENED = 300
"""Greatest number of filtered moves at which groups are open."""


class MoveTree(Tree[ListedMove]):
    """The tree. A click highlights a line; a click on the highlighted line acts as Enter."""

    BINDINGS = [Binding("enter", "select_cursor", "make", key_display="Enter")]  # noqa: RUF012  # as the library declares it

    def __init__(self) -> None:
        super().__init__("moves", id="move-tree")
        self.show_root = False
        self.guide_depth = 2

    def on_click(self, event: events.Click) -> None:
        """Only highlight a line that is not highlighted."""
        line = event.style.meta.get("line")
        if isinstance(line, int) and line != self.cursor_line and not event.style.meta.get("toggle"):
            self.cursor_line = line
            event.prevent_default()


class SteadyInput(Input):
    """An input with a steady cursor, since blinking redraws for ever over a slow connection."""

    def on_mount(self) -> None:
        """Stop blinking."""
        self.cursor_blink = False


class MovesPane(Vertical):
    """The filter, the number of moves, and the tree."""

    @dataclass
    class Highlighted(Message):
        """Message: a move is highlighted, or none."""

        entry: ListedMove | None

    @dataclass
    class Chosen(Message):
        """Message: a move was chosen."""

        entry: ListedMove

    def __init__(self) -> None:
        super().__init__(id="moves-pane")
        self.entries: Sequence[ListedMove] | None = None
        """All candidates; None while they are being computed."""
        self.refused = False
        """True if the refused candidates are shown."""
        self._opened: set[str] = set()
        self._kept: str | None = None
        """The line highlighted before the moves were computed again."""

    def compose(self) -> ComposeResult:
        """Textual's hook: the widgets."""
        yield SteadyInput(placeholder="/ to filter", id="filter", compact=True)
        yield Static("", id="count")
        yield MoveTree()

    @property
    def move_tree(self) -> MoveTree:
        """The tree of moves."""
        return self.query_one(MoveTree)

    @property
    def filter(self) -> Input:
        """The input of the filter."""
        return self.query_one("#filter", Input)

    @property
    def highlighted(self) -> ListedMove | None:
        """The move under the cursor."""
        node = self.move_tree.cursor_node
        return None if node is None else node.data

    @property
    def shown(self) -> list[ListedMove]:
        """The listed moves, also those in closed groups."""
        wanted = [e for e in self.entries or () if (e.refusal is not None) is self.refused]
        return filtered(wanted, self.filter.value)

    def show(self, entries: Sequence[ListedMove] | None) -> None:
        """Show candidates; None means that they are being computed."""
        if entries is None and self.entries is not None:
            self._kept = self._key(self.move_tree.cursor_node)
        self.entries = entries
        self._rebuild()

    def toggle_refused(self) -> None:
        """Toggle between refused and legal candidates."""
        self.refused = not self.refused
        self._rebuild()

    def _rebuild(self) -> None:
        tree, shown = self.move_tree, self.shown
        kept = self._kept or self._key(tree.cursor_node)
        tree.clear()
        self.query_one("#count", Static).update(Text(self._count(len(shown))))
        if self.entries is None:
            return
        self._kept = None
        open_all = bool(self.filter.value.strip()) and len(shown) <= OPENED
        for name, entries in grouped(shown).items():
            node = tree.root.add(Text(f"{name} {len(entries)}"))
            if open_all or name in self._opened:
                self._fill(node, entries)
                node.expand()
        self._restore(kept, first_move=open_all)

    def _count(self, shown: int) -> str:
        if self.entries is None:
            return "looking for moves ..."
        refused = sum(e.refusal is not None for e in self.entries)
        legal = len(self.entries) - refused
        here, other = (refused, f"{legal} legal: r") if self.refused else (legal, f"{refused} refused: r")
        kind = "refused" if self.refused else "legal"
        return f"{here} {kind} ({other})" if shown == here else f"{shown} of {here} {kind} ({other})"

    def _fill(self, group: TreeNode[ListedMove], entries: Sequence[ListedMove]) -> None:
        for entry in entries:
            group.add_leaf(Text(entry.label), entry)

    def _restore(self, key: str | None, *, first_move: bool) -> None:
        """Put the cursor back, or on the first line."""
        groups = list(self.move_tree.root.children)
        nodes = [node for group in groups for node in (group, *group.children)]
        found = next((node for node in nodes if self._key(node) == key), None)
        if found is None and nodes:
            found = nodes[1] if first_move and len(nodes) > 1 else nodes[0]
        # Reading `last_line` numbers the lines.
        _ = self.move_tree.last_line
        self.move_tree.move_cursor(found)
        self.post_message(self.Highlighted(None if found is None else found.data))

    def _key(self, node: TreeNode[ListedMove] | None) -> str | None:
        if node is None:
            return None
        return _name(node) if node.data is None else str(node.data.move)

    @on(Tree.NodeExpanded)
    def _expanded(self, event: Tree.NodeExpanded[ListedMove]) -> None:
        name = _name(event.node)
        if not event.node.children:
            self._fill(event.node, grouped(self.shown).get(name, ()))
        if not self.filter.value.strip():
            self._opened.add(name)

    @on(Tree.NodeCollapsed)
    def _collapsed(self, event: Tree.NodeCollapsed[ListedMove]) -> None:
        if not self.filter.value.strip():
            self._opened.discard(_name(event.node))

    @on(Tree.NodeHighlighted)
    def _highlighted(self, event: Tree.NodeHighlighted[ListedMove]) -> None:
        self.post_message(self.Highlighted(event.node.data))

    @on(Tree.NodeSelected)
    def _selected(self, event: Tree.NodeSelected[ListedMove]) -> None:
        if event.node.data is not None:
            self.post_message(self.Chosen(event.node.data))

    @on(Input.Changed, "#filter")
    def _typed(self) -> None:
        self._rebuild()

    @on(Input.Submitted, "#filter")
    def _submitted(self) -> None:
        self.screen.set_focus(self.move_tree)

    def on_key(self, event: events.Key) -> None:
        """Down leaves the filter for the moves; Escape also clears it."""
        if not self.filter.has_focus or event.key not in ("down", "escape"):
            return
        if event.key == "escape":
            self.filter.value = ""
        self.screen.set_focus(self.move_tree)
        event.stop()


def _name(group: TreeNode[ListedMove]) -> str:
    return str(group.label).partition(" ")[0]
