"""Files that tools write: links, pipes, folders that nothing can be written to."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import pytest
from pdojo_tools.outputs import check_writable, write_output
from pdojo_tools.tuning.result_files import Targets

from pdojo.errors import UsageError

UNWRITABLE = "/proc"
"""A folder in which nobody makes files, whoever runs the tests."""


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("before")
    path.chmod(0o640)
    number = path.stat().st_ino
    write_output("after", str(path))
    assert path.read_text() == "after"
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.stat().st_ino != number
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    real, link, dangling = tmp_path / "folder" / "real", tmp_path / "link", tmp_path / "dangling"
    real.parent.mkdir()
    real.write_text("before")
    link.symlink_to(Path("folder") / "real")
    check_writable(str(link))
    write_output("after", str(link))
    assert link.is_symlink()
    assert real.read_text() == "after"
    dangling.symlink_to(tmp_path / "folder" / "new")
    write_output(b"new", str(dangling))
    assert (tmp_path / "folder" / "new").read_bytes() == b"new"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_writable(str(pipe))
    found: list[bytes] = []
    reader = Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_output("text", str(pipe))
    reader.join()
    assert found == [b"text"]
    assert pipe.is_fifo()
    write_output("text", "/dev/null")
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("folder", "'folder' is a folder; name a file"),
        ("no/such", "cannot write 'no/such': there is no folder 'no'"),
        ("dangling", "cannot write 'dangling'"),
        ("loop", "cannot write 'loop'"),
        (f"{UNWRITABLE}/a.trace", f"cannot write '{UNWRITABLE}/a.trace'"),
    ],
)
def test_what_cannot_be_written_is_known_before(
    path: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("dangling").symlink_to("nowhere/file")
    Path("loop").symlink_to("loop")
    with pytest.raises(UsageError, match=message):
        check_writable(path)
    with pytest.raises(UsageError):
        write_output("text", path)


def test_a_folder_for_several_kernels_is_tried(tmp_path: Path) -> None:
    class Named:
        slug, family = "softmax", ""

    subjects = [Named(), Named()]
    with pytest.raises(UsageError, match=f"cannot write to the folder '{UNWRITABLE}'"):
        Targets.of(UNWRITABLE, None, None, subjects)  # pyright: ignore[reportArgumentType]
    Targets.of(str(tmp_path / "new"), None, None, subjects)  # pyright: ignore[reportArgumentType]
    assert not list((tmp_path / "new").iterdir())
