"""The game as a gymnasium environment. Importing this module registers `pdojo/Kernel-v0`.

>>> import gymnasium, pdojo.env
>>> env = gymnasium.make("pdojo/Kernel-v0", kernel="softmax:4x8", machine="x86-64-avx2", evaluator="analytical")
>>> observation, info = env.reset(seed=1)
>>> info["moves"][0], int(observation["action_mask"].sum())
('stop', 33)
>>> observation, reward, terminated, truncated, info = env.step(0)
>>> reward, terminated, info["status"]
(1.0, True, 'Ok')
>>> env.close()
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

from pdojo.api.options import checked
from pdojo.api.programs import KernelLike, machine_for, named
from pdojo.dialect.machines.machine import Machine
from pdojo.errors import UsageError
from pdojo.passes.scheduled_kernel import assume_alignment, make_moves
from pdojo.search.contract.evaluation import Evaluator
from pdojo.search.environment.actions import Action
from pdojo.search.environment.episode import Episode, Price, Transition
from pdojo.search.environment.reward_model import RewardModel
from pdojo.search.environment.rules import Rules
from pdojo.search.environment.validation import Validation, validate
from pdojo.search.evaluators.named import check_runs_here, evaluator_for, make_evaluator
from pdojo.transforms.trace import Trace

try:
    import gymnasium

    from pdojo.search.environment.kernel_env import KernelEnv
except ModuleNotFoundError as error:
    if error.name != "gymnasium":
        raise
    raise UsageError("pdojo.env needs gymnasium: pip install 'pdojo[env]'") from None

__all__ = [
    "ID",
    "Action",
    "Episode",
    "KernelEnv",
    "Price",
    "RewardModel",
    "Rules",
    "Transition",
    "Validation",
    "kernel_env",
    "validate",
]

ID = "pdojo/Kernel-v0"
"""The name by which `gymnasium.make` knows the environment."""


@checked
def kernel_env(
    kernel: KernelLike,
    machine: Machine | str | None = None,
    *,
    evaluator: str | Evaluator | None = None,
    granularity: str = "single",
    offered: int | None = 32,
    capacity: int | None = None,
    reward: str = "step",
    scale: float | None = None,
    horizon: int = 64,
    trace: Trace | str | Path | None = None,
    expert: str | None = None,
    successors: bool = False,
    longest: int = 16384,
    threads: int | None = None,
    align: int | None = None,
    database: str | Path | None = None,
    render_mode: str | None = None,
) -> KernelEnv:
    """Make the environment of a kernel, as `gymnasium.make` does.

    `kernel`, `machine`, `threads` and `align` have the meaning of `pdojo.tune`. `evaluator` determines costs:
    `runtime`, `analytical`, `cycles`, None for the machine's default, or an evaluator object, which `close` closes.
    Episodes begin with the plain kernel, or after the moves of `trace` and of the pass `expert`. `offered`,
    `granularity`, `reward`, `scale` and `horizon` are the rules (`Rules`). `capacity` is the number of actions, not
    counting the stop: by default `offered`, or 1024 if all legal actions are offered. With `successors`, observations
    contain the features of each action's resulting program. `longest` is the largest number of characters of an
    observed program. `database` is the file that keeps costs; None keeps them in memory.

    Raises UsageError for unknown names and invalid values, and the errors of `pdojo.tune` for kernels, machines and
    traces.
    """
    found = named(kernel)
    described = machine_for(found.kernel, machine, threads)
    rules = Rules(offered, granularity, reward, horizon, scale)
    known = Trace.load(trace) if isinstance(trace, str | Path) else trace
    start = make_moves(assume_alignment(found.kernel, align, known), described, expert, known).game.fork()
    if evaluator is None or isinstance(evaluator, str):
        name = evaluator_for(described, evaluator)
        check_runs_here(name, described)
        evaluator = make_evaluator(name, described, start.plain, 0)
    # Close what was opened if an option is wrong.
    with ExitStack() as opened:
        costs = opened.enter_context(closing(evaluator))
        prices = RewardModel(start, costs, database=database, workload=found.workload)
        opened.pop_all()
        opened.enter_context(closing(prices))
        environment = KernelEnv(
            start,
            prices,
            rules,
            capacity=capacity or offered or 1024,
            longest=longest,
            successors=successors,
            render_mode=render_mode,
        )
        opened.pop_all()
    return environment


if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point="pdojo.env:kernel_env")  # pyright: ignore[reportUnknownMemberType]
