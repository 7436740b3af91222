"""The encoder `text-small`: its tokens, its network, its pre-training and its files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

import numpy
import pytest

from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.errors import UsageError
from pdojo.kernels import kernel_names, workload
from pdojo.search.contract.dojo import Dojo
from pdojo.search.contract.evaluation import Evaluation
from pdojo.search.contract.progress import Budget
from pdojo.search.database import Database
from pdojo.search.engine.driver import search
from pdojo.search.environment.actions import Action, actions_of
from pdojo.search.environment.rules import Rules
from pdojo.search.neighbourhoods import neighbourhood
from pdojo.search.perfllm.encoders import encoder
from pdojo.search.perfllm.settings import Settings
from pdojo.search.perfllm.text.tokens import MOST, Line, lines_of, vocabulary
from search_games import TextCosts, start

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("safetensors", reason="safetensors is not installed")

from pdojo_tools.train import main  # noqa: E402

from pdojo.search.perfllm.storing import dump, load, stamp_of  # noqa: E402
from pdojo.search.perfllm.text.encoder import TextEncoder  # noqa: E402
from pdojo.search.perfllm.text.model import Shape, TextModel  # noqa: E402
from pdojo.search.perfllm.text.pretraining import Pretraining, fresh, segments_of  # noqa: E402
from pdojo.search.perfllm.text.states import Collection, Walk, walks  # noqa: E402
from pdojo.search.perfllm.text.weights import load_model, save_model, stamp  # noqa: E402
from pdojo.search.strategies.perfllm import PerfLLM  # noqa: E402

SMALL = Shape(width=16, heads=2, line_layers=1, program_layers=1)
WORDS = {number: token for token, number in vocabulary().items()}
PROGRAM = """kernel k(x, w) -> (y)
x f32 [1000, 64] heap
w f32 [64] heap
y f32 [1000, 64] heap
t f32 [1000:N, 64] stack

1000
| 64:v t[{0},{1}] = x[{0},{1}]!prefetch(4096) * w[{1}]
| 64 y[{0},{1}] = t[{0},{1}] + 0.5
"""


def words(text: str) -> list[str]:
    """The tokens of a text, line by line."""
    return [" ".join(WORDS[n].removeprefix("word ") for n in line) for line in lines_of(text)]


# Tokens


def test_tokens_of_a_program() -> None:
    assert words(PROGRAM) == [
        "kernel ( @0 , @1 ) -> ( @2 )",
        "@0 f32 [ 2^3* mark digits byte 49 byte 50 byte 53 , 64 ] heap",
        "@1 f32 [ 64 ] heap",
        "@2 f32 [ 2^3* mark digits byte 49 byte 50 byte 53 , 64 ] heap",
        "@3 f32 [ 2^3* mark digits byte 49 byte 50 byte 53 : N , 64 ] stack",
        "2^3* mark digits byte 49 byte 50 byte 53",
        "| 64 : v @3 [ {0} , {1} ] = @0 [ {0} , {1} ] ! prefetch ( 2^12 ) * @1 [ {1} ]",
        "| 64 @2 [ {0} , {1} ] = @3 [ {0} , {1} ] + mark number byte 48 byte 46 byte 53",
    ]


def test_all_library_kernels_have_tokens() -> None:
    """Nothing of them is spelled but numbers: the vocabulary has every word that they use."""
    for name in kernel_names():
        text = print_notation(workload(name).instantiate())
        lines = words(text)
        assert len(lines) == len([line for line in text.splitlines() if line])
        assert not [line for line in lines if "mark word" in line or "mark string" in line]


def test_names_make_no_difference() -> None:
    renamed = PROGRAM
    # Names that mean something elsewhere: a function, a mapping, words of the header.
    for old, new in (("k(", "other("), ("x", "exp"), ("w", "v"), ("t", "machine"), ("y", "kernel")):
        renamed = _renamed(renamed, old, new)
    assert renamed != PROGRAM
    assert print_notation(parse_notation(renamed)[0]) == renamed
    assert lines_of(renamed) == lines_of(PROGRAM)
    swapped = PROGRAM.replace("x[{0}", "?[{0}").replace("y[{0}", "x[{0}").replace("?[{0}", "y[{0}")
    assert lines_of(swapped) != lines_of(PROGRAM)


def _renamed(text: str, old: str, new: str) -> str:
    return re.sub(rf"\b{re.escape(old)}" + ("" if old.endswith("(") else r"\b(?!\()"), new, text)


CHANGES: dict[str, Callable[[str], str]] = {
    "a size": lambda text: text.replace("64", "63"),
    "a large size": lambda text: text.replace("1000", "1001"),
    "a mapping": lambda text: text.replace("64:v", "64:u"),
    "no mapping": lambda text: text.replace("64:v", "64"),
    "a memory": lambda text: text.replace("stack", "heap"),
    "slots": lambda text: text.replace("1000:N", "1000"),
    "a hint": lambda text: text.replace("!prefetch(4096)", "!prefetch(2048)"),
    "a constant": lambda text: text.replace("0.5", "0.25"),
    "depth": lambda text: text.replace("| 64:v", "64:v"),
    "an index": lambda text: text.replace("w[{1}]", "w[{0}]"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_changes_show(what: str) -> None:
    changed = CHANGES[what](PROGRAM)
    assert lines_of(changed) != lines_of(PROGRAM)
    before, after = TextEncoder(TextModel(SMALL), "").read([PROGRAM, changed])
    assert numpy.abs(before - after).max() > 1e-4


def test_numbers_and_names_are_told_apart() -> None:
    """Every number has tokens of its own, and the last of many names is none of the first ones."""
    some = [*range(1, 3000), *(3**k for k in range(3, 40)), *(2**k for k in range(12, 140)), 10**399]
    assert len({_tokens(f"{n} y[{{0}}] = 0") for n in some}) == len(set(some))
    assert _tokens("8192 3 y[{0}] = 0") != _tokens("24576 y[{0}] = 0")
    names = [f"a{k}" for k in range(3 * MOST)]
    lines = lines_of("".join(f"{name} f32 [] heap\n" for name in names))
    assert len(set(lines)) == len(names)


def _tokens(line: str) -> Line:
    return lines_of(line)[0]


def test_unknown_words_are_spelled() -> None:
    assert words('machine "my core"') == ["machine mark string " + " ".join(f"byte {n}" for n in b"my core")]
    assert words("4:m(dot4) y[{0}] = 0") != words("4:m(dot5) y[{0}] = 0")


def test_moves_change_the_tokens() -> None:
    """A program's tokens are those of no other program, up to names."""
    random = Random(3)
    state = Dojo(workload("softmax:32x64").instantiate(), machine("x86-64-zen4"))
    total = 0
    for _ in range(12):
        drawn = actions_of(state, Rules(12), random)
        same = [one for one in drawn[1:] if lines_of(one.text) == lines_of(state.text)]
        assert not same
        total += len(drawn) - 1
        state = random.choice(drawn[1:]).state()
    assert total > 100


# The network


def drawn_offers(count: int = 12) -> list[Action]:
    state = Dojo(workload("softmax:32x64").instantiate(), machine("x86-64-zen4"))
    return actions_of(state, Rules(count), Random(1))


def test_vectors_are_those_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector does not depend on what else is read or was read, and is read once."""
    drawn = drawn_offers()
    one = TextEncoder(TextModel(SMALL, seed=4), "a", tmp_path)
    found = one.encode(drawn)
    assert len({vector.tobytes() for vector in found}) == len(drawn)
    fresh_one = TextEncoder(TextModel(SMALL, seed=4), "a", tmp_path / "other")
    for k in reversed(range(len(drawn))):
        assert fresh_one.encode([drawn[k]])[0] == pytest.approx(found[k], abs=1e-5)
    other = TextEncoder(TextModel(SMALL, seed=5), "b", tmp_path).encode(drawn)
    assert numpy.abs(other[0] - found[0]).max() > 1e-3
    again = TextEncoder(TextModel(SMALL, seed=4), "a", tmp_path)
    monkeypatch.setattr(again, "read", None)
    assert all((a == b).all() for a, b in zip(found, again.encode(drawn), strict=True))


def test_lines_are_dropped_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [one.text for one in drawn_offers()]
    mine = TextEncoder(TextModel(SMALL), "")
    found = [mine.read([text])[0] for text in texts]
    monkeypatch.setattr("pdojo.search.perfllm.text.encoder.MOST_LINES", 20)
    again = [mine.read([text])[0] for text in texts]
    assert all(a == pytest.approx(b, abs=1e-5) for a, b in zip(found, again, strict=True))


# Pre-training


@pytest.fixture(scope="module")
def walked() -> list[Walk]:
    return list(islice(walks(5), 6))


def trained(walked: list[Walk], steps: int) -> Pretraining:
    return fresh(SMALL, segments_of(walked[2:]), steps, 1)


def test_pretraining_carries_over(walked: list[Walk]) -> None:
    """Some steps improve all losses on walks that were not learned from."""
    held = segments_of(walked[:2])
    mine = fresh(replace(SMALL, width=32), segments_of(walked[2:]), 60, 1)
    before = mine.losses(held)
    for _ in range(60):
        mine.step()
    after = mine.losses(held)
    assert after.features < 0.95 * before.features
    assert after.changes < 0.9 * before.changes
    assert after.families < 0.95 * before.families


def test_pretraining_goes_on(walked: list[Walk]) -> None:
    whole, first = trained(walked, 6), trained(walked, 6)
    for _ in range(6):
        whole.step()
    for _ in range(2):
        first.step()
    other = fresh(SMALL, segments_of(walked[2:]), 6, 99)
    other.restore(load(dump(first.state()), other.schema()))
    assert other.done == 2
    for _ in range(4):
        other.step()
    mine, theirs = whole.model.parts.state_dict(), other.model.parts.state_dict()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_states_go_on(tmp_path: Path) -> None:
    """An interrupted file has the same walks as one that was not; its last line may be torn."""
    path = tmp_path / "w.states"
    expected = list(islice(walks(3), 4))
    for _ in islice(Collection(path, 3).more(), 2):
        pass
    path.write_text(path.read_text()[:-40])
    second = Collection(path, 3)
    assert second.walks == expected[:1]
    for _ in islice(second.more(), 3):
        pass
    assert Collection(path, 3).walks == expected
    with pytest.raises(UsageError, match="has states of another seed or version; remove it"):
        Collection(path, 4)
    path.write_text(path.read_text().replace('"families"', '"family"'))
    with pytest.raises(UsageError, match="is damaged; remove it"):
        Collection(path, 3)


# Files


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "w.safetensors"
    save_model(path, TextModel(SMALL, seed=2), {"steps": 0})
    return path


def test_weights_survive_their_file(weights: Path) -> None:
    mine, digest = load_model(weights)
    assert mine.shape == SMALL
    wanted = TextModel(SMALL, seed=2).parts.state_dict()
    assert all(torch.equal(value, wanted[name]) for name, value in mine.parts.state_dict().items())
    assert json.loads(stamp_of(weights.read_bytes())["trained"]) == {"steps": 0}
    save_model(weights, mine, {"steps": 7})
    assert load_model(weights)[1] == digest
    save_model(weights, TextModel(SMALL, seed=3), {"steps": 0})
    assert load_model(weights)[1] != digest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": "0"}, "are of another version of text-small or of the notation; make them with"),
        ({"vocabulary": "0"}, "are of another version of text-small or of the notation; make them with"),
        ({"kind": "agent"}, "has no weights of text-small; make them with"),
        ({"shape": "{}"}, "are damaged; make them again"),
        ({"shape": "["}, "are damaged; make them again"),
        ({"shape": json.dumps({"width": 16, "heads": 5})}, "are damaged; make them again"),
    ],
)
def test_other_stamps_are_refused(weights: Path, change: dict[str, str], message: str) -> None:
    data = dump(TextModel(SMALL).parts.state_dict(), {**stamp(SMALL, {}), **change})
    weights.write_bytes(data)
    with pytest.raises(UsageError, match=message):
        encoder(f"text-small:{weights}", machine("toy"))


@pytest.mark.parametrize("keep", [0, 5, 40, 3000, -100, -1])
def test_damaged_weights_are_refused(weights: Path, keep: int) -> None:
    weights.write_bytes(weights.read_bytes()[:keep])
    with pytest.raises(UsageError, match=r"damaged; make (it|them)"):
        encoder(f"text-small:{weights}", machine("toy"))


def test_missing_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no weights come with pdojo: make some with pdojo-train text"):
        encoder("text-small", machine("toy"))
    with pytest.raises(UsageError, match=r"cannot read the weights '.*none': No such file"):
        encoder(f"text-small:{tmp_path / 'none'}", machine("toy"))
    with pytest.raises(UsageError, match=r"cannot read the weights '.*': Is a directory"):
        encoder(f"text-small:{tmp_path}", machine("toy"))


# In a search, and from the command line


class PositiveCosts(TextCosts):
    """Costs that are positive, as the agent's rewards need."""

    def cost(self, text: str) -> Evaluation:
        found = super().cost(text)
        return replace(found, cost=found.cost + 100)


def test_an_agent_reads_programs(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(weights.parent / "cache"))
    settings = Settings(encoder=f"text-small:{weights}", horizon=6, successors=4, batch=8, updates=2, width=16)
    found: list[list[str]] = []
    for _ in range(2):
        costs = PositiveCosts()
        with Database.in_memory() as database:
            search(start(), costs, PerfLLM(20, settings), neighbourhood("mutate"), Budget(20), 3, database=database)
        found.append(costs.evaluated)
    assert found[0] == found[1]
    assert len(found[0]) > 12
    first = PerfLLM(20, settings).settings["encoded by"]
    assert first == f"text-small {load_model(weights)[1]}"
    assert (weights.parent / "cache" / "pdojo" / "perfllm" / "embeddings.sqlite").exists()
    save_model(weights, TextModel(SMALL, seed=7), {})
    assert PerfLLM(20, settings).settings["encoded by"] != first


def test_weights_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pdojo.search.perfllm.text.model.Shape", lambda: SMALL)
    path = tmp_path / "mine.safetensors"
    command = ["text", str(path), "--states", "100", "--steps", "4", "--hold-out", "*a*"]
    assert main(command) == 0
    assert f"wrote {path}: 4 of 4 steps" in capsys.readouterr().out
    first = load_model(path)[1]
    trained = json.loads(stamp_of(path.read_bytes())["trained"])
    assert trained["steps"] == 4
    assert trained["held out"]["families"] > 0
    # The same command finds everything done.
    assert main(command) == 0
    assert load_model(path)[1] == first
    capsys.readouterr()
    assert main([*command, "--seed", "1"]) == 2
    assert "has states of another seed or version; remove it" in capsys.readouterr().err
    assert main([*command[:4], "--steps", "5", "--hold-out", "*a*"]) == 2
    assert "was made with other arguments, or by another version; remove it" in capsys.readouterr().err
    assert main(["text", str(tmp_path / "no" / "w.safetensors")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_shapes_are_those_of_the_file(weights: Path) -> None:
    wide = replace(SMALL, width=24)
    save_model(weights, TextModel(wide), {})
    drawn = drawn_offers(3)
    assert {v.shape for v in TextEncoder(*load_model(weights), weights.parent).encode(drawn)} == {(24,)}
