"""`pdojo-lib build --ray`: searches on a private cluster of this computer, then the library."""

from __future__ import annotations

from pathlib import Path

import pytest
from pdojo_tools import lib

from cluster_alone import needs_ray, processors_alone
from loaded_library import require_compiler
from pdojo.library.publishing import check_digests

SPEC = """
name = "searched"
threads = 1
[tuning]
search = "sample"
budget = "{budget}"
[[operators]]
kernel = "relu"
shapes = ["64x64", "8x64"]
"""


@needs_ray
@pytest.mark.slow
def test_programs_are_searched_on_the_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require_compiler()
    spec, stored = tmp_path / "spec.toml", ["--database", str(tmp_path / "search.sqlite")]
    spec.write_text(SPEC.format(budget=4))
    with processors_alone():
        command = ["build", str(spec), *stored, "--ray", "local", "--workers", "1", "-o"]
        assert lib.main([*command, str(tmp_path / "one")]) == 0
    out = capsys.readouterr().out
    assert "1 worker at local" in out
    assert out.count("moves (database)") == 2
    check_digests(tmp_path / "one")
    # Nothing is left to search, so no cluster is asked for.
    assert lib.main(["build", str(spec), *stored, "--ray", "nowhere", "-o", str(tmp_path / "two")]) == 0
    files = [
        {p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()}
        for f in tmp_path.iterdir()
        if f.is_dir()
    ]
    assert files[0] == files[1]


def test_a_cluster_is_for_searches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text('name = "plain"\n[[operators]]\nkernel = "relu"\nshapes = ["4x8"]\n')
    assert lib.main(["build", str(spec), "--ray", "local", "-o", str(tmp_path / "dist")]) == 2
    assert "--ray is for searches" in capsys.readouterr().err
    assert lib.main(["build", str(spec), "--workers", "1", "-o", str(tmp_path / "dist")]) == 2
    assert "--workers belongs to --ray" in capsys.readouterr().err
