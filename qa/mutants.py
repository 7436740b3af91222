"""Mutation testing: small changes of the code, which the tests must notice (`python -m qa.mutants`).

cosmic-ray plants one change at a time in a private copy of the project, and runs the tests of qa/mutants.toml there.
The changes are a sample, with more of larger files. Exit code 0: the tests notice all of them; 1: some survive, and are
printed. Somebody has to read those: many change nothing that anyone can see.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from pdojo_tools.command import Arguments, positive, tool

from pdojo.errors import PdojoError, UsageError
from pdojo.transforms.registry import transformation, transformation_names

ROOT = Path(__file__).parents[1]
CONFIG = "qa/mutants.toml"


class BlindTestsError(PdojoError):
    """Raised if changes survive the tests."""


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the tests on changes. Raises BlindTestsError if one survives."""
    parser = Arguments(prog="python -m qa.mutants", description=__doc__)
    add = parser.add_argument
    add("--number", type=positive, default=60, metavar="N", help="size of the sample (default 60)")
    add("--seed", type=int, default=0, help="of the sample (default 0)")
    add("--within", metavar="PATH", help="only in this file or folder, such as pdojo/dialect/rules")
    add("--sessions", type=Path, default=Path("build/mutants"), metavar="DIR", help="results (default build/mutants)")
    add("--resume", action="store_true", help="go on with an interrupted run of the same sample")
    given = parser.parse_args(args)
    random = Random(given.seed)
    files = changed_files(given.within)
    weights = [(ROOT / file).stat().st_size for file in files]
    sample = Counter(random.choices(files, weights, k=given.number))
    if not given.resume:
        shutil.rmtree(given.sessions, ignore_errors=True)
    given.sessions.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="pdojo-mutants-") as folder:
        copy = Path(folder)
        copy_project(copy)
        if not given.resume:
            _tool(copy, "cosmic-ray", "baseline", CONFIG)
        for file, count in sorted(sample.items()):
            session = given.sessions.resolve() / f"{file.replace('/', '.')}.sqlite"
            _judge(copy, file, count, given.seed, session)
    survivors = {path: count for path in sorted(given.sessions.glob("*.sqlite")) if (count := survived(path))}
    for path in survivors:
        _tool(ROOT, "cr-report", "--surviving-only", "--show-diff", str(path.resolve()))
    if survivors:
        raise BlindTestsError(f"{sum(survivors.values())} of {given.number} changes survive the tests")


def changed_files(within: str | None) -> list[str]:
    """The files of the configuration, or those within a file or folder. Raises UsageError if there are none."""
    config = _configuration()
    folders = config["module-path"] if within is None else [within]
    paths = [path for name in folders for path in (ROOT / name, *sorted((ROOT / name).rglob("*.py")))]
    found = [path for path in paths if path.suffix == ".py" and path.is_file() and path.name != "__init__.py"]
    if not found:
        raise UsageError(f"there is no Python file in '{within}'")
    return [name for path in found if (name := path.relative_to(ROOT).as_posix()) not in config["excluded-modules"]]


def copy_project(copy: Path) -> None:
    """Copy the working tree, without the files that git ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    (copy / "pdojo_tools").symlink_to("tools")


def near(file: str) -> list[str]:
    """The lit folders of the moves that a file defines, or helps to define."""
    module = file.removesuffix(".py").replace("/", ".")
    found: list[str] = []
    for name in transformation_names():
        home = transformation(name).__module__
        text = (ROOT / f"{home.replace('.', '/')}.py").read_text(encoding="utf-8")
        if home == module or f"from {module} import" in text:
            found.append(f"test/filecheck/transforms/{name}")
    return [folder for folder in found if (ROOT / folder).is_dir()]


def _judge(copy: Path, file: str, count: int, seed: int, session: Path) -> None:
    """Plant a sample of the changes of a file; a session that is there already goes on."""
    config = copy / CONFIG
    text = (ROOT / CONFIG).read_text(encoding="utf-8")
    config.write_text(re.sub(r"^module-path = .*$", f"module-path = {json.dumps(file)}", text, flags=re.M))
    if not session.exists():
        _tool(copy, "cosmic-ray", "init", CONFIG, str(session))
        draw(session, count, seed)
    _tool(copy, "cosmic-ray", "exec", CONFIG, str(session), NEAR=" ".join(near(file)))


def draw(session: Path, number: int, seed: int) -> None:
    """Keep a sample of a session's changes, at most one at each place of the code."""
    query = "select job_id, operator_name, module_path, start_pos_row, start_pos_col from mutation_specs"
    places: dict[tuple[str, int, int], list[str]] = defaultdict(list)
    excluded = re.compile("|".join(_configuration()["filters"]["operators-filter"]["exclude-operators"]))
    with closing(sqlite3.connect(session)) as database, database:
        for job, operator, *place in database.execute(f"{query} order by 3, 4, 5, 2, occurrence"):
            if not excluded.match(operator):
                places[place[0], place[1], place[2]].append(job)
        random = Random(seed)
        drawn = [(random.choice(places[place]),) for place in random.sample(sorted(places), min(number, len(places)))]
        database.execute("create temporary table drawn (job_id)")
        database.executemany("insert into drawn values (?)", drawn)
        for table in ("mutation_specs", "work_items"):
            database.execute(f"delete from {table} where job_id not in (select job_id from drawn)")


def survived(session: Path) -> int:
    """The number of changes that no test noticed."""
    with closing(sqlite3.connect(session)) as database:
        (count,) = database.execute("select count(*) from work_results where test_outcome = 'SURVIVED'").fetchone()
    return count


def _configuration() -> dict[str, Any]:
    return tomllib.loads((ROOT / CONFIG).read_text(encoding="utf-8"))["cosmic-ray"]


def _tool(folder: Path, name: str, *arguments: str, **variables: str) -> None:
    """Run a tool of cosmic-ray in a folder. Raises UsageError if it fails or is missing."""
    programs = Path(sys.executable).parent
    if not (programs / name).is_file():
        raise UsageError("cosmic-ray is not installed; make mutants installs it")
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(folder), **variables}
    code = subprocess.run([programs / name, *arguments], cwd=folder, env=environment, check=False).returncode
    if code:
        raise UsageError(f"{name} {arguments[0]} failed with code {code}")


if __name__ == "__main__":
    sys.exit(main())
