"""Caches of compiled code: whose files are used, and what killed writers leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pdojo.backends.common.file_cache import FileCache
from pdojo.files import cache_folder, data_folder, default_database

KEY, DATA = "a key", b"code"


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's data, with no secret yet."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "pdojo"


@pytest.fixture
def cache(tmp_path: Path) -> FileCache:
    """A cache with one file."""
    made = FileCache(tmp_path / "cache", ".code")
    made.store(KEY, DATA)
    assert made.read(KEY) == DATA
    return made


def file_of(cache: FileCache) -> Path:
    assert cache.folder is not None
    (file,) = cache.folder.iterdir()
    return file


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_all_files_are_the_users_alone(cache: FileCache, data: Path) -> None:
    file = file_of(cache)
    assert [mode(path) for path in (file, file.parent, data / "cache-key")] == [0o600, 0o700, 0o600]


def test_a_file_that_others_may_write_or_read_is_not_read(cache: FileCache) -> None:
    for bits in (0o620, 0o602, 0o644):
        file_of(cache).chmod(bits)
        assert cache.read(KEY) is None
    cache.store(KEY, DATA)
    assert cache.read(KEY) == DATA


def test_a_folder_that_others_may_write_is_not_read_and_is_closed_by_the_next_store(cache: FileCache) -> None:
    folder = file_of(cache).parent
    folder.chmod(0o770)
    assert cache.read(KEY) is None
    cache.store("another", DATA)
    assert mode(folder) == 0o700
    assert cache.read(KEY) == cache.read("another") == DATA


def test_files_of_another_user_are_neither_read_nor_replaced(cache: FileCache, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = file_of(cache).read_bytes()
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    assert cache.read(KEY) is None
    cache.store(KEY, b"other code")
    assert file_of(cache).read_bytes() == contents


def test_a_file_of_another_user_in_the_users_folder_is_not_read(cache: FileCache) -> None:
    try:
        os.chown(file_of(cache), os.geteuid() + 1, -1)
    except PermissionError:
        pytest.skip("this user may not give files away")
    assert cache.read(KEY) is None


@pytest.mark.parametrize("damage", ["replaced", "short", "readable"])
def test_files_by_another_secret_are_not_read(damage: str, cache: FileCache, data: Path) -> None:
    secret = data / "cache-key"
    match damage:
        case "replaced":
            secret.write_bytes(bytes(32))
        case "short":
            secret.write_bytes(b"")
        case _:
            secret.chmod(0o644)
    assert cache.read(KEY) is None
    cache.store(KEY, DATA)
    assert cache.read(KEY) == DATA
    assert mode(secret) == 0o600


WRITER = """
import os, signal, sys
from pathlib import Path
from pdojo.backends.common.file_cache import FileCache
Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
FileCache(Path(sys.argv[1]), ".code").store(sys.argv[2], bytes(1000))
"""


def test_temporary_files_of_killed_writers_are_removed(cache: FileCache) -> None:
    file = file_of(cache)
    for number in range(3):
        command = [sys.executable, "-c", WRITER, str(file.parent), str(number)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        assert len(list(file.parent.iterdir())) == 2
    # This process runs, so it may be writing.
    running = file.parent / f".pdojo-{os.getpid()}-abc"
    running.touch()
    FileCache(file.parent, ".code").store(KEY, DATA)
    assert set(file.parent.iterdir()) == {file, running}


def test_without_a_folder_nothing_is_stored() -> None:
    cache = FileCache(None, ".code")
    cache.store(KEY, DATA)
    assert cache.read(KEY) is None


def test_relative_folders_of_the_user_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PDOJO_DATABASE")
    for given in ("", "cache", "./cache", "~/cache"):
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        monkeypatch.setenv("XDG_DATA_HOME", given)
        assert cache_folder("kernels") == tmp_path / ".cache" / "pdojo" / "kernels"
        assert default_database().parent == data_folder() == tmp_path / ".local" / "share" / "pdojo"


def test_a_user_without_a_home_folder_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("XDG_DATA_HOME")
    assert cache_folder("kernels") is None
    with pytest.raises(FileNotFoundError, match="no home folder is known; set HOME or XDG_DATA_HOME"):
        data_folder()


def test_the_secret_is_not_kept_in_a_folder_of_another_user(tmp_path: Path, data: Path) -> None:
    data.mkdir(parents=True)
    try:
        os.chown(data, os.geteuid() + 1, -1)
    except PermissionError:
        pytest.skip("this user may not give folders away")
    cache = FileCache(tmp_path / "cache", ".code")
    cache.store(KEY, DATA)
    assert cache.read(KEY) is None
    assert list(data.iterdir()) == []
