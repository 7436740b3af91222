"""Nothing out of a foreign library's folder reaches a path, C source, a linker or a loader unchecked."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from pdojo_tools import lib

from pdojo.errors import UsageError
from pdojo.library import linking
from pdojo.library.findings import Finding
from pdojo.library.levels import read_level
from pdojo.library.linking import CCompiler, compiler_for
from pdojo.library.manifest import MANIFEST, digests, machine_path
from pdojo.library.paths import LINK, inside
from pdojo.library.publishing import is_library
from pdojo.library.schema import parse_manifest
from pdojo.library.verify import verify
from unit.library.test_manifest import a_manifest

Place: TypeAlias = tuple[str | int, ...]

TEXTS = (
    "../../outside",
    "/tmp/outside",
    "x,-plugin,/tmp/x.so",
    "-o",
    "two words",
    "*/ int x; /*",
    'x"; int y',
    "$(id)",
    "@link",
    "",
    "1.0.0\n",
)
"""Texts that have a meaning to a path, a linker, C, CMake, a shell or a file of arguments."""
CONTROL = ("x\ny", "x\0", "\x1b[2J")
COMPARED = {
    ("tools", "pdojo"),
    ("files", "a"),
    *(("entries", 0, "arrays", k, "dtype") for k in (0, 1)),
    *(("models", 0, "kernels", 0, "arrays", k, "dtype") for k in (0, 1, 2)),
    ("entries", 0, "numerics", 0),
    ("models", 0, "kernels", 0, "numerics", 0),
    *(
        (*place, key)
        for place in (
            *(("entries", 0, "variants", 0), ("devices", 0, "variant")),
            ("models", 0, "kernels", 0, "variants", 0),
        )
        for key in ("symbol", "program", "object")
    ),
    ("devices", 0, "entry"),
}
"""Texts that are compared with those of a build, and are used for nothing else."""


def _texts(data: Any, place: Place = ()) -> Iterator[Place]:
    """The places of all texts."""
    if isinstance(data, str):
        yield place
    elif not isinstance(data, int):
        keys: Any = data if hasattr(data, "keys") else range(len(data))
        for key in keys:
            yield from _texts(data[key], (*place, key))


def _with(place: Place, value: object, *, key: bool = False) -> str:
    """The manifest with a text in place of another one, or, with `key`, as the key in its place."""
    data = json.loads(a_manifest().text())
    inner: Any = data
    for step in place[:-1]:
        inner = inner[step]
    if key:
        inner[value] = inner.pop(place[-1])
    else:
        inner[place[-1]] = value
    return json.dumps(data)


PLACES = [place for place in _texts(json.loads(a_manifest().text())) if place[-1] not in ("format", "format_version")]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_every_text_of_a_manifest_is_checked(place: Place) -> None:
    # A licence may be an expression: `MIT OR Apache-2.0`.
    texts = [text for text in TEXTS if place != ("licence",) or " " not in text or "*" in text]
    for text in CONTROL if place in COMPARED else (*texts, *CONTROL):
        with pytest.raises(UsageError):
            parse_manifest(_with(place, text))


@pytest.mark.parametrize(
    "place", [("files", "a"), ("entries", 0, "sizes", "R"), ("models", 0, "sizes", "N"), ("tools", "pdojo")]
)
def test_every_key_of_a_manifest_is_checked(place: Place) -> None:
    for text in CONTROL if place in COMPARED and place[0] == "tools" else (*TEXTS, *CONTROL):
        with pytest.raises(UsageError):
            parse_manifest(_with(place, text, key=True))


FACTS: dict[str, tuple[Place, object, str]] = {
    "reserved name": (("name",), "math", "name: 'math' cannot be the name of a library"),
    "reserved prefix": (("prefix",), "pd", "prefix: 'pd' cannot be the prefix"),
    "reserved operator": (("entries", 0, "operator"), "create", "every library has a function 'create'"),
    "version": (("version",), "1.0.0-nightly", "version: '1.0.0-nightly' is no version of a Python package"),
    "plugin": (("name",), "x,-plugin,/tmp/x", "name: 'x,-plugin,/tmp/x' is no name"),
    "entry": (("entries", 0, "name"), "../../e", "entries[0].name: it is '../../e', and a build writes 'sum_f32_4x8'"),
    "size": (("entries", 0, "sizes", "R"), 0, "0 is no size"),
    "large size": (("entries", 0, "sizes", "C"), 1 << 63, "is no size"),
    "align": (("entries", 0, "variants", 0, "align"), 3, "3 is neither 64 nor 1"),
    "no level": (("levels",), [], "levels: there must be at least one"),
    "level twice": (("levels",), ["a", "a"], "and none twice"),
    "level of a device": (("devices", 0, "variant", "level"), "../x", "is no name of a machine"),
    "range": (("entries", 0, "sizes", "R"), "1..4", "and a build writes 'sum_f32_1to4x8'"),
    "reversed range": (("entries", 0, "sizes", "R"), "4..1", "is no size"),
    "range of one": (("entries", 0, "sizes", "R"), "4..4", "is no size"),
    "range from 0": (("entries", 0, "sizes", "R"), "0..4", "is no size"),
    "negative range": (("entries", 0, "sizes", "R"), "-1..4", "'-1..4' is neither a size nor a range"),
    "huge range": (("entries", 0, "sizes", "R"), f"1..{10**30}", "is neither a size nor a range"),
    "range of no multiples": (("entries", 0, "sizes", "R"), "8..20/8", "'8..20/8' ends at 20"),
    "range that begins at no multiple": (("entries", 0, "sizes", "R"), "4..16/8", "'4..16/8' is no range of sizes"),
    "number in quotes": (("entries", 0, "sizes", "R"), "4", "'4' is no range of sizes"),
    "words": (("entries", 0, "sizes", "R"), "many", "'many' is neither a size nor a range"),
    "zeros in front": (("entries", 0, "sizes", "R"), "01..4", "'01..4' is no range of sizes"),
    "code in an extent": (("entries", 0, "arrays", 0, "shape", 0), "__import__('os')", "is no extent"),
    "power in an extent": (("entries", 0, "arrays", 0, "shape", 0), "9**9**9", "is no extent"),
    "number of Python": (("models", 0, "arrays", 0, "shape", 0), "0x10", "'0x10' is no extent"),
    "decrement of C": (("models", 0, "arrays", 0, "shape", 0), "N--N", "'N--N' is no extent"),
    "type": (("models", 0, "kernels", 0, "arrays", 0, "dtype"), "f31", "has elements of 'f31'"),
    "foreign size": (("entries", 0, "arrays", 0, "shape", 0), "R+1", "'R+1' is no extent"),
}


@pytest.mark.parametrize("name", FACTS)
def test_facts_that_no_build_writes(name: str) -> None:
    place, value, message = FACTS[name]
    with pytest.raises(UsageError) as refused:
        parse_manifest(_with(place, value))
    assert message in str(refused.value)


def test_a_manifest_of_nothing() -> None:
    data: dict[str, Any] = {**json.loads(a_manifest().text()), "entries": [], "models": [], "devices": []}
    with pytest.raises(UsageError, match="entries: there is none, and no model"):
        parse_manifest(json.dumps(data))


def _change(entry: dict[str, Any], rows: int | str) -> dict[str, Any]:
    """The entry for other rows."""
    made = copy.deepcopy(entry)
    name = f"sum_f32_{str(rows).replace('..', 'to')}x8"
    made |= {"name": name, "kernel": f"kernels/{name}.pdojo", "sizes": {"R": rows, "C": 8}}
    made["variants"][0]["trace"] = f"traces/{name}-x86-64-avx2.trace"
    made["arrays"][0]["shape"] = ["R" if isinstance(rows, str) else rows, 8]
    return made


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ([4, "8..10", "1..32"], None),
        ([5, 4], "they are not sorted"),
        (["1..32", 4], "they are not sorted"),
        (["1..32", "8..10"], "they are not sorted"),
    ],
)
def test_entries_of_an_operator_belong_together(kinds: list[int | str], message: str | None) -> None:
    data = json.loads(a_manifest().text())
    data["entries"], data["devices"] = [_change(data["entries"][0], kind) for kind in kinds], []
    if message is None:
        parse_manifest(json.dumps(data))
        data["entries"][-1]["arrays"][0]["name"] = "z"
        message = "its entries have different arguments"
    with pytest.raises(UsageError, match=message):
        parse_manifest(json.dumps(data))


@pytest.fixture
def library(built: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(built, tmp_path / "in" / "dist"))


def _forge(library: Path, **facts: object) -> None:
    data = {**json.loads((library / MANIFEST).read_text()), "files": digests(library), **facts}
    (library / MANIFEST).write_text(json.dumps(data, indent=2) + "\n")


@pytest.mark.parametrize("name", ["../../../../../x", "x,-plugin,/tmp/x"])
def test_a_foreign_name_is_refused_and_nothing_is_written(
    library: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _forge(library, name=name)
    before = sorted(library.parent.parent.rglob("*"))
    assert lib.main(["verify", str(library)]) == 2
    assert "has values that no build writes: name: '" in capsys.readouterr().err
    assert sorted(library.parent.parent.rglob("*")) == before


def _fifo(path: Path) -> None:
    os.mkfifo(path)


STRANGE: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "link to a folder": ("include2", lambda path: path.symlink_to("/tmp"), LINK),
    "link to nothing": ("dangling", lambda path: path.symlink_to("/nosuch"), LINK),
    "pipe": ("fifo", _fifo, "it is a pipe, a socket or a device, not a file"),
    "empty folder": ("lib/empty", Path.mkdir, "it is an empty folder, and a library has none"),
    "control characters": ("\x1b[2J", lambda path: path.write_text(""), "the manifest does not list the file"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_everything_that_is_added_is_found(library: Path, name: str) -> None:
    path, make, what = STRANGE[name]
    make(library / path)
    (found,) = verify(library)
    assert found.what == what
    assert found.file == (path if path.isprintable() else ascii(path))


def test_links_out_of_the_folder_are_not_read(library: Path, tmp_path: Path) -> None:
    """Of files, of folders, and of the manifest."""
    kernels = library / "kernels"
    kernels.rename(tmp_path / "kernels")
    kernels.symlink_to(tmp_path / "kernels")
    assert Finding(LINK, file="kernels") in verify(library)
    with pytest.raises(UsageError, match="'kernels/a': it is a link"):
        inside(library, "kernels/a")
    (library / MANIFEST).rename(tmp_path / MANIFEST)
    (library / MANIFEST).symlink_to(tmp_path / MANIFEST)
    assert not is_library(library)
    with pytest.raises(UsageError, match=r"manifest\.json': it is a link"):
        verify(library)


@pytest.mark.parametrize("path", ["../x", "/x", "a/../x", "a//x", "./x", "-x", "a/.x", "", "a b", "x\n"])
def test_paths_stay_inside(path: str) -> None:
    with pytest.raises(UsageError, match="is no path of a file of a library"):
        inside(Path("dist"), path)
    assert inside(Path("dist"), "lib/x.so") == Path("dist/lib/x.so")


MACHINES = {
    'inherits = "../../../outside.toml"': "may inherit from a machine by name only",
    'architecture = "../../../x"': "key 'architecture': '../../../x' is no word",
    'architecture = "x"': "is no CPU that libraries are for",
    'processor = "a,b"': "key 'processor': 'a,b' is no word",
    'features = ["avx2,-x"]': "key 'features': 'avx2,-x' is no word",
    'features = ["odd"]': "has the features odd, which a library cannot detect",
    'backend = "cuda"': "is no CPU that libraries are for",
}


@pytest.mark.parametrize("line", MACHINES)
def test_foreign_machine_files(library: Path, line: str, tmp_path: Path) -> None:
    """They name no other file, and nothing but words becomes an argument of a compiler."""
    level = json.loads((library / MANIFEST).read_text())["levels"][0]
    path = machine_path(level)
    shutil.copy(library / path, tmp_path / "outside.toml")
    key = line.partition(" ")[0]
    lines = [each for each in (library / path).read_text().splitlines() if not each.startswith(f"{key} =")]
    (library / path).write_text("\n".join([lines[0], line, *lines[1:]]) + "\n")
    _forge(library)
    (found,) = verify(library)
    assert (found.file, MACHINES[line] in found.what) == (path, True), found


def test_levels_are_read_in_the_folder(library: Path, tmp_path: Path) -> None:
    shutil.copy(next((library / "machines").iterdir()), tmp_path / "outside.toml")
    with pytest.raises(UsageError, match="is no path of a file of a library"):
        read_level(library, "../../../outside")


def test_architectures_name_no_program() -> None:
    with pytest.raises(UsageError, match=r"libraries are for x86_64, aarch64, riscv64, not for '\.\./x'"):
        compiler_for("../x")


def test_names_are_arguments_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The compiler splits arguments of -Wl at commas, so no name is in one."""
    ran: list[str] = []

    def recorded(command: list[str], folder: Path, title: str) -> str:
        ran.extend(command)
        for output in [command[k + 1] for k, word in enumerate(command) if word == "-o" and "-c" in command]:
            (folder / output).touch()
        return title

    monkeypatch.setattr(linking, "_ran", recorded)
    CCompiler(("cc",), "cc").link(tmp_path, ["a.o"], "libx,-plugin,y.so", "lib/x.so")
    place = ran.index("-soname")
    assert ran[place - 1] == ran[place + 1] == "-Xlinker"
    assert [word for word in ran if "plugin" in word] == [ran[place + 2]]
