"""Learned proposals: features of places, scorers, files of models, and draws by a model."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from itertools import islice
from math import exp
from pathlib import Path
from random import Random
from typing import Any

import numpy
import pytest

import pdojo
from pdojo.budget import Budget
from pdojo.errors import UsageError
from pdojo.search.contract.candidates import choices
from pdojo.search.contract.neighbourhood import near_after
from pdojo.search.database import Database
from pdojo.search.engine import executor, resuming
from pdojo.search.engine.search import search
from pdojo.search.environment.actions import actions_of
from pdojo.search.environment.rules import Rules
from pdojo.search.neighbourhoods import neighbourhood
from pdojo.search.neighbourhoods.drawing import UNIFORM, Learned, Mixture, each_legal, first_legal
from pdojo.search.neighbourhoods.mutate import Mutate
from pdojo.search.neighbourhoods.random_moves import useful
from pdojo.search.proposals.model import ProposalModel, model_of
from pdojo.search.proposals.places import SIZE, History, place_rows
from pdojo.search.proposals.questions import PARTS, Question, Vocabulary, position_question
from pdojo.search.proposals.scorers import FARTHEST, Network, Trees
from pdojo.search.strategies import strategy
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from pdojo.transforms.registry import transformation_names
from proposal_models import network_arrays, random_model, stored_model, tree_arrays
from search_games import TextCosts, facts, start

pytest.importorskip("safetensors", reason="safetensors is not installed")
SIZES = (7, 5)
KERNELS = (("softmax:8x16", "x86-64-avx2"), ("cumsum:4x8", "snitch"), ("maxpool:1x1x6x6x3,S=1,P=1", "x86-64-avx512"))


def walked(title: str, machine: str, seed: int, steps: int = 12) -> Game:
    """A state after random legal moves."""
    game, random = Game(pdojo.load(title), pdojo.machine(machine)), Random(seed)
    for _ in range(steps):
        choice = next(each_legal(UNIFORM, game.program, (), random), None)
        if choice is None:
            break
        game.apply(choice.move)
    return game


def before(game: Game) -> list[Move]:
    return [step.resolved for step in game.trace.steps]


def model(design: str = "network", seed: int = 3) -> ProposalModel:
    return model_of(random_model(seed, design))


# Features


@pytest.mark.parametrize(("title", "machine"), KERNELS)
@pytest.mark.parametrize("seed", range(3))
def test_places_have_finite_features(title: str, machine: str, seed: int) -> None:
    game = walked(title, machine, seed)
    some = choices(game.program)
    rows = place_rows(game.program, some, History(before(game)))
    assert rows.shape == (len(some), SIZE)
    assert numpy.isfinite(rows).all()
    assert place_rows(game.program, [], History(())).shape == (0, SIZE)


def test_features_tell_places_and_parameters_apart() -> None:
    game = walked("matmul:8x16x32", "x86-64-avx2", 0, 0)
    some = choices(game.program, ["tile_scope"])
    rows = {tuple(row) for row in place_rows(game.program, some, History(())).tolist()}
    assert len(rows) > 0.7 * len(some)


def test_features_show_what_was_moved_there_before() -> None:
    game = walked("matmul:8x16x32", "x86-64-avx2", 0, 0)
    tiled = next(choice for choice in choices(game.program, ["tile_scope"]) if choice.is_legal(game.program))
    fresh, again = (place_rows(game.program, [tiled], History(moves)) for moves in ((), (tiled.move,)))
    assert (fresh != again).sum() >= 5


def test_accesses_that_are_invariant_or_contiguous_are_seen() -> None:
    """Over the inner loop of a sum of rows, loads are contiguous and the sum stays in place."""
    game = Game(pdojo.load("reducesum:8x32"), pdojo.machine("x86-64-avx2"))
    inner = next(scope for scope in game.program.nest.scopes if scope.extent == 32 and scope.leaves[0].accumulate)
    (row,) = place_rows(
        game.program,
        [choice for choice in choices(game.program, ["unroll"]) if choice.site is inner],
        History(()),
    )
    loads, stores = row[4 + 24 + 9 :][:3], row[4 + 24 + 9 :][3:6]
    assert loads[:2].tolist() == [0, 1]
    assert stores[:2].tolist() == [1, 0]


def test_unknown_families_share_a_feature() -> None:
    known = Vocabulary(["unroll"])
    assert known.column("unroll") != known.column("of another package") == known.column("of a third one")
    asked = position_question([Move("of another package", "t")], known)
    assert asked.items.shape[0] == 2
    assert asked.context.shape[0], asked.items.shape[1] == known.sizes("position")


# Scorers


def question(seed: int, count: int = 6) -> Question:
    random = numpy.random.default_rng(seed)
    return Question(
        random.normal(size=SIZES[0]).astype(numpy.float32), random.normal(size=(count, SIZES[1])).astype(numpy.float32)
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_network_scores_like_its_definition(seed: int) -> None:
    arrays, asked = network_arrays(seed, SIZES), question(seed)
    for item, score in zip(asked.items, Network(arrays, SIZES).scores(asked), strict=True):
        values = [*asked.context.tolist(), *item.tolist()]
        hidden = arrays["bias"].tolist()
        for k, value in enumerate(values):
            scaled = min(FARTHEST, max(-FARTHEST, (value - float(arrays["mean"][k])) * float(arrays["scale"][k])))
            hidden = [h + scaled * float(w) for h, w in zip(hidden, arrays["first"][k], strict=True)]
        expected = sum(max(0.0, h) * float(w) for h, w in zip(hidden, arrays["second"], strict=True))
        assert abs(float(score) - expected) < 1e-4 * (1 + abs(expected))


@pytest.mark.parametrize("seed", range(5))
def test_trees_score_like_their_definition(seed: int) -> None:
    arrays, asked = tree_arrays(seed, SIZES), question(seed)
    for item, score in zip(asked.items, Trees(arrays, SIZES).scores(asked), strict=True):
        values, expected = [*asked.context.tolist(), *item.tolist()], 0.0
        for tree in range(len(arrays["feature"])):
            node = 0
            while arrays["left"][tree, node] != node:
                side = "left" if values[arrays["feature"][tree, node]] <= arrays["threshold"][tree, node] else "right"
                node = int(arrays[side][tree, node])
            expected += float(arrays["value"][tree, node])
        assert abs(float(score) - expected) < 1e-4


def wrong_arrays() -> list[tuple[type[Network | Trees], dict[str, Any]]]:
    network, trees = network_arrays(0, SIZES), tree_arrays(0, SIZES)
    loop, far = trees["left"].copy(), trees["feature"].copy()
    loop[0, 1], far[0, 0] = 0, sum(SIZES)
    return [
        (Network, {**network, "first": network["first"][1:]}),
        (Network, {**network, "bias": numpy.full_like(network["bias"], numpy.nan)}),
        (Network, {**network, "second": numpy.full_like(network["second"], 1e30)}),
        (Network, {name: each for name, each in network.items() if name != "bias"}),
        (Network, trees),
        (Trees, {**trees, "left": loop}),
        (Trees, {**trees, "feature": far}),
        (Trees, {**trees, "value": trees["value"][1:]}),
        (Trees, {**trees, "right": trees["right"] + 100}),
        (Trees, {name: each[:0] for name, each in trees.items()}),
    ]


@pytest.mark.parametrize("number", range(len(wrong_arrays())))
def test_weights_that_do_not_fit_are_refused(number: int) -> None:
    design, arrays = wrong_arrays()[number]
    with pytest.raises(UsageError, match=r"^it"):
        design(arrays, SIZES)


# Files


@pytest.mark.parametrize("design", ["network", "trees"])
def test_a_file_keeps_a_model(design: str, tmp_path: Path) -> None:
    path = stored_model(tmp_path, 4, design).removeprefix("learned:")
    game = walked("softmax:8x16", "x86-64-avx2", 1)
    one, other = ProposalModel.load(path), model(design, 4)
    names = transformation_names()
    history = History(before(game))
    assert (one.families(game.program, history, names) == other.families(game.program, history, names)).all()
    assert one.identity == other.identity != model(design, 5).identity


def test_files_that_are_no_models_are_refused(tmp_path: Path) -> None:
    good = random_model(1)
    stamp = json.loads(good[8 : 8 + int.from_bytes(good[:8], "little")])["__metadata__"]
    wrong = [
        b"",
        b"text",
        good[:-7],
        pickle.dumps({"weights": 1}),
        good.replace(b"pdojo proposals", b"pdojo something"),
        good.replace(f'"features":"{stamp["features"]}"'.encode(), b'"features":"0.0"'),
        good.replace(b"network network network", b"network network another"),
        good.replace(b"network network network", b"network network trees  "),
        good.replace(b"tile_scope ", b"          "),
    ]
    path = tmp_path / "model"
    for data in wrong:
        assert data != good
        path.write_bytes(data)
        with pytest.raises(UsageError, match="has no proposals that can be used"):
            ProposalModel.load(str(path))
    with pytest.raises(UsageError, match="cannot read the proposals"):
        ProposalModel.load(str(tmp_path / "none"))


def test_names_of_proposals(tmp_path: Path) -> None:
    learned = stored_model(tmp_path)
    near = neighbourhood("mutate", learned, 40)
    assert isinstance(near, Mutate)
    assert near.mixture is not None
    assert near.settings["proposals"]["steps"] == 40
    assert "proposals" not in neighbourhood("mutate").settings
    for name, proposals in (("edges", learned), ("heuristic", learned), ("mutate", "learned:"), ("mutate", "best")):
        with pytest.raises(UsageError, match="proposals"):
            neighbourhood(name, proposals)


# Draws


@pytest.mark.parametrize("design", ["network", "trees"])
def test_candidates_are_drawn_with_the_probabilities_of_the_model(design: str) -> None:
    game = walked("softmax:8x16", "x86-64-avx2", 2)
    drawing, some = Learned(model(design)), choices(game.program, ["tile_scope"])[:8]
    scores = drawing.model.places(game.program, History(before(game)), "tile_scope", some)
    whole = sum(exp(score) for score in scores.tolist())
    random, draws = Random(5), 4000
    first = Counter(next(drawing.ordered(some, game.program, before(game), random)).move for _ in range(draws))
    for choice, score in zip(some, scores.tolist(), strict=True):
        expected = draws * exp(score) / whole
        assert abs(first[choice.move] - expected) < 5 * (expected + 1) ** 0.5
    assert {choice.move for choice in drawing.ordered(some, game.program, (), random)} == {c.move for c in some}
    positions = Counter(drawing.position(before(game), random) for _ in range(2000))
    assert min(positions) >= 0
    assert max(positions) <= len(before(game))


def test_draws_of_a_model_are_legal_and_complete() -> None:
    game = walked("softmax:8x16", "x86-64-avx2", 3, 6)
    drawing = Learned(model())
    wanted = {choice.move for choice in useful(choices(game.program), game.program) if choice.is_legal(game.program)}
    drawn = [choice.move for choice in each_legal(drawing, game.program, before(game), Random(1))]
    assert set(drawn) == wanted
    assert len(drawn) == len(wanted)
    assert first_legal(drawing, [], game.program, (), Random(1)) is None


def test_the_share_of_the_model_falls_with_the_evaluations() -> None:
    mixture = Mixture(model(), steps=100)
    assert mixture.share(0) == pytest.approx(0.8)
    assert mixture.share(50) == pytest.approx(0.5)
    assert mixture.share(100) == mixture.share(1000) == pytest.approx(0.2)
    near = Mutate(mixture=mixture)
    counts = [
        sum(near.after(evaluations).drawn(random) is UNIFORM for _ in range(1000))
        for evaluations, random in ((0, Random(1)), (100, Random(2)))
    ]
    assert abs(counts[0] - 200) < 80
    assert abs(counts[1] - 800) < 80
    uniform = Mutate()
    assert near_after(uniform, 7) is uniform


@pytest.mark.parametrize("design", ["network", "trees"])
def test_neighbours_repeat_and_differ_from_uniform_ones(design: str) -> None:
    game = walked("softmax:8x16", "x86-64-avx2", 4)
    near = Mutate(mixture=Mixture(model(design), first=1.0, last=1.0))
    copied = pickle.loads(pickle.dumps(near))
    made = [[each.neighbour(game, Random(seed)) for seed in range(8)] for each in (near, copied, Mutate())]
    one, same, uniform = ([None if found is None else found.text for found in row] for row in made)
    assert one == same != uniform
    nearest = [found.text for found in islice(near.nearest(game, Random(1)), 12)]
    assert nearest == [found.text for found in islice(copied.nearest(game, Random(1)), 12)]


@pytest.mark.parametrize("granularity", ["single", "everywhere", "both", "edits"])
def test_an_agent_is_offered_what_the_model_draws(granularity: str) -> None:
    game = walked("softmax:8x16", "x86-64-avx2", 5, 4)
    near = Mutate(mixture=Mixture(model()))
    rules = Rules(6, granularity)
    one, same, uniform = (
        [action.label for action in actions_of(game, rules, Random(3), near=each)] for each in (near, near, None)
    )
    assert one == same != uniform
    assert len(set(one)) == len(one) == 7


# Searches


def searched(name: str, learned: str, path: Path | None = None, stop: int | None = None, proposers: int = 1) -> Any:
    def listen(progress: Any) -> None:
        if stop is not None and progress.evaluations >= stop and not progress.doing:
            raise KeyboardInterrupt

    near = neighbourhood("mutate", learned, 30)
    with Database.in_memory() if path is None else Database(path) as database:
        return search(
            start(),
            TextCosts(),
            strategy(name, 30),
            near,
            Budget(30),
            3,
            database=database,
            listener=listen,
            proposers=proposers,
        )


@pytest.mark.parametrize("name", ["anneal", "evolve", "elites", "sample"])
def test_an_interrupted_search_by_a_model_goes_on(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resuming, "SAVE_EVERY", 0.0)
    monkeypatch.setattr(resuming, "SAVE_SHARE", 1e9)
    learned = stored_model(tmp_path)
    whole = searched(name, learned)
    path = tmp_path / "search.sqlite"
    for stop in (2, 21):
        searched(name, learned, path, stop)
    assert facts(searched(name, learned, path)) == facts(whole)
    assert facts(whole) != facts(searched(name, "uniform"))


def test_processes_draw_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learned = stored_model(tmp_path)
    alone = searched("evolve", learned)
    monkeypatch.setattr(executor, "ALONE", 0.0)
    assert facts(searched("evolve", learned, proposers=2)) == facts(alone)


def test_every_part_has_features() -> None:
    known = Vocabulary(transformation_names())
    assert all(min(known.sizes(part)) > 0 for part in PARTS)
