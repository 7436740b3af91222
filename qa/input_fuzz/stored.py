"""Files written by pdojo and damaged afterwards: those of the agent, its trainings and its cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from io import StringIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy
from pdojo_tools.training.folder import Folder
from pdojo_tools.training.live import TrainingDisplay
from pdojo_tools.training.report import page
from rich.console import Console

from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import print_notation
from pdojo.kernels import workload
from pdojo.perfllm.kept import Kept
from pdojo.perfllm.ranking import Ranking
from pdojo.perfllm.screening import KIND, Screen
from pdojo.perfllm.settings import Settings
from pdojo.perfllm.storing import dump
from pdojo.perfllm.strategy import PerfLLM
from pdojo.perfllm.training.kernels import TrainingKernel
from pdojo.perfllm.training.players import Here
from pdojo.perfllm.training.trainer import EpisodeRow, Trainer
from pdojo.search.contract.evaluation import Evaluation
from pdojo.search.contract.node import Node, SharedEvaluation, States
from pdojo.search.features.structure import SIZE, VERSION
from pdojo.search.neighbourhoods import neighbourhood
from pdojo.transforms.game import Game
from qa.input_fuzz.mutations import damaged_bytes

SETTINGS = Settings(horizon=3, successors=3, width=4, updates=1, batch=2, fresh=True)
MACHINE = machine("toy")
EPISODES = 4
_VALUES: tuple[Any, ...] = (
    None, 0, -1, 1, 10**12, 2**63, 10**400, 1.5, 1e308, float("nan"), True, "x", "", "é\ud800", [], [[1]], {},
    {"dict": []}, {"dict": 3}, {"dict": [[(), 1]]}, {"dict": [["a", 1]]},
    {"tensor": "0"}, {"tensor": "999"}, {"tensor": []},
)  # fmt: skip
_STAMPS = (
    "", "x", "{}", "[]", "[" * 3000, '{"width": 100000}', '{"width": -2, "heads": 1}', '{"heads": 0}',
    '{"width": "96"}', '{"line_layers": 100000}', '{"width": 9999999998, "heads": 1}', '{"width": 96.0}',
    "\0", "9" * 5000,
)  # fmt: skip
_ENTRIES: Mapping[str, tuple[Any, ...]] = {
    "dtype": ("F64", "F16", "BOOL", "I64", "U8", "X", None),
    "shape": ([], [0], [1], [2**40], [-1], [0, 2**40], [4, 4, 4], [1.5], "x"),
    "data_offsets": ([0, 0], [0, 8], [2**63, 2**64], [8, 0], [], None),
}


# The valid files


@cache
def _kernel() -> TrainingKernel:
    known = workload("softmax:4x8")
    return TrainingKernel("softmax:4x8", print_notation(known.instantiate()), MACHINE, "analytical", known, None, 0)


def _trainer() -> Trainer:
    return Trainer([_kernel()], SETTINGS, 1, EPISODES)


@cache
def _trained() -> tuple[Trainer, list[EpisodeRow]]:
    trainer, players = _trainer(), Here([_kernel()], SETTINGS, 1)
    try:
        return trainer, list(trainer.run(players))
    finally:
        players.close()


@cache
def _states() -> States:
    return States(_kernel().game())


def _node(number: int, state: Game, parent: Node | None) -> Node:
    moves = tuple(step.resolved for step in state.trace.steps)
    node = Node(number, moves, state.fingerprint, parent, SharedEvaluation(Evaluation(1 / (1 + number))), _states())
    _states().put(node, state)
    return node


def _started(strategy: PerfLLM) -> Node:
    root = _node(0, _kernel().game(), None)
    strategy.start(root, neighbourhood("mutate"), Random(2))
    return root


@cache
def _searched() -> tuple[bytes, dict[int, Node]]:
    """A strategy after some programs, and the nodes of these."""
    strategy = PerfLLM(8, SETTINGS)
    nodes = {0: _started(strategy)}
    for number in range(1, 7):
        proposal = strategy.ask()
        assert proposal is not None
        nodes[number] = _node(number, proposal.game, proposal.parent)
        strategy.tell(nodes[number])
    return strategy.save(), nodes


# Readers as in pdojo


def _read_checkpoint(file: Path) -> None:
    trainer = _trainer()
    trainer.restore(file.read_bytes())
    trainer.agent.learner.learn(trainer.agent.replay, trainer.agent.vectors, Random(1))
    trainer.save()


def _read_policy(file: Path) -> None:
    trainer = Trainer([_kernel()], replace(SETTINGS, policy=str(file)), 1, EPISODES)
    trainer.agent.look(_kernel().game())


def _read_costs(file: Path) -> None:
    Screen(str(file)).ranking.costs([numpy.zeros(SIZE, numpy.float32)])


def _read_search(file: Path) -> None:
    strategy = PerfLLM(8, SETTINGS)
    _started(strategy)
    strategy.restore(file.read_bytes(), _searched()[1])
    strategy.ask()


def _read_settings(file: Path) -> None:
    Folder(file.parent).begin({"episodes": 4, "kernels": ["softmax:4x8"]})


def _read_log(file: Path) -> None:
    rows = Folder(file.parent).rows(EPISODES)
    TrainingDisplay(Console(file=StringIO()), ["softmax:4x8"], "s", EPISODES, rows).table()
    page(rows, ["softmax:4x8"], [[]], "s", {})


def _read_vectors(file: Path) -> None:
    kept = Kept("a", 4, file.parent)
    vector = numpy.ones(4, numpy.float32)
    assert all((found == vector).all() for found in kept.of(["x", "y"]).values()), "another vector than was kept"
    kept.add({"z": vector})


def _vectors() -> bytes:
    with TemporaryDirectory() as folder:
        kept = Kept("a", 4, Path(folder))
        kept.add(dict.fromkeys(("x", "y"), numpy.ones(4, numpy.float32)))
        # Closing moves everything from the log into the file.
        del kept
        return (Path(folder) / "embeddings.sqlite").read_bytes()


def _of_training(read: Callable[[Folder], Path]) -> bytes:
    with TemporaryDirectory() as name:
        return read(Folder(Path(name))).read_bytes()


def _written_log(folder: Folder) -> Path:
    folder.rows(0)
    for row in _trained()[1]:
        folder.add(row)
    return folder.path / "log.csv"


def _written_settings(folder: Folder) -> Path:
    folder.begin({"episodes": 4, "kernels": ["softmax:4x8"]})
    return folder.path / "settings.json"


Reader = Callable[[Path], None]
FILES: Mapping[str, tuple[str, Reader, Callable[[], bytes]]] = {
    "checkpoint": ("checkpoint", _read_checkpoint, lambda: _trained()[0].save()),
    "policy": ("policy", _read_policy, lambda: _trained()[0].policy({})),
    "costs": ("costs", _read_costs, lambda: dump(Ranking(SIZE).state(), {"kind": KIND, "features": str(VERSION)})),
    "search": ("search", _read_search, lambda: _searched()[0]),
    "settings": ("settings.json", _read_settings, lambda: _of_training(_written_settings)),
    "log": ("log.csv", _read_log, lambda: _of_training(_written_log)),
    "vectors": ("embeddings.sqlite", _read_vectors, _vectors),
}
"""By form: the file's name, a reader, and a valid file. The reader raises PdojoError if it refuses the file."""


@cache
def stored(form: str) -> bytes:
    """A valid file."""
    return FILES[form][2]()


def read_stored(form: str, data: bytes) -> None:
    """Read a file as pdojo does, in a folder of its own. Raises PdojoError if it is refused."""
    name, read, _ = FILES[form]
    with TemporaryDirectory(prefix="pdojo-fuzz-") as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        read(path)


# Damage


def damaged(form: str, random: Random) -> bytes:
    """A valid file with some damage; in trees of tensors often damage that leaves the frame intact."""
    data = stored(form)
    if data[8:9] != b"{" or random.random() < 0.3:
        return damaged_bytes(data, random)
    size = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    stamps = header["__metadata__"]
    match random.randrange(4):
        case 0 | 1:
            tree = json.loads(stamps["tree"])
            _replace(tree, random)
            stamps["tree"] = json.dumps(tree)
        case 2:
            stamps[random.choice(list(stamps))] = random.choice(_STAMPS)
        case _:
            entry = header[random.choice([name for name in header if name != "__metadata__"])]
            what = random.choice(list(_ENTRIES))
            entry[what] = random.choice(_ENTRIES[what])
    raw = json.dumps(header).encode()
    return len(raw).to_bytes(8, "little") + raw + body


def _replace(tree: Any, random: Random) -> None:
    """Replace, delete or repeat something in a tree."""
    place, key = tree, next(iter(tree))
    for _ in range(random.randrange(12)):
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner:
            break
        place = cast("Any", inner)
        key = random.choice(list(place)) if isinstance(inner, dict) else random.randrange(len(place))
    match random.randrange(4):
        case 0:
            del place[key]
        case 1 if isinstance(place, list):
            items = cast("list[object]", place)
            items.insert(cast("int", key), random.choice(items))
        case _:
            place[key] = random.choice(_VALUES)
