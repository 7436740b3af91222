"""Wheels: their bytes, names and records, and the platforms of libraries."""

from __future__ import annotations

import base64
import csv
import io
import zipfile
from dataclasses import replace
from hashlib import sha256

import pytest

from demo_library import MANIFEST, compiled_demo
from pdojo.errors import UsageError
from pdojo.library.platforms import Needs, needs
from pdojo.library.wheel import python_version, wheel


@pytest.fixture(scope="module")
def library() -> bytes:
    return compiled_demo()


def test_the_bytes_are_the_same_and_members_are_sorted(library: bytes) -> None:
    made = wheel(MANIFEST, library, "text", {})
    assert made == wheel(MANIFEST, library, "text", {})
    with zipfile.ZipFile(io.BytesIO(made.data)) as archive:
        names = archive.namelist()
        assert names == sorted(names)
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {member.compress_type for member in archive.infolist()} == {zipfile.ZIP_STORED}
        assert archive.read("demo/libdemo.so") == library
        assert "demo/py.typed" in names
        modes = {member.filename: member.external_attr >> 16 for member in archive.infolist()}
    assert modes["demo/libdemo.so"] == 0o100755
    assert modes["demo/__init__.py"] == 0o100644


def test_the_record_lists_every_member(library: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(wheel(MANIFEST, library, "text", {}).data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    record = "demo-1.2.3rc1.dist-info/RECORD"
    rows = {name: (digest, size) for name, digest, size in csv.reader(members[record].decode().splitlines())}
    assert rows.pop(record) == ("", "")
    wanted = {
        name: ("sha256=" + base64.urlsafe_b64encode(sha256(data).digest()).decode().rstrip("="), str(len(data)))
        for name, data in members.items()
        if name != record
    }
    assert rows == wanted


def test_names_and_metadata(library: bytes) -> None:
    made = wheel(MANIFEST, library, "the text", {})
    tag = needs(library).tag
    assert made.name == f"demo-1.2.3rc1-py3-none-{tag}.whl"
    with zipfile.ZipFile(io.BytesIO(made.data)) as archive:
        assert f"Tag: py3-none-{tag}\n" in archive.read("demo-1.2.3rc1.dist-info/WHEEL").decode()
        metadata = archive.read("demo-1.2.3rc1.dist-info/METADATA").decode()
        assert archive.read("demo-1.2.3rc1.dist-info/licenses/LICENSE") == b"the text"
    assert "Version: 1.2.3rc1\n" in metadata
    assert "License-Expression: MIT\n" in metadata
    assert "Requires-Dist: numpy" in metadata


def test_no_assertion_about_the_licence(library: bytes) -> None:
    made = wheel(replace(MANIFEST, licence="NOASSERTION"), library, "text", {})
    with zipfile.ZipFile(io.BytesIO(made.data)) as archive:
        assert "License-Expression" not in archive.read("demo-1.2.3rc1.dist-info/METADATA").decode()


@pytest.mark.parametrize(
    ("version", "wanted"),
    [
        ("1.0.0", "1.0.0"),
        ("1.0.0-alpha.2", "1.0.0a2"),
        ("2.1.0-b1", "2.1.0b1"),
        ("1.0.0-rc.3+gcc-12", "1.0.0rc3+gcc.12"),
    ],
)
def test_versions(version: str, wanted: str) -> None:
    assert python_version(version) == wanted


def test_a_version_that_python_does_not_know() -> None:
    with pytest.raises(UsageError, match=r"1\.0\.0-nightly"):
        python_version("1.0.0-nightly")


@pytest.mark.parametrize(
    ("libraries", "versions", "tag"),
    [
        (("libc.so.6",), ("GLIBC_2.2.5",), "manylinux_2_5_x86_64"),
        (("libc.so.6", "libpthread.so.0"), ("GLIBC_2.2.5", "GLIBC_2.34", "GLIBC_2.4"), "manylinux_2_34_x86_64"),
        (("libc.musl-x86_64.so.1",), (), "musllinux_1_2_x86_64"),
        (("libc.so.6", "libgomp.so.1"), ("GLIBC_2.34",), "linux_x86_64"),
        ((), (), "linux_x86_64"),
    ],
)
def test_platform_tags(libraries: tuple[str, ...], versions: tuple[str, ...], tag: str) -> None:
    assert Needs("x86_64", libraries, versions).tag == tag


def test_a_real_library_needs_the_c_library(library: bytes) -> None:
    found = needs(library)
    assert any(name.startswith("libc.") for name in found.libraries)


@pytest.mark.parametrize("data", [b"", b"MZ" + bytes(100), b"\x7fELF\x02\x01" + bytes(100)])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match="the library is"):
        needs(data)
