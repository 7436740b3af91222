"""The proof of a library notices edits of its files, also those whose digests were made anew."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from pdojo_tools import lib

from loaded_library import build_unproved, require_compiler
from pdojo.errors import MeasurementError, UsageError
from pdojo.library.findings import Finding, Listener
from pdojo.library.manifest import MANIFEST, digest, digests
from pdojo.library.spec import spec_of
from pdojo.library.verify import check_proof, verify

Change: TypeAlias = Callable[[dict[str, Any]], object]
SPEC: dict[str, Any] = {
    "name": "small",
    "version": "1.0.0",
    "levels": ["host"],
    "tuning": {"measure": False},
    "operators": [
        {"kernel": "softmax", "shapes": ["4x16"]},
        {"kernel": "relu", "plain": ["3x10"], "rows": True},
    ],
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_compiler()
    folder = tmp_path_factory.mktemp("sound") / "dist"
    build_unproved(spec_of(SPEC, "spec", folder), folder)
    return folder


@pytest.fixture
def library(sound: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(sound, tmp_path / "dist"))


def _edit(library: Path, change: Change) -> None:
    """Change the manifest."""
    data = json.loads((library / MANIFEST).read_text())
    change(data)
    (library / MANIFEST).write_text(json.dumps(data, indent=2) + "\n")


def _forge(library: Path) -> None:
    """Make the digests of all files anew, as somebody would who hides an edit."""
    _edit(library, lambda data: data.update(files=digests(library)))


def _entry(data: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (entry for entry in data["entries"] if entry["name"] == name)
    return found


class Notes(Listener):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.steps: list[str] = []

    def step(self, what: str) -> None:
        self.steps.append(what)

    def note(self, what: str) -> None:
        self.notes.append(what)


def test_a_sound_library_has_no_findings(sound: Path) -> None:
    listener = Notes()
    assert verify(sound, listener) == []
    assert any("the same meaning" in note for note in listener.notes)
    for entry in json.loads((sound / MANIFEST).read_text())["entries"]:
        assert any(step.startswith("running ") and f", {entry['name']}: " in step for step in listener.steps)


def test_a_flipped_byte_of_the_shared_library(library: Path) -> None:
    (shared,) = library.glob("lib/*/libsmall.so")
    data = bytearray(shared.read_bytes())
    data[len(data) // 2] ^= 1
    shared.write_bytes(data)
    name = shared.relative_to(library).as_posix()
    assert verify(library) == [Finding("the file has another digest than in the manifest", file=name)]
    _forge(library)
    found = verify(library)
    assert Finding("the rebuilt file has other bytes", file=name) in found
    with pytest.raises(MeasurementError, match="the library is not proved:\nfile lib/"):
        check_proof(library)


def _softmax_trace(library: Path) -> Path:
    return (
        library
        / "traces"
        / next(
            Path(v["trace"]).name
            for v in _entry(json.loads((library / MANIFEST).read_text()), "softmax_f32_4x16")["variants"]
            if v["align"] == 64
        )
    )


def test_an_edited_trace(library: Path) -> None:
    trace = _softmax_trace(library)
    lines = trace.read_text().splitlines()
    trace.write_text("\n".join(lines[:-1]) + "\n")
    name = trace.relative_to(library).as_posix()
    assert verify(library) == [Finding("the file has another digest than in the manifest", file=name)]
    _forge(library)
    (found,) = verify(library)
    assert (found.entry, found.file) == ("softmax_f32_4x16", name)
    assert "the moves of the trace lead to another program than the manifest's" in found.what


def test_an_illegal_move(library: Path) -> None:
    trace = _softmax_trace(library)
    trace.write_text(trace.read_text() + "set_location@nothing{location=stack}\n")
    _forge(library)
    (found,) = verify(library)
    assert found.file == trace.relative_to(library).as_posix()
    assert "of the trace, set_location@nothing" in found.what


def test_a_forged_program(library: Path) -> None:
    """The trace, its program's digest and all other digests are forged; the bytes of the object tell."""
    trace = _softmax_trace(library)
    trace.write_text("\n".join(line for line in trace.read_text().splitlines() if "@" not in line) + "\n")
    plain = library / "kernels/softmax_f32_4x16.pdojo"

    def change(data: dict[str, Any]) -> None:
        for variant in _entry(data, "softmax_f32_4x16")["variants"]:
            if variant["trace"] == trace.relative_to(library).as_posix():
                variant["program"] = digest(_aligned(plain.read_text(), variant["align"]).encode())

    _edit(library, change)
    _forge(library)
    found = verify(library)
    assert any(each.entry == "softmax_f32_4x16" and "says object" in each.what for each in found), found


def _aligned(text: str, align: int) -> str:
    from pdojo.dialect.assumptions import with_alignment
    from pdojo.dialect.canonical import canonicalize
    from pdojo.dialect.notation import parse_notation, print_notation

    (kernel,) = parse_notation(text)
    kernel = with_alignment(kernel, align)
    canonicalize(kernel)
    return print_notation(kernel)


def test_an_edited_kernel(library: Path) -> None:
    kernel = library / "kernels/softmax_f32_4x16.pdojo"
    text = kernel.read_text()
    assert "+=" in text
    kernel.write_text(text.replace("+=", "max=", 1))
    _forge(library)
    found = verify(library)
    assert found
    assert all(each.entry == "softmax_f32_4x16" for each in found)


def test_a_missing_entry(library: Path) -> None:
    _edit(library, lambda data: data["entries"].remove(_entry(data, "relu_f32_3x10")))
    found = verify(library)
    assert Finding("the rebuilt library has no such file", file="kernels/relu_f32_3x10.pdojo") in found
    for path in (*library.glob("kernels/relu_f32_3x10*"), *library.glob("traces/relu_f32_3x10*")):
        path.unlink()
    _forge(library)
    found = verify(library)
    assert any(each.what == "the rebuilt file has other bytes" and each.file.endswith(".so") for each in found)


def test_missing_and_added_files(library: Path) -> None:
    shutil.rmtree(library / "include")
    (library / "notes.txt").write_text("")
    assert verify(library) == [
        Finding("the file is missing", file="include/small.h"),
        Finding("the manifest does not list the file", file="notes.txt"),
    ]
    _forge(library)
    found = verify(library)
    assert Finding("the rebuilt library has this file, and the library lacks it", file="include/small.h") in found
    assert Finding("the rebuilt library has no such file", file="notes.txt") in found


def _first(data: dict[str, Any]) -> dict[str, Any]:
    return data["entries"][0]["variants"][0]


FORGED: list[tuple[Change, str]] = [
    (lambda data: _first(data).update(workspace=[1 << 20, 0]), "the manifest says workspace"),
    (lambda data: _first(data).update(symbol="other"), "the manifest says symbol other"),
    (lambda data: data["entries"][0].update(numerics=[]), "the kernel has the numerics"),
    (lambda data: [each["arrays"][0].update(dtype="f64") for each in data["entries"]], "the kernel has the arrays"),
    (lambda data: data["entries"][0]["variants"].clear(), "the entry has no program for level"),
    (lambda data: data["entries"].insert(0, data["entries"][0]), "the manifest lists the entry twice"),
    (lambda data: data["files"].pop("kernels/softmax_f32_4x16.pdojo"), "is no file of the library"),
    (lambda data: data.update(licence="GPL-3.0-only"), "the rebuilt"),
    (lambda data: data["tools"].update(LLVM="1.0.0"), "other tools made them: LLVM 1.0.0, here"),
]


@pytest.mark.parametrize(("change", "message"), FORGED, ids=[message for _, message in FORGED])
def test_forged_facts(library: Path, change: Change, message: str) -> None:
    _edit(library, change)
    found = verify(library)
    assert any(message in each.what for each in found), found


def test_a_folder_that_is_no_library(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no generated library"):
        verify(tmp_path)


def test_findings_name_their_place() -> None:
    assert str(Finding("wrong", "e", "v", "f")) == "entry e, variant v, file f: wrong"
    assert str(Finding("wrong")) == "wrong"


def test_the_tool(sound: Path, library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lib.main(["verify", str(sound)]) == 0
    assert "library 'small' 1.0.0 is proved: " in capsys.readouterr().out
    (library / "LICENSE").write_text("another licence\n")
    assert lib.main(["verify", str(library)]) == 1
    shown = capsys.readouterr()
    assert shown.out == "file LICENSE: the file has another digest than in the manifest\n"
    assert shown.err == "error: library 'small' is not proved: 1 fault\n"
    assert lib.main(["verify", str(library / "source")]) == 2
    assert lib.main(["verify", str(library), "more"]) == 2


def test_a_build_that_is_not_proved_is_not_published(tmp_path: Path) -> None:
    spec = spec_of({**SPEC, "operators": [{"kernel": "relu", "plain": ["2x4"]}]}, "spec", tmp_path)

    def planted(folder: Path) -> None:
        """The proof of a library with another byte."""
        (shared,) = folder.glob("lib/*/libsmall.so")
        shared.write_bytes(shared.read_bytes() + b"\0")
        check_proof(folder)

    with pytest.raises(MeasurementError, match="the library is not proved"):
        build_unproved(spec, tmp_path / "dist", check=planted)
    assert not (tmp_path / "dist").exists()
    build_unproved(spec, tmp_path / "dist", check=check_proof)
    assert (tmp_path / "dist" / MANIFEST).is_file()
