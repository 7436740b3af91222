"""`pdojo-train`: agents over several kernels, and cost models over the database."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from math import inf, log
from pathlib import Path
from random import Random

import numpy
import pytest
from pdojo_tools.train import main

from cluster_alone import needs_ray, processors_alone
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import print_notation
from pdojo.errors import UsageError
from pdojo.kernels import workload
from pdojo.passes.scheduled_kernel import assume_alignment
from pdojo.perfllm.archive import Archive
from pdojo.perfllm.encoders import StructureEncoder
from pdojo.perfllm.policy import load_policy
from pdojo.perfllm.ranking import RankedSample, Ranking, spearman
from pdojo.perfllm.screening import Screen
from pdojo.perfllm.settings import Settings
from pdojo.perfllm.training.episodes import EpisodeAction
from pdojo.perfllm.training.kernels import TrainingKernel
from pdojo.perfllm.training.players import Here, OnRay, Players, Processes
from pdojo.perfllm.training.trainer import EpisodeRow, Trainer, came
from pdojo.search.contract.candidates import legal_candidates
from pdojo.search.contract.evaluation import Candidate, Computing
from pdojo.search.database import Database, Problem
from pdojo.search.database.measured import measured_programs
from pdojo.search.environment.actions import actions_of
from pdojo.search.environment.rules import Rules
from pdojo.search.evaluators.cluster import Connection
from pdojo.search.evaluators.named import make_evaluator
from pdojo.search.features.structure import SIZE
from pdojo.search.strategies import strategy
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("safetensors", reason="safetensors is not installed")
MACHINE = machine("x86-64-avx2")
SETTINGS = Settings(horizon=4, successors=4, batch=8, updates=2, sync=5, width=16, epsilon_first=0.8)
SHORT = "horizon=3,successors=3,batch=4,updates=1,width=8"


def kernels(*titles: str) -> list[TrainingKernel]:
    """Library kernels whose programs the analytical model judges."""
    made: list[TrainingKernel] = []
    for title in titles:
        named = workload(title)
        text = print_notation(assume_alignment(named.instantiate(), None))
        made.append(TrainingKernel(title, text, MACHINE, "analytical", named, None, 0))
    return made


TWO = ("softmax:4x8", "add:8x8")


def facts(rows: Sequence[EpisodeRow]) -> list[EpisodeRow]:
    """The rows without times."""
    return [replace(row, drawing=0.0, evaluating=0.0, learning=0.0) for row in rows]


def trained(trainer: Trainer, players: Players | None = None) -> list[EpisodeRow]:
    made = players or Here(trainer.kernels, trainer.settings, 1)
    try:
        return facts(list(trainer.run(made)))
    finally:
        made.close()


def test_a_training_repeats_whoever_plays() -> None:
    one = Trainer(kernels(*TWO), SETTINGS, 1, 4, parallel=2)
    other = Trainer(kernels(*TWO), SETTINGS, 1, 4, parallel=2)
    rows = trained(one)
    assert rows == trained(other, Processes(other.kernels, SETTINGS, 1, 2))
    assert one.save() == other.save()
    assert [row.kernel for row in rows] == [*TWO] * 2
    assert rows[:2] != trained(Trainer(kernels(*TWO), SETTINGS, 2, 2, parallel=2))[:2]


@needs_ray
def test_workers_of_a_cluster_play() -> None:
    """They play the same episodes; one that was killed is replaced."""
    one, other = (Trainer(kernels(*TWO), SETTINGS, 1, 4, parallel=2) for _ in range(2))
    with processors_alone(), Connection("local") as connection:
        players = OnRay(connection, other.kernels, SETTINGS, 1, 2)
        connection.ray.kill(players.actors[1])
        assert trained(other, players) == trained(one)


def test_a_process_that_dies_is_replaced() -> None:
    one, other = (Trainer(kernels(*TWO), SETTINGS, 1, 2, parallel=2) for _ in range(2))
    players = Processes(other.kernels, SETTINGS, 1, 1)
    rows = players.play([other._order(0)], None)  # pyright: ignore[reportPrivateUsage]
    next(rows)
    for process in players.pool.processes:
        os.kill(process, signal.SIGKILL)
    assert trained(other, players) == trained(one)


def test_a_training_goes_on() -> None:
    whole = trained(Trainer(kernels(*TWO), SETTINGS, 1, 6))
    trainer = Trainer(kernels(*TWO), SETTINGS, 1, 6)
    made = Here(trainer.kernels, SETTINGS, 1)
    first = facts(list(islice(trainer.run(made), 3)))
    saved = trainer.save()
    later = Trainer(kernels(*TWO), SETTINGS, 1, 6)
    later.restore(saved)
    assert [*first, *trained(later)] == whole
    made.close()


def test_the_best_moves_lead_to_the_best_cost() -> None:
    trainer = Trainer(kernels("softmax:4x8"), SETTINGS, 1, 12)
    rows = trained(trainer)
    assert rows[-1].best > 1
    kernel = trainer.kernels[0]
    state, prices = kernel.game(), kernel.prices()
    (best, *others) = trainer.archives[0].elites
    assert not state.become(map(Move.parse, best.path[-1]))
    assert state.fingerprint == best.fingerprint
    assert prices.cost(state).cost == best.cost == rows[-1].cost
    assert [one.cost for one in others] == sorted(one.cost for one in others)
    prices.close()


def test_demonstrations_come_first() -> None:
    """The agent remembers each move that it is shown, and its best is at least what the moves reach."""
    kernel = kernels("softmax:4x8")[0]
    state, random = kernel.game(), Random(3)
    for _ in range(5):
        state.apply(next(iter(legal_candidates(state.program, random))).move)
    moves = tuple(str(step.resolved) for step in state.trace.steps)
    trainer = Trainer([kernel], SETTINGS, 1, 3, shown=[[moves]])
    rows = trained(trainer)
    assert [row.is_shown for row in rows] == [True, False, False]
    assert rows[0].actions == 5
    prices = kernel.prices()
    assert rows[-1].cost <= prices.cost(state).cost
    prices.close()


def test_values_that_should_be() -> None:
    actions = [EpisodeAction((), "", 1.0, "", reward, 0.0) for reward in (1.0, 4.0, 2.0)]
    mine = Settings(discount=0.5)
    assert came(actions, mine) == [2.0, 4.0, 2.0]
    assert came(actions, replace(mine, target="sum")) == [3.5, 5.0, 2.0]
    assert came(actions, replace(mine, target="one-step")) == [1.0, 4.0, 2.0]


def test_an_archive_keeps_the_cheapest() -> None:
    archive: Archive[int] = Archive(2)
    assert archive.prefix(Random(1)) == ()
    for cost, name, path in ((3.0, "c", [1, 2, 3]), (1.0, "a", [1, 2]), (2.0, "b", [4]), (3.0, "d", [5])):
        archive.add(cost, name, path)
    assert [one.fingerprint for one in archive.elites] == ["a", "b"]
    # The shorter way to a known program replaces the longer one, and no other.
    archive.add(1.0, "a", [9])
    archive.add(1.0, "a", [7, 8])
    assert archive.elites[0].path == (9,)
    random = Random(2)
    drawn = [archive.prefix(random) for _ in range(400)]
    assert set(drawn) == {(), (9,), (4,)}
    assert drawn.count((9,)) > 1.5 * drawn.count((4,))


def test_an_archive_without_progress_begins_anew() -> None:
    """Alone twice, then together with the champions. Programs that are no faster than the plain one count, too."""
    archive: Archive[int] = Archive(4, patience=3, below=10.0)
    numbers = iter(range(100))

    def tell(*costs: float) -> list[float]:
        for cost in costs:
            archive.tell(cost, str(next(numbers)), [0])
        return [one.cost for one in archive.elites]

    assert tell(12.0, 9.0, 8.0, 8.5, inf) == [8.0, 8.5, 9.0]
    assert archive.waited == 2
    assert tell(8.0) == []
    assert tell(12.0, 12.0, 12.0, 12.0) == []
    assert tell(7.0, 12.0, 12.0, 12.0) == [7.0, 8.0]
    assert tell(6.0, 9.0, 9.5, 12.0) == []
    assert [one.cost for one in archive.champions] == [8.0, 7.0, 6.0]


# The tool


def run(folder: Path, *arguments: str) -> int:
    return main(
        [
            "agent", *TWO, "--machine", "x86-64-avx2", "--evaluator", "analytical", "--agent", SHORT, "-o", str(folder),
            *arguments,
        ]
    )  # fmt: skip


def log_of(folder: Path) -> list[list[str]]:
    """The log without times."""
    rows = list(csv.reader((folder / "log.csv").read_text().splitlines()))
    return [row[:-3] for row in rows]


def test_the_tool_writes_policy_report_and_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "out", "--episodes", "6", "--demonstrations", "pass") == 0
    said = capsys.readouterr().out
    assert "softmax:4x8" in said
    assert len(log_of(tmp_path / "out")) == 7
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("<svg") == 5
    assert "http" not in page.replace("http-equiv", "")
    assert (tmp_path / "out" / "traces" / "softmax-4x8.trace").exists()
    # The policy begins a search of another kernel; its file is part of what identifies the run.
    made = strategy("perfllm", 10, Settings.parse(f"{SHORT},policy={tmp_path / 'out' / 'policy'}").to_json())
    assert made.settings["policy"] not in ("", str(tmp_path / "out" / "policy"))


def test_a_killed_training_goes_on(tmp_path: Path) -> None:
    assert run(tmp_path / "whole", "--episodes", "10") == 0
    script = (
        "from pdojo_tools.training import session; session.SAVE_EVERY = 0.0\n"
        "import sys; from pdojo_tools.train import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [
        sys.executable, "-c", script, "agent", *TWO, "--machine", "x86-64-avx2", "--evaluator", "analytical",
        "--agent", SHORT, "-o", str(tmp_path / "killed"), "--episodes", "10",
    ]  # fmt: skip
    log = tmp_path / "killed" / "log.csv"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        end = time.monotonic() + 60
        while time.monotonic() < end and process.poll() is None:
            if log.exists() and len(log.read_text().splitlines()) > 4:
                break
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    assert subprocess.run(command, stdout=subprocess.DEVNULL, timeout=120, check=False).returncode == 0
    assert log_of(tmp_path / "killed") == log_of(tmp_path / "whole")


def test_a_folder_of_another_training_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "out", "--episodes", "2") == 0
    assert run(tmp_path / "out", "--episodes", "3") == 2
    assert "has another training: episodes was 2 and is 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["agent", "softmax:4x8", "softmax:4x8"], "is given twice"),
        (["agent", "nothing:4"], "nothing"),
        (["agent", "softmax:4x8", "--agent", "horizon=x"], "'horizon' takes a whole number"),
        (["agent", "softmax:4x8", "--agent", "policy=nowhere"], "cannot read the policy 'nowhere'"),
        (["agent", "softmax:4x8", "--demonstrations", "me"], "unknown source 'me'"),
        (["costs", "--machine", "snitch", "--evaluator", "cycles", "--database", "none.sqlite"], "no database"),
        ([], "COMMAND"),
    ],
)
def test_mistakes(arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["-o", str(tmp_path / "out")] if arguments else []
    machine_too = ["--machine", "x86-64-avx2", "--evaluator", "analytical"] if "agent" in arguments else []
    assert main([*arguments, *machine_too, *where]) in (1, 2)
    assert message in capsys.readouterr().err


def test_names_are_no_markup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "[").mkdir()
    Path("[/foo].pdojo").write_text(print_notation(workload("relu:4").instantiate()))
    arguments = ["agent", "[/foo].pdojo", "-o", "[red]", "--machine", "toy", "--evaluator", "analytical"]
    assert main([*arguments, "--episodes", "1", "--agent", "horizon=1,successors=1,width=4"]) == 0
    said = capsys.readouterr().out
    assert "[/foo].pdojo" in said
    assert "policy: [red]/policy" in said


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("settings.json", b"[1]", "it holds no settings"),
        ("settings.json", b"[" * 5000, "cannot go on from"),
        ("log.csv", b"episode\n\xff\n", "cannot go on from"),
        ("log.csv", b"episode\n" + b"x" * 200_000, "cannot go on from"),
        ("checkpoint", b"", "cannot go on from"),
    ],
)
def test_a_damaged_folder_is_named(
    name: str, content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--episodes", "1") == 0
    (tmp_path / name).write_bytes(content)
    assert run(tmp_path, "--episodes", "1") == 2
    said = capsys.readouterr().err
    assert message in said
    assert "remove the folder to begin again" in said
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    assert run(tmp_path, "--episodes", "1") == 2
    assert "a pipe, a socket or a device" in capsys.readouterr().err


# Policies


def test_a_policy_is_one_of_its_agent(tmp_path: Path) -> None:
    assert run(tmp_path / "out", "--episodes", "2") == 0
    path = str(tmp_path / "out" / "policy")
    mine = Settings.parse(SHORT)
    name = StructureEncoder(MACHINE).name
    assert load_policy(path, mine, name, SIZE)["net"]
    with pytest.raises(UsageError, match="has the shape '8 wide, dueling, target max', and this agent '9 wide"):
        load_policy(path, replace(mine, width=9), name, SIZE)
    with pytest.raises(UsageError, match="has the encoder 'structure"):
        load_policy(path, mine, "hf:other", SIZE)
    for other in ((tmp_path / "out" / "checkpoint").read_bytes(), b"no such file", b""):
        (tmp_path / "other").write_bytes(other)
        with pytest.raises(UsageError, match="other' is no policy of pdojo"):
            load_policy(str(tmp_path / "other"), mine, name, SIZE)
        with pytest.raises(UsageError, match="other' is no cost model of pdojo"):
            Screen(str(tmp_path / "other"))


# Cost models


def measured(path: Path, titles: Sequence[str], count: int) -> None:
    """Random programs of some kernels with their costs by the analytical model, in a database."""
    with Database(path) as database:
        for kernel in kernels(*titles):
            start = kernel.game()
            evaluator = make_evaluator("analytical", MACHINE, start.plain, 0)
            memory = database.memory(Problem.of(start, kernel.workload), evaluator)
            random, game = Random(kernel.title), start
            for number in range(count):
                if number % 6 == 0:
                    game = start.fork()
                game.apply(next(iter(legal_candidates(game.program, random))).move)
                assert isinstance(evaluator, Computing)
                (found,) = evaluator.evaluate([Candidate.of(game)])
                memory.keep(game.text, game.trace, found)
            evaluator.close()


def test_a_cost_model_ranks_kernels_that_it_has_not_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, model = tmp_path / "search.sqlite", tmp_path / "costs"
    measured(path, ("softmax:4x8", "add:8x8", "relu:16x4", "mul:8x8", "layernorm:4x8"), 28)
    with Database(path) as database:
        found = measured_programs(database, MACHINE.name, "analytical")
        assert measured_programs(database, "snitch", "analytical") == []
    assert len({one.problem for one in found}) == 5
    assert len({(one.problem, one.text) for one in found}) == len(found) > 100
    arguments = ["--database", str(path), "--machine", MACHINE.name, "--evaluator", "analytical"]
    assert main(["costs", *arguments, "-o", str(model), "--updates", "300"]) == 0
    said = capsys.readouterr().out
    assert float(said.split("programs: ")[1].split()[0]) > 0.3
    # It chooses among what is drawn: most of what it keeps is what it ranks first.
    game = Game(workload("maxpool:1x2x8x8x3").instantiate(), MACHINE)
    drawn = actions_of(game, Rules(24), Random(1))
    vectors = dict(zip([d.fingerprint for d in drawn], StructureEncoder(MACHINE).encode(drawn), strict=True))
    screen = Screen(str(model))
    kept = screen.kept(drawn, vectors, 8, Random(2))
    assert kept[0] is drawn[0]
    assert len(kept) == 9
    assert len({id(one) for one in kept}) == 9
    predicted = screen.ranking.costs([vectors[one.fingerprint] for one in drawn[1:]])
    limit = sorted(predicted)[5]
    assert sum(predicted[drawn.index(one) - 1] <= limit for one in kept[1:]) >= 6
    assert screen.kept(drawn[:5], vectors, 8, Random(2)) == drawn[:5]


def test_too_few_programs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "search.sqlite"
    measured(path, ("add:8x8",), 5)
    arguments = ["--database", str(path), "--machine", MACHINE.name, "--evaluator", "analytical"]
    assert main(["costs", *arguments, "-o", str(tmp_path / "costs")]) == 2
    assert "a cost model needs 100" in capsys.readouterr().err
    assert not (tmp_path / "costs").exists()


def test_a_cost_model_of_other_features_is_refused(tmp_path: Path) -> None:
    from pdojo.perfllm.screening import KIND
    from pdojo.perfllm.storing import dump

    (tmp_path / "costs").write_bytes(dump(Ranking(4).state(), {"kind": KIND, "features": "1"}))
    with pytest.raises(UsageError, match="knows version 1 of the features"):
        Screen(str(tmp_path / "costs"))
    with pytest.raises(UsageError, match="'screen' is a model of the encoder 'structure'"):
        Settings(screen="x", encoder="hf:y")


def test_a_ranking_learns_what_kernels_share() -> None:
    """Costs of kernels differ by constants, which the ranking need not know."""
    generator = numpy.random.default_rng(1)

    def samples(kernel: int, count: int) -> list[RankedSample]:
        found = generator.normal(size=(count, 4)).astype(numpy.float32)
        return [RankedSample(str(kernel), row, 100.0 * kernel + log(1 + abs(float(row[1])))) for row in found]

    held = samples(9, 60)
    ranking = Ranking(4, 3)
    before = ranking.correlation(held)
    found = ranking.fit([one for k in range(4) for one in samples(k, 80)], held, 300, Random(2))
    assert max(found) > 0.9 > before
    again = Ranking.from_state(json_free(ranking))
    assert again.costs([one.vector for one in held]) == ranking.costs([one.vector for one in held])


def json_free(ranking: Ranking) -> dict[str, object]:
    """The state after a round through a file."""
    from pdojo.perfllm.storing import dump, load

    return load(dump(ranking.state()), Ranking.schema(4))


def test_rank_correlation() -> None:
    assert spearman([1, 2, 3, 4], [10, 20, 30, 400]) == pytest.approx(1)
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 1, 1], [1, 2, 3]) == 0
    # By hand: ranks 0, 1.5, 1.5, 3 and 0, 1, 3, 2.
    assert spearman([1, 2, 2, 5], [1, 2, 9, 4]) == pytest.approx(0.6324555)
