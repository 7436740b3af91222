"""The grids of tasks, methods and seeds. A cell is one search: one task, one method, one seed.

The kernels were chosen before any result was known, for variety: one loop (axpy), a sum into one number (dot), sums and
maxima of rows (sum, max), elements with a constant (relu), a vector that is read repeatedly (gemv), three loops around
a product (gemm), and four statements with temporaries, a division and a function (softmax).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from benchmarks.origin import JSON
from pdojo.errors import UsageError, did_you_mean
from pdojo.names import UNIFORM
from pdojo.perfllm.settings import TARGETS, Settings
from pdojo.search.contract.strategy import StrategyOptions

EVALUATIONS = 2000
"""Number of evaluations of a search on the Snitch simulator."""


@dataclass(frozen=True)
class Task:
    """A kernel, and the evaluation of its programs."""

    kernel: str
    """The kernel as on command lines: `dot:1x256`."""
    machine: str
    """`snitch`, or `host` on one thread."""
    evaluator: str
    evaluations: int
    """Number of evaluations of a search."""

    @property
    def label(self) -> str:
        """The name in tables."""
        return f"{self.kernel}, {self.evaluator}"

    @property
    def is_timed(self) -> bool:
        """True if programs are timed, so that a search must run alone."""
        return self.evaluator == "runtime"


@dataclass(frozen=True)
class Method:
    """A search method. All methods begin at the plain program, and none knows an expert's moves."""

    name: str
    """The name in tables and on command lines."""
    strategy: str
    neighbourhood: str
    agent: str = ""
    """Hyper-parameters of the agent, in the form of `--agent`; '' for other strategies."""
    proposals: str = UNIFORM
    """`uniform`, or `learned:FILE`."""

    @property
    def family(self) -> str:
        """The first word of the name, which selects all methods that begin with it."""
        return self.name.partition("-")[0]

    @property
    def settings(self) -> Settings | None:
        """The agent's settings. Raises UsageError."""
        return Settings.parse(self.agent) if self.agent else None

    @property
    def options(self) -> StrategyOptions | None:
        """The options of the strategy. Raises UsageError."""
        return None if self.settings is None else self.settings.to_json()


@dataclass(frozen=True)
class Cell:
    """One search."""

    task: Task
    method: Method
    seed: int

    @property
    def key(self) -> tuple[str, str, int]:
        """The key of the cell within a file."""
        return self.task.label, self.method.name, self.seed

    @property
    def label(self) -> str:
        """The name in messages and files."""
        return f"{self.task.label}: {self.method.name}, seed {self.seed}"


@dataclass(frozen=True)
class Grid:
    """All cells of an experiment."""

    name: str
    tasks: tuple[Task, ...]
    methods: tuple[Method, ...]
    seeds: tuple[int, ...]

    def cells(self) -> list[Cell]:
        """All cells: one seed of everything first, and within it one task by all methods, so that a cut run is
        comparable.
        """
        return [Cell(task, method, seed) for seed in self.seeds for task in self.tasks for method in self.methods]

    def to_json(self) -> JSON:
        """As plain data."""
        return asdict(self)

    @staticmethod
    def from_json(data: JSON) -> Grid:
        """The inverse of `to_json`."""
        tasks = tuple(Task(**task) for task in data["tasks"])
        methods = tuple(Method(**method) for method in data["methods"])
        return Grid(data["name"], tasks, methods, tuple(data["seeds"]))

    def with_only(
        self,
        kernels: Sequence[str],
        methods: Sequence[str],
        seeds: Sequence[int] | None,
        evaluations: int | None,
        evaluators: Sequence[str] = (),
    ) -> Grid:
        """A part of the grid; an empty selection keeps everything. Raises UsageError for unknown names."""
        tasks, chosen = self.tasks, self.methods
        if kernels:
            named = [(task.kernel, task.kernel.partition(":")[0]) for task in self.tasks]
            tasks = tuple(tasks[k] for k in _named(kernels, named, "kernel"))
        if evaluators:
            named = [(task.evaluator, task.evaluator) for task in tasks]
            tasks = tuple(tasks[k] for k in _named(evaluators, named, "evaluator"))
        if methods:
            named = [(method.name, method.family) for method in self.methods]
            chosen = tuple(self.methods[k] for k in _named(methods, named, "method"))
        if evaluations is not None:
            tasks = tuple(replace(task, evaluations=evaluations) for task in tasks)
        return Grid(self.name, tasks, chosen, self.seeds if seeds is None else tuple(dict.fromkeys(seeds)))


def _named(wanted: Sequence[str], known: Sequence[tuple[str, str]], what: str) -> list[int]:
    """The indices of the names, in order of the grid; a name is a label or a family."""
    for name in wanted:
        if not any(name in names for names in known):
            raise UsageError(f"'{name}' is no {what} of this grid; {did_you_mean(name, [name for name, _ in known])}")
    return [k for k, names in enumerate(known) if set(names) & set(wanted)]


def _agent(target: str, granularity: str, encoder: str = "structure", policy: str = "") -> Method:
    text = f"target={target},granularity={granularity},encoder={encoder}"
    suffix = "" if encoder == "structure" else f"-{encoder}"
    if policy:
        text += f",policy={policy},epsilon_first={EXPLORING}"
        suffix += "-trained"
    return Method(f"perfllm-{target}-{granularity}{suffix}", "perfllm", "edges", text)


def _walk(granularity: str) -> Method:
    """The control without learning: the agent's episodes and moves, all drawn at random."""
    text = f"granularity={granularity},epsilon_first=1,epsilon_last=1,updates=0"
    return Method(f"walk-{granularity}", "perfllm", "edges", text)


def _search(strategy: str, neighbourhood: str) -> Method:
    return Method(f"{strategy}-{neighbourhood}", strategy, neighbourhood)


GRANULARITIES = ("single", "everywhere", "both", "edits")
_FOR_OTHERS = ("single", "edits")
"""Granularities of agents with other encoders, or with a policy: the paper's, and the most successful one."""
METHODS = (
    *(_agent(target, granularity) for granularity in GRANULARITIES for target in TARGETS),
    *(_walk(granularity) for granularity in GRANULARITIES),
    _search("anneal", "edges"),
    _search("anneal", "mutate"),
    _search("evolve", "mutate"),
    _search("elites", "mutate"),
    _search("model", "mutate"),
    _search("sample", "mutate"),
)
"""The methods on the simulator. Agents draw their own moves: their neighbourhood is not used."""

_SNITCH = (
    "axpy:1x256",
    "dot:1x256",
    "reducesum:16x16",
    "reducemax:16x16",
    "relu:16x16",
    "gemv:16x32",
    "matmul:8x8x8",
    "softmax:16x16",
)
_CPU = ("softmax:1024x512", "matmul:256x256x256")
_ON_CPU = ("perfllm-max-single", "perfllm-max-edits", "walk-edits", "anneal-mutate", "evolve-mutate")

GRIDS = {
    "snitch": Grid(
        "snitch", tuple(Task(kernel, "snitch", "cycles", EVALUATIONS) for kernel in _SNITCH), METHODS, tuple(range(5))
    ),
    "cpu": Grid(
        "cpu",
        tuple(
            Task(kernel, "host", evaluator, evaluations)
            for evaluator, evaluations in (("analytical", 300), ("runtime", 150))
            for kernel in _CPU
        ),
        tuple(method for method in METHODS if method.name in _ON_CPU),
        tuple(range(3)),
    ),
}
HELD_OUT = ("conv", "maxpool", "cumsum", "causal_softmax", "colsum")
"""Kernels of which no size may be trained on: a stencil, one with a border, a recurrence, one with guards, and
sums of columns.
"""
_TRAINED = (
    "axpy:1x256",
    "dot:1x256",
    "reducesum:16x16",
    "reducemax:16x16",
    "relu:16x16",
    "gemv:16x32",
    "matmul:8x8x8",
    "batchnorm_folded:16x16",
    "reducemean:16x16",
)
"""Kernels that are trained on in other sizes."""
_HELD = ("conv:1x1x1x10x10x3", "maxpool:1x1x8x8x3,S=1,P=1", "cumsum:16x16", "causal_softmax:1x12", "colsum:16x16")
LEARNED_SUFFIX = "-learned"
GRIDS["proposals"] = Grid(
    "proposals",
    tuple(Task(kernel, "snitch", "cycles", 400) for kernel in (*_HELD, *_TRAINED)),
    (_search("evolve", "mutate"), _search("anneal", "mutate"), _agent("max", "edits")),
    tuple(range(10)),
)
EXPLORING = 0.3
"""Initial fraction of random actions of an agent that begins with a policy."""
QUICK = {"snitch": ("axpy", "dot", "relu"), "cpu": ("softmax",), "proposals": ("cumsum", "relu")}
"""The kernels of `--quick`, with one seed."""
QUICK_EVALUATIONS = 60


def with_encoders(grid: Grid, encoders: Iterable[str]) -> Grid:
    """The grid with agents that use other encoders: target `max`, single moves and edits."""
    more = [_agent("max", granularity, encoder) for encoder in encoders for granularity in _FOR_OTHERS]
    return replace(grid, methods=(*grid.methods, *more))


def with_proposals(grid: Grid, proposals: str) -> Grid:
    """The grid with each method also by learned proposals."""
    more = [
        replace(method, name=f"{method.name}{LEARNED_SUFFIX}", neighbourhood="mutate", proposals=proposals)
        for method in grid.methods
        if method.neighbourhood == "mutate" or method.agent
    ]
    return replace(grid, methods=(*grid.methods, *more))


def with_policy(grid: Grid, policy: str) -> Grid:
    """The grid with agents that begin with the networks in a file: target `max`, single moves and edits."""
    more = [_agent("max", granularity, policy=policy) for granularity in _FOR_OTHERS]
    return replace(grid, methods=(*grid.methods, *more))
