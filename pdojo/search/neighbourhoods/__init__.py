"""Neighbourhoods: random states near a state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdojo.budget import EVALUATIONS
from pdojo.errors import UsageError
from pdojo.names import LEARNED, NEIGHBOURHOODS, UNIFORM
from pdojo.search.contract.neighbourhood import Neighbourhood

if TYPE_CHECKING:
    from pdojo.search.proposals.model import ProposalModel


def neighbourhood(name: str, proposals: str = UNIFORM, steps: int = EVALUATIONS) -> Neighbourhood:
    """The neighbourhood with this name, for a search of about `steps` evaluations.

    `proposals` is `uniform`, or `learned:FILE` for a model that edits of `mutate` are drawn from. Raises UsageError.
    """
    check_proposals(proposals, name)
    match name:
        case "edges":
            from pdojo.search.neighbourhoods.edges import Edges

            return Edges()
        case "mutate":
            from pdojo.search.neighbourhoods.mutate import Mutate

            model = loaded_proposals(proposals)
            if model is None:
                return Mutate()
            from pdojo.search.neighbourhoods.drawing import Mixture

            return Mutate(mixture=Mixture(model, steps))
        case "heuristic":
            from pdojo.search.neighbourhoods.heuristic import Heuristic

            return Heuristic()
        case _:
            raise UsageError(f"unknown neighbourhood '{name}'; known are {', '.join(NEIGHBOURHOODS)}")


def loaded_proposals(proposals: str) -> ProposalModel | None:
    """The model of `learned:FILE`; None for `uniform`. Raises UsageError."""
    check_proposals(proposals, None)
    if proposals == UNIFORM:
        return None
    from pdojo.search.proposals.model import ProposalModel

    return ProposalModel.load(proposals.removeprefix(LEARNED))


def check_proposals(proposals: str, name: str | None) -> None:
    """Raise UsageError for proposals of an unknown kind, and for learned ones of another neighbourhood than `mutate`.

    A name of None is the default.
    """
    if proposals == UNIFORM:
        return
    if not proposals.startswith(LEARNED) or proposals == LEARNED:
        raise UsageError(f"proposals are {UNIFORM} or {LEARNED}FILE, not '{proposals}'")
    if name not in (None, "mutate"):
        raise UsageError(f"learned proposals are for the neighbourhood 'mutate', not '{name}'")
