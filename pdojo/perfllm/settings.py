"""Hyper-parameters of the agent, with their sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from pdojo.errors import UsageError, did_you_mean
from pdojo.search.environment.rules import Rules

if TYPE_CHECKING:
    from pdojo.search.contract.evaluation import JSON

Target: TypeAlias = Literal["max", "sum", "one-step"]
"""Training target of an action's value: the best reward to come, the sum of all rewards to come, or its own reward."""
TARGETS: tuple[Target, ...] = get_args(Target)
_BOOLEANS = {"true": True, "false": False}
_MEANT = {bool: "true or false", int: "a whole number", float: "a number", str: "a name"}

EDITS: JSON = {
    "fresh": True,
    "horizon": 1,
    "successors": 8,
    "resume_best": 0.95,
    "epsilon_first": 0.5,
    "elites": 16,
    "epsilon_last": 0.25,
    "patience": 100,
    "parsimony": 0.002,
}
"""Defaults of the granularity `edits`. An edit may change any part, and takes long to make: episodes are short, each
begins at the end of the best one, and most programs made for a choice are evaluated.
"""
RUNS: JSON = {"horizon": 16}
"""Defaults of the granularities with runs of moves, which lengthen a trace by several moves at once."""
DEFAULTS: Mapping[str, JSON] = {"edits": EDITS, "everywhere": RUNS, "both": RUNS}
"""Defaults by granularity that differ from those of `Settings`."""


@dataclass(frozen=True)
class Settings:
    """Hyper-parameters. `P` is the paper, which names techniques but no numbers; `D` is a choice of pdojo.

    Raises UsageError for invalid values.
    """

    target: Target = "max"
    """`max`: the max-Bellman equation (P 3.2, equation 4; Gottipati et al., 2020). `sum`: the ordinary Bellman equation
    (P equation 3). `one-step`: no look-ahead, as a control.
    """
    encoder: str = "structure"
    """`structure` (D), or `hf:MODEL`, a transformer of `transformers` (P 3.1)."""
    granularity: str = "single"
    """`single` moves (P), the same move `everywhere` at once (D), `both`, or `edits` of traces (D):
    `environment.rules.Rules`."""
    horizon: int = 64
    """D: greatest number of moves of an episode. It truncates an episode without ending it, so values look beyond."""
    successors: int = 32
    """D: number of legal moves drawn in a state, out of up to thousands, not counting the stop."""
    discount: float = 0.995
    """D: gamma. With 1 there are spurious fixed points if moves can be taken back; 0.9 is blind beyond 50 moves."""
    epsilon_first: float = 1.0
    """P 3.1: epsilon-greedy with decay; initial fraction of random actions (D)."""
    epsilon_last: float = 0.08
    """D: final fraction of random actions."""
    epsilon_decay: float = 0.6
    """D: fraction of the budget over which epsilon falls linearly."""
    replay: int = 10_000
    """P 3.3: experience replay; number of transitions kept (D)."""
    batch: int = 32
    """D: number of transitions in an update."""
    updates: int = 4
    """D: number of updates after each step."""
    double: bool = True
    """P equation 6: Double DQN."""
    sync: int = 50
    """D: number of steps between copies to the target network."""
    dueling: bool = True
    """P 3.3: dueling heads; the mean is over the offered actions, including the stop."""
    width: int = 128
    """D: width of each hidden layer."""
    learning_rate: float = 5e-4
    """D: learning rate of Adam."""
    clip: float = 5.0
    """D: greatest norm of a gradient."""
    policy: str = ""
    """D: file of an initial policy (`pdojo-train agent`); none if empty."""
    demonstrations: bool = False
    """D: the first episode demonstrates the moves of the expert pass."""
    screen: str = ""
    """D: file of a cost model that chooses among the drawn moves (`pdojo-train costs`); none if empty."""
    screened: int = 4
    """D: number of moves drawn for each move that the cost model keeps."""
    resume_best: float = 0.5
    """D: probability that an episode begins on the path to one of the best programs, instead of at the plain one."""
    elites: int = 8
    """D: number of best programs to begin from; better ones are likelier (`archive`)."""
    patience: int = 0
    """D: number of programs in a row without progress after which the best programs are forgotten (`archive`); 0 for
    never.
    """
    parsimony: float = 0.0
    """D: relative penalty for each statement in a program's code, in the choice of the best programs."""
    fresh: bool = False
    """D: only programs without a cost are chosen, the offers of a state are kept until half of them have a cost, and
    episodes begin at the best programs instead of on the paths to them.
    """

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            _check(name, kind, getattr(self, name))
        if self.target not in TARGETS:
            raise UsageError(f"unknown target '{self.target}'; known are {', '.join(TARGETS)}")
        Rules(self.successors, self.granularity)
        if self.screen and self.encoder != "structure":
            raise UsageError(f"'screen' is a model of the encoder 'structure', not of '{self.encoder}'")

    def to_json(self) -> JSON:
        """Names and values."""
        return asdict(self)

    @classmethod
    def parse(cls, text: str) -> Settings:
        """Settings from a command line: `target=sum,horizon=32,granularity=both`. Raises UsageError.

        Missing settings get the defaults of the granularity (`DEFAULTS`).
        """
        data: JSON = {}
        for part in text.split(","):
            name, _, value = part.strip().partition("=")
            kind = _KINDS.get(name, str)
            try:
                data[name] = _BOOLEANS[value] if kind is bool else kind(value)
            except (KeyError, ValueError):
                raise UsageError(f"'{name}' takes {_MEANT[kind]}, not '{value}'") from None
        return cls.from_json({**DEFAULTS.get(data.get("granularity", ""), {}), **data})

    @classmethod
    def from_json(cls, data: JSON) -> Settings:
        """Settings from `to_json`. Raises UsageError for unknown names."""
        unknown = next((str(name) for name in data if name not in _KINDS), None)
        if unknown is not None:
            raise UsageError(f"unknown setting '{unknown}'; {did_you_mean(unknown, sorted(_KINDS))}")
        return cls(**data)


_KINDS: Mapping[str, type[Any]] = {field.name: type(field.default) for field in fields(Settings)}
"""Types of the settings, keyed by name."""
_COUNTS = range(1, 1 << 31)
_SHARES = (0.0, 1.0)
_BOUNDS: Mapping[str, range | tuple[float, float]] = {
    **dict.fromkeys(("horizon", "replay", "sync"), _COUNTS),
    **dict.fromkeys(("successors", "batch", "screened", "elites"), range(1, 1 << 16)),
    "width": range(1, 1 << 13),
    "updates": range(1 << 16),
    "patience": range(1 << 31),
    **dict.fromkeys(("discount", "epsilon_first", "epsilon_last", "epsilon_decay", "resume_best"), _SHARES),
    "learning_rate": (1e-12, 1.0),
    "clip": (1e-12, 1e12),
    "parsimony": (0.0, 1e6),
}
"""Allowed numbers; both ends of a pair are included."""


def _check(name: str, kind: type[Any], value: object) -> None:
    """Raise UsageError for a value of another type, or out of bounds."""
    numbers = int | float if kind is float else kind
    if not isinstance(value, numbers) or (kind is not bool and isinstance(value, bool)):
        raise UsageError(f"'{name}' takes {_MEANT[kind]}, not {value!r:.40}")
    bounds = _BOUNDS.get(name)
    if bounds is None or not isinstance(value, int | float):
        return
    least, most = (bounds.start, bounds.stop - 1) if isinstance(bounds, range) else bounds
    if not least <= value <= most:
        where = f"at least {least:g}" if value < least and bounds is not _SHARES else f"from {least:g} to {most:g}"
        raise UsageError(f"'{name}' is {where}, not {value!s:.40}")
