"""Training of proposals: what moves are worth, files of lessons, examples, and the two designs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, inf, log
from pathlib import Path
from random import Random

import numpy
import pytest

import pdojo
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.errors import UsageError
from pdojo.perfllm.learner import Vector
from pdojo.perfllm.proposals.ablation import ablated
from pdojo.perfllm.proposals.examples import Example, examples_of
from pdojo.perfllm.proposals.kernels import random_texts
from pdojo.perfllm.proposals.learning import fit_network, gain, train_model
from pdojo.perfllm.proposals.lessons import HEADER, Lesson, add_lesson, read_lessons, write_lessons
from pdojo.search.contract.candidates import choices
from pdojo.search.contract.evaluation import Candidate, Evaluation
from pdojo.search.evaluators.analytical import Analytical
from pdojo.search.proposals.model import model_of
from pdojo.search.proposals.places import History, place_rows
from pdojo.search.proposals.questions import PARTS, Question, Vocabulary
from pdojo.search.proposals.scorers import Network, Scorer
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from pdojo.transforms.registry import transformation_names

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("safetensors", reason="safetensors is not installed")
MACHINE = pdojo.machine("x86-64-avx2")
SIZES = (3, 4)


def price(game: Game) -> Evaluation:
    (found,) = Analytical(MACHINE).evaluate([Candidate.of(game)])
    return found


def start(title: str = "reducesum:8x64") -> Game:
    kernel = parse_notation(print_notation(pdojo.load(title)))[0]
    return Game(kernel, MACHINE)


def moves_of(game: Game) -> list[Move]:
    return [step.resolved for step in game.trace.steps]


def lesson(title: str = "reducesum:8x64", cost: float | None = None) -> Lesson:
    """A vectorised program, and what each of its moves is worth."""
    game = start(title)
    tile = next(move for move in game.moves() if move.name == "tile_scope" and dict(move.params)["size"] == 8)
    game.apply(tile)
    found = ablated(start(title), moves_of(game), price, 9.0)
    assert found is not None
    plain = price(start(title)).cost
    texts = tuple(map(str, moves_of(game)))
    text = print_notation(start(title).plain)
    return Lesson(title, "round 0, seed 0", text, MACHINE.name, "analytical", texts, (1.0,), plain, cost or found.cost)


# Ablation


def test_a_move_is_worth_what_is_lost_without_it() -> None:
    """Losses are those of an independent replay of the other moves; idle moves are gone."""
    game, random = start("softmax:8x32"), Random(4)
    for _ in range(14):
        game.apply(random.choice(list(game.moves())))
    found = ablated(start("softmax:8x32"), moves_of(game), price, 2.0)
    assert found is not None
    assert len(found.moves) < 14
    assert found.cost <= price(game).cost * 1.005**14
    for at, (_, loss) in enumerate(zip(found.moves, found.losses, strict=True)):
        other = start("softmax:8x32")
        other.become([move for k, move in enumerate(found.moves) if k != at])
        cost = price(other).cost
        assert loss == pytest.approx(min(2.0, max(0.0, log(cost / found.cost))))
        assert cost > found.cost


def test_failures_count_as_the_loss_of_all_moves() -> None:
    game = start()
    move = next(iter(game.moves()))
    game.apply(move)
    whole = game.fingerprint

    def only_whole(state: Game) -> Evaluation:
        return Evaluation(2.0) if state.fingerprint == whole else Evaluation.failed("Crash", {})

    found = ablated(start(), [*moves_of(game)], only_whole, 1.5)
    assert found is not None
    assert found.losses == [1.5]
    assert ablated(start(), moves_of(game), lambda _: Evaluation(inf, "Crash"), 1.5) is None


# Files


def test_lessons_are_kept(tmp_path: Path) -> None:
    path, known = tmp_path / "lessons", [lesson(), lesson("softmax:8x32")]
    assert read_lessons(path) == []
    write_lessons(path, known[:1])
    add_lesson(path, known[1])
    assert read_lessons(path) == known
    # A process was killed while it wrote.
    with path.open("a") as file:
        file.write(known[0].dump()[:50])
    assert read_lessons(path) == known


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (HEADER, "{}"),
        ('"cost":', '"price":'),
        ('"losses":[1.0]', '"losses":[1.0,2.0]'),
        ('"losses":[1.0]', '"losses":[NaN]'),
        ('"losses":[1.0]', '"losses":["1"]'),
        ("tile_scope@", "tile scope@"),
        ('"machine":"x86-64-avx2"', '"machine":7'),
        ('{"kernel"', '["kernel"'),
    ],
)
def test_wrong_lessons_are_refused(old: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "lessons"
    write_lessons(path, [lesson()])
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(UsageError, match=r"lessons"):
        read_lessons(path)


# Examples


def test_moves_answer_the_questions() -> None:
    """The alternative called right has the features of the lesson's move in its state."""
    known = Vocabulary(transformation_names())
    taught = lesson()
    found = examples_of([taught], MACHINE, known, Random(1))
    by_part = {example.part: example for example in found}
    game, move = start(), Move.parse(taught.moves[0])
    family = by_part["family"]
    column = 3 + known.column(move.name)
    assert family.asked.items[family.answer, column] == 1
    assert family.asked.items[:, column].sum() == 1
    place = by_part["place"]
    assert place.answer == 0
    right = [choice for choice in choices(game.program, [move.name]) if choice.move == move]
    assert (place_rows(game.program, right, History(()))[0] == place.asked.items[0]).all()
    assert {example.family for example in found} == {"reducesum"}


def test_slow_lessons_and_idle_moves_teach_nothing() -> None:
    known = Vocabulary(transformation_names())
    good = lesson()
    slow = lesson(cost=2 * good.cost)
    weights = [example.weight for example in examples_of([good, good], MACHINE, known, Random(1))]
    assert weights == pytest.approx([0.5] * len(weights))
    assert len(examples_of([good, slow], MACHINE, known, Random(1))) == len(weights) / 2


# Designs


def chosen(count: int, seed: int, weights: Vector) -> list[Example]:
    """Choices by a known rule: a softmax of one product of a context's and an item's feature, and one feature."""
    random = numpy.random.default_rng(seed)
    found: list[Example] = []
    for number in range(count):
        context = random.normal(size=SIZES[0]).astype(numpy.float32)
        items = random.normal(size=(6, SIZES[1])).astype(numpy.float32)
        scores = weights[0] * items[:, 0] + weights[1] * numpy.sign(context[0]) * items[:, 1]
        likely = numpy.exp(scores) / numpy.exp(scores).sum()
        answer = int(random.choice(6, p=likely))
        found.append(Example("place", Question(context, items), answer, 1.0, f"kernel{number % 8}"))
    return found


def best_gain(examples: Sequence[Example], weights: Vector) -> float:
    """The gain of the rule itself."""
    found = 0.0
    for example in examples:
        context, items = example.asked.context, example.asked.items
        scores = weights[0] * items[:, 0] + weights[1] * numpy.sign(context[0]) * items[:, 1]
        found += float(scores[example.answer]) - log(sum(exp(score) for score in scores.tolist())) + log(6)
    return found / len(examples)


def test_both_designs_learn_a_rule() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from pdojo.perfllm.proposals.boosting import fit_trees

    weights = numpy.array([2.0, 2.0], dtype=numpy.float32)
    learned, tested = chosen(900, 1, weights), chosen(300, 2, weights)
    most = best_gain(tested, weights)
    scorers: list[Scorer] = [fit_network(learned, tested, SIZES, 0, epochs=30)[2]]
    scorers += [trees for _, trees in fit_trees(learned, SIZES, (40,), 0)]
    for scorer in scorers:
        assert 0.5 * most < gain(scorer, tested) < 1.1 * most


def test_training_repeats(tmp_path: Path) -> None:
    """Equal lessons give equal models, and a model answers better than a uniform draw what it was taught."""
    known = Vocabulary(transformation_names())
    taught = [lesson(title) for title in ("reducesum:8x64", "relu:8x64", "copy:8x64")]
    # Positions need traces of two moves.
    taught = [replace(each, moves=each.moves * 2, losses=(1.0, 1.0)) for each in taught]
    examples = examples_of(taught, MACHINE, known, Random(1))
    one, reports = train_model(examples, known, "network", 3, {"machine": MACHINE.name})
    other, _ = train_model(examples, known, "network", 3, {})
    assert model_of(one).identity == model_of(other).identity
    assert [report.part for report in reports] == list(PARTS)
    assert all(report.gain > 0 and not report.is_tested for report in reports if report.part != "position")
    assert all(isinstance(part, Network) for part in model_of(one).parts.values())
    with pytest.raises(UsageError, match="no examples"):
        train_model([], known, "network", 3, {})


def test_random_kernels_are_plain_and_repeat() -> None:
    for name in ("snitch", "x86-64-avx2"):
        machine = pdojo.machine(name)
        texts = [text for _, text in zip(range(4), random_texts(machine, 5), strict=False)]
        assert texts == [text for _, text in zip(range(4), random_texts(machine, 5), strict=False)]
        for _, text in texts:
            game = Game(parse_notation(text)[0], machine)
            assert {scope.mapping.value for scope in game.program.nest.scopes} == {"seq"}
        assert len({text for _, text in texts}) == 4
