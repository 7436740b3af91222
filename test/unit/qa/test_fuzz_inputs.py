"""Texts that are nearly right are taken, or refused with one clear error; and the fuzzer would notice if not."""

from __future__ import annotations

import resource
import time

import pytest

from pdojo.errors import PdojoError, UsageError
from qa import fuzz_inputs
from qa.fuzz_inputs import Found, bounded_memory, drawn, drawn_file, fuzz, judge, main
from qa.input_fuzz.corpus import corpus
from qa.input_fuzz.readers import READERS


def test_every_form_has_valid_texts() -> None:
    """Moves are legal in some state: inverses are not where the corpus stands."""
    assert corpus().keys() == READERS.keys()
    for form in corpus().keys() - {"moves"}:
        texts = corpus()[form]
        assert [judge(form, text.encode()) for text in texts[:2]] == [None] * len(texts[:2])


def test_nearly_right_texts() -> None:
    """A short run; `make fuzz-inputs` is the long one."""
    found = Found()
    assert list(fuzz(1, range(60), found)) == []
    assert sum(found.taken.values()) > 4
    assert sum(found.refused.values()) > 20


def test_inputs_repeat() -> None:
    assert [drawn(3, k) for k in range(20)] == [drawn(3, k) for k in range(20)]
    assert len({drawn(3, k)[1] for k in range(20)}) > 15


def _too_deep(data: bytes) -> None:
    _too_deep(data)


def _slow(data: bytes) -> None:
    while True:
        pass


def _waiting(data: bytes) -> None:
    time.sleep(10)


def _wrong(data: bytes) -> None:
    raise KeyError(data)


def _silent(data: bytes) -> None:
    raise UsageError("")


@pytest.mark.parametrize(
    ("reader", "expected"),
    [
        (_too_deep, "RecursionError"),
        (_slow, "more than 0.05 s"),
        (_waiting, "more than 0.05 s"),
        (_wrong, "KeyError"),
        (_silent, "without a message"),
    ],
)
def test_what_is_a_failure(
    reader: object, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fuzz_inputs, "SECONDS", 0.05)
    monkeypatch.setattr(fuzz_inputs, "READERS", dict.fromkeys(READERS, reader))
    assert main(["--number", "5"]) == 1
    shown = capsys.readouterr()
    assert expected in shown.out
    assert "input 5 (" in shown.out
    assert "1 failures of 1 inputs" in shown.out


def test_refusals_are_no_failures() -> None:
    with pytest.raises(PdojoError):
        judge("notation", b"kernel")


def test_damaged_files() -> None:
    """A short run; `python -m qa.fuzz_inputs --files` is the long one."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("safetensors", reason="safetensors is not installed")
    from qa.input_fuzz.stored import FILES, stored

    for form in FILES:
        assert judge(form, stored(form)) is None
    found = Found()
    assert list(fuzz(1, range(240), found, drawn_file)) == []
    # The cache is done without.
    assert all(found.refused[form] > 4 for form in FILES if form != "vectors")
    assert found.taken["vectors"] == 240 // len(FILES)


def test_much_memory_is_a_failure() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(MemoryError), bounded_memory(1 << 25):
        bytearray(1 << 27)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
