"""Programs that a search has met, so that strategies ask for new ones."""

from __future__ import annotations

from collections.abc import Callable

from pdojo.search.node import Node, Proposal


class Seen:
    """The fingerprints of the programs that were evaluated, and of those that were asked for."""

    def __init__(self, root: Node) -> None:
        self._evaluated = {root.fingerprint}
        self._asked: set[str] = set()

    def told(self, node: Node) -> None:
        """A program is evaluated."""
        self._asked.discard(node.fingerprint)
        self._evaluated.add(node.fingerprint)

    def forget(self, proposal: Proposal) -> None:
        """A proposal is not evaluated after all."""
        self._asked.discard(proposal.dojo.fingerprint)

    def __contains__(self, proposal: Proposal) -> bool:
        fingerprint = proposal.dojo.fingerprint
        return fingerprint in self._evaluated or fingerprint in self._asked

    def fresh(self, draw: Callable[[], Proposal | None], tries: int) -> Proposal | None:
        """The first of some proposals that is new.

        Where none is, a known program may be what leads on: it is proposed, unless there are others to wait for.
        """
        known: Proposal | None = None
        for _ in range(tries):
            proposal = draw()
            if proposal is None:
                continue
            if proposal not in self:
                self._asked.add(proposal.dojo.fingerprint)
                return proposal
            known = proposal
        return None if self._asked else known
