"""PerfLLM: what values are learned from, what the network may depend on, and the encoders."""

from __future__ import annotations

import builtins
import json
import shutil
import socket
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy
import pytest

from pdojo.dialect.machines.registry import machine
from pdojo.errors import UsageError
from pdojo.kernels import workload
from pdojo.passes.passes import run_pass
from pdojo.perfllm.encoders import StructureEncoder, encoder
from pdojo.perfllm.kept import Kept
from pdojo.perfllm.learner import Learner
from pdojo.perfllm.replay import STOP, Replay, ReplayedAction, Visit
from pdojo.perfllm.settings import EDITS, TARGETS, Settings, Target
from pdojo.search.contract.candidates import legal_candidates
from pdojo.search.environment.actions import Action, actions_of
from pdojo.search.environment.rules import Rules
from pdojo.search.features.structure import SIZE as FEATURES
from pdojo.search.features.structure import named_structure, structure
from pdojo.search.neighbourhoods.random_moves import useful
from pdojo.search.strategies import strategy
from pdojo.transforms.game import Game
from pdojo.transforms.legality.trials import rehearse

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
MACHINE = machine("x86-64-zen4")
SIZE = 6


def vectors(names: str, seed: int = 0) -> dict[str, numpy.ndarray]:
    drawn = numpy.random.default_rng(seed).normal(size=(len(names), SIZE)).astype(numpy.float32)
    return dict(zip(names, drawn, strict=True))


def learner(known: dict[str, numpy.ndarray], seed: int = 0, **settings: object) -> Learner:
    made = Learner(replace(Settings(width=32, batch=8), **settings), SIZE, seed)
    for vector in known.values():
        made.saw(vector)
    return made


# Targets


START, LEFT, PEAK = Visit("s", ("l",)), Visit("l", ("p",)), Visit("p", ())


def decayed(target: Target, reward: float, later: float, best: float) -> float:
    """The equations of the paper, by hand."""
    match target:
        case "max":
            return max(reward, 0.9 * min(later, best / 0.9))
        case "sum":
            return reward + 0.9 * later
        case "one-step":
            return reward


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("double", [False, True])
def test_targets_follow_the_equations(target: Target, *, double: bool) -> None:
    known = vectors("slpab")
    mine = learner(known, target=target, double=double, discount=0.9)
    mine.best = 1.5
    wide = Visit("l", ("p", "a", "b"))
    # The network and its older copy differ: what one chooses, the other judges.
    replay = Replay(100)
    for _ in range(20):
        replay.add(ReplayedAction(wide, 1 + Random(len(replay)).randrange(3), 1.0 + len(replay) % 3, None))
    for _ in range(20):
        mine.learn(replay, known, Random(3))
    now, older = mine.values(wide, known), mine.values_of_copy(wide, known)
    assert now != older
    chosen = now.index(max(now)) if double else older.index(max(older))
    batch = [
        ReplayedAction(START, 1, 0.7, wide),
        ReplayedAction(START, STOP, 1.1, None),
        ReplayedAction(wide, 2, 0.2, None),
    ]
    wanted = [decayed(target, 0.7, older[chosen], 1.5), 1.1, 0.2]
    assert mine.targets(batch, known).tolist() == pytest.approx(wanted, abs=1e-6)


def test_no_target_is_above_the_best_reward() -> None:
    """A network that promises too much is not believed: the maximum would never come down."""
    known = vectors("slp")
    mine = learner(known, discount=1.0, learning_rate=3e-3)
    replay = Replay(10)
    replay.add(ReplayedAction(LEFT, 1, 50.0, None))
    for _ in range(8):
        replay.add(ReplayedAction(LEFT, 1, 50.0, None))
    for _ in range(60):
        mine.learn(replay, known, Random(1))
    assert max(mine.values_of_copy(LEFT, known)) > 10
    mine.best = 2.0
    assert mine.targets([ReplayedAction(START, 1, 1.0, LEFT)], known).tolist() == [2.0]


REWARDS = {"s": 5.0, "l": -8.0, "p": 6.0}
"""Figure 7: the way to the best program leads through a bad one."""


def played(target: Target) -> Learner:
    """A learner after many random episodes of the toy: from s, stop, or go to l and on to p."""
    known = vectors("slp", seed=4)
    mine = learner(known, target=target, discount=1.0, learning_rate=3e-3, sync=10, seed=2)
    replay, random = Replay(200), Random(7)
    for state in (START, LEFT, PEAK):
        replay.add(ReplayedAction(state, STOP, REWARDS[state.state], None))
    for before, after in ((START, LEFT), (LEFT, PEAK)):
        replay.add(ReplayedAction(before, 1, REWARDS[after.state], after))
        replay.add(ReplayedAction(before, 1, REWARDS[after.state], after))
    for _ in range(10):
        replay.add(ReplayedAction(START, STOP, REWARDS["s"], None))
    mine.best = max(REWARDS.values())
    for _ in range(250):
        mine.learn(replay, known, random)
    return mine


@pytest.mark.parametrize(("target", "action"), [("max", 1), ("sum", 0), ("one-step", 0)])
def test_figure_7(target: Target, action: int) -> None:
    """Only the max-Bellman equation goes through the bad program to the best one: paper 3.2, Figure 7."""
    known = vectors("slp", seed=4)
    mine = played(target)
    values = mine.values(START, known)
    assert values.index(max(values)) == action
    # What they are: 6 against 5, or -8 + 6 + 6 (stopping there) against 5, or -8 against 5.
    if target == "max":
        assert values == pytest.approx([5, 6], abs=0.5)
    if target == "one-step":
        assert values == pytest.approx([5, -8], abs=0.5)


# The network


@pytest.mark.parametrize("dueling", [True, False])
def test_values_do_not_depend_on_the_order_of_offers(*, dueling: bool) -> None:
    known = vectors("sabcd")
    mine = learner(known, dueling=dueling)
    one = mine.values(Visit("s", ("a", "b", "c")), known)
    other = mine.values(Visit("s", ("c", "a", "b")), known)
    assert [one[0], *one[1:]] == pytest.approx([other[0], other[2], other[3], other[1]], abs=1e-6)


def test_values_do_not_depend_on_the_batch() -> None:
    """Shorter visits of a batch are padded: their values stay the same."""
    known = vectors("sabcd")
    mine = learner(known)
    short, long = Visit("s", ("a",)), Visit("a", ("b", "c", "d"))
    together = mine.values_of([short, long], known)
    assert together[0] == pytest.approx(mine.values(short, known), abs=1e-6)
    assert together[1] == pytest.approx(mine.values(long, known), abs=1e-6)


def test_stopping_differs_from_an_offer_without_effect() -> None:
    known = vectors("sa")
    known["a"] = known["s"]
    stop, move = learner(known).values(Visit("s", ("a",)), known)
    assert stop != move


def test_a_learner_is_restored() -> None:
    """A restored learner learns on as the one that was not stopped."""
    known = vectors("sab")
    replay = Replay(50)
    for k in range(30):
        replay.add(ReplayedAction(Visit("s", ("a", "b")), k % 3, float(k % 5), None))
    mine, random = learner(known), Random(5)
    for _ in range(60):
        mine.learn(replay, known, random)
    other = learner({}, seed=99)
    other.restore(mine.state())
    ahead = Random()
    ahead.setstate(random.getstate())
    for _ in range(5):
        mine.learn(replay, known, random)
        other.learn(replay, known, ahead)
    visit = Visit("s", ("a", "b"))
    assert mine.values(visit, known) == other.values(visit, known)


# Settings


def test_settings_survive_json() -> None:
    mine = Settings(target="sum", granularity="both", horizon=7)
    assert Settings.from_json(json.loads(json.dumps(mine.to_json()))) == mine


def test_granularities_have_defaults_of_their_own() -> None:
    mine = Settings.parse("successors=5,granularity=edits")
    assert (mine.successors, mine.horizon, mine.fresh) == (5, EDITS["horizon"], True)
    assert Settings.from_json(mine.to_json()) == mine
    for runs in ("both", "everywhere"):
        assert Settings.parse(f"granularity={runs}") == Settings(granularity=runs, horizon=16)
    assert Settings.parse("granularity=both,horizon=9").horizon == 9
    assert Settings.parse("target=sum") == Settings(target="sum")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"target": "min"}, "unknown target 'min'; known are max, sum, one-step"),
        ({"horizon": 0}, "'horizon' is at least 1, not 0"),
        ({"discount": 1.5}, "'discount' is from 0 to 1, not 1.5"),
        ({"patience": -1}, "'patience' is at least 0, not -1"),
        ({"horizons": 3}, "unknown setting 'horizons'; did you mean 'horizon'?"),
    ],
)
def test_senseless_settings_are_refused(data: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Settings.from_json(data)


def test_a_missing_pytorch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UsageError, match=r"needs PyTorch: pip install 'pdojo\[learn\]'"):
        strategy("perfllm")


# Offers and encoders


def states(kernel: str, seed: int, steps: int) -> list[Game]:
    """States of a random walk from the plain kernel, then from the pass's program."""
    random, found = Random(seed), list[Game]()
    for is_passed in (False, True):
        game = Game(workload(kernel).instantiate(), MACHINE)
        if is_passed:
            run_pass("heuristic", game)
        game = game.fork()
        for _ in range(steps):
            found.append(game.fork())
            game.apply(next(iter(legal_candidates(game.program, random))).move)
    return found


def test_moves_change_the_features() -> None:
    """Fewer than one legal move in a hundred leaves all structural features as they are."""
    same = total = 0
    for game in (*states("softmax:32x64", 1, 4), *states("matmul:16x32x16", 2, 4), *states("layernorm:16x64", 3, 3)):
        program = game.program
        before = structure(program.nest, MACHINE)
        random = Random(total)
        for choice, _ in zip(legal_candidates(program, random), range(24), strict=False):
            if useful([choice], program):
                after = rehearse(choice.transformation, program, choice.site)
                same += structure(after.nest, MACHINE) == before
                total += 1
    assert total > 200
    assert same < total / 100


def test_features_have_names_and_are_finite() -> None:
    for game in states("softmax:32x64", 8, 4):
        named = named_structure(game.program.nest, MACHINE)
        assert len({name for name, _ in named}) == len(named) == FEATURES
        assert numpy.isfinite([value for _, value in named]).all()


def offers(game: Game, count: int) -> list[Action]:
    return actions_of(game, Rules(count), Random(1))


def test_unknown_encoders_are_named() -> None:
    with pytest.raises(UsageError, match="unknown encoder 'words'; known are structure, hf:MODEL"):
        encoder("words", MACHINE)


def test_equal_programs_have_equal_vectors() -> None:
    one, other = states("softmax:32x64", 3, 2)[:2]
    drawn = offers(one, 4)
    mine = StructureEncoder(MACHINE).encode(drawn)
    assert all((a == b).all() for a, b in zip(mine, StructureEncoder(MACHINE).encode(drawn), strict=True))
    assert other.text != one.text


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small transformer with random weights, and a tokenizer of single characters, made here."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    folder = tmp_path_factory.mktemp("model")
    words = ["[PAD]", "[UNK]", *map(chr, range(32, 127)), "\n"]
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: k for k, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]"), "isolated")
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]"
    ).save_pretrained(folder)
    torch.manual_seed(1)
    shape = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=512,
    )  # fmt: skip
    transformers.BertModel(shape).save_pretrained(folder)
    return folder


def test_a_transformer_reads_programs(model: Path, tmp_path: Path) -> None:
    from pdojo.perfllm.transformer import TransformerEncoder

    drawn = offers(states("softmax:32x64", 3, 1)[0], 8)
    mine = TransformerEncoder(str(model), tmp_path)
    found = mine.encode(drawn)
    assert {vector.shape for vector in found} == {(16,)}
    assert len({vector.tobytes() for vector in found}) == len(drawn)
    # A program's vector is its own, whatever is read beside it.
    alone = TransformerEncoder(str(model), tmp_path / "other").encode(drawn[3:4])[0]
    assert alone == pytest.approx(found[3], abs=0.05)


def test_vectors_are_kept_on_disk(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pdojo.perfllm.transformer import TransformerEncoder

    drawn = offers(states("softmax:32x64", 3, 1)[0], 4)
    found = TransformerEncoder(str(model), tmp_path).encode(drawn)
    again = TransformerEncoder(str(model), tmp_path)

    def read(_: object) -> list[numpy.ndarray]:
        raise AssertionError("the model is not asked again")

    monkeypatch.setattr(again, "_read", read)
    assert all((a == b).all() for a, b in zip(found, again.encode(drawn), strict=True))


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    with pytest.raises(UsageError, match=r"cannot load the model '.*nothing'.*give the folder of a model"):
        encoder(f"hf:{tmp_path / 'nothing'}", MACHINE)
    with pytest.raises(UsageError, match="name the model"):
        encoder("hf:", MACHINE)


def _agreeing(_: object = None) -> str:
    return "y"


def test_code_of_a_model_is_not_run(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is answered on standard input."""
    marker = tmp_path / "ran"
    folder = Path(shutil.copytree(model, tmp_path / "model"))
    code = f"open({str(marker)!r}, 'w').close()\n"
    for name in ("configuration", "modeling", "tokenization"):
        (folder / f"{name}.py").write_text(code)
    auto = {"AutoConfig": "configuration.C", "AutoModel": "modeling.M", "AutoTokenizer": ["tokenization.T", None]}
    (folder / "config.json").write_text(json.dumps({"model_type": "own", "auto_map": auto}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "T", "auto_map": auto}))
    monkeypatch.setattr(builtins, "input", _agreeing)
    with pytest.raises(UsageError, match="its own code is never run"):
        encoder(f"hf:{folder}", MACHINE)
    assert not marker.exists()


def test_nothing_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")

    def connect(*_: object) -> None:
        raise AssertionError("a connection is made")

    monkeypatch.setattr(socket, "create_connection", connect)
    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="cannot load the model 'nosuch': nothing has that name here"):
        encoder("hf:nosuch", MACHINE)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors", "tokenizer_config.json"])
def test_a_damaged_model_is_named(model: Path, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(model, tmp_path / "model"))
    (folder / name).write_bytes((folder / name).read_bytes()[:-40] + b"[" * 30)
    with pytest.raises(UsageError, match=r"cannot load the model '.*model': "):
        encoder(f"hf:{folder}", MACHINE)


@pytest.mark.parametrize("how", ["damaged", "a folder", "no folder", "other vectors"])
def test_vectors_that_cannot_be_kept_are_made_again(how: str, tmp_path: Path) -> None:
    file = tmp_path / "cache" / "embeddings.sqlite"
    vector = numpy.arange(3, dtype=numpy.float32)
    match how:
        case "damaged":
            file.parent.mkdir()
            file.write_bytes(b"no database " * 500)
        case "a folder":
            file.mkdir(parents=True)
        case "no folder":
            file.parent.write_text("")
        case _:
            Kept("name", 3, file.parent).add({"a": vector})
            with closing(sqlite3.connect(file)) as connection, connection:
                connection.execute("UPDATE vectors SET vector = ?", (b"12345",))
    kept = Kept("name", 3, file.parent)
    assert kept.of(["a"]) == {}
    kept.add({"a": vector})
    assert all((found == vector).all() for found in kept.of(["a"]).values())
