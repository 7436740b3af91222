"""Reports of `pdojo-tune`: one page without any address, everything escaped, sections, charts or a note instead."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from itertools import count, pairwise
from math import inf
from pathlib import Path

import pytest
from pdojo_tools import phases, tune
from pdojo_tools.tuning import prefixes
from pdojo_tools.tuning.limits import cost_text
from pdojo_tools.tuning.prefixes import Prefix, grouped, time_prefixes
from pdojo_tools.tuning.report import charts
from pdojo_tools.tuning.report.chapter import Chapter, measured_table
from pdojo_tools.tuning.report.elements import Html, html, table, tag
from pdojo_tools.tuning.report.plot import PlotAxis
from pdojo_tools.tuning.report.sides import sides
from rich.console import Console

from pdojo.backends.measure import Ok
from pdojo.budget import Budget
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation import parse_notation
from pdojo.passes.scheduled_kernel import ScheduledKernel, make_moves
from pdojo.passes.task import TuningTask
from pdojo.passes.verification.verify import Verification
from pdojo.search.contract.evaluation import Candidate, Evaluation
from pdojo.search.contract.progress import HistoryRow
from pdojo.search.database.rows import Key
from pdojo.search.tuning.result import TuneResult
from pdojo.search.tuning.run import Baselines, SearchConfig, SearchOutcome
from pdojo.search.tuning.timing import Timed
from search_games import Weather, find, start
from tuned_kernels import ADD, SOFTMAX, model

VOID = {"meta", "br"}


class Page(HTMLParser):
    """Checks that elements are closed in order, and collects what there is."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.headings: list[str] = []
        self.names: set[str] = set()
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.collect(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.collect(attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("h2", "h3"):
            self.headings.append(data)

    def collect(self, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src"):
                self.links.append(value or "")


SECTIONS = [
    "Summary",
    "Convergence",
    "Program",
    "Trace",
    "Generated code",
    "Failures",
    "Where the time went",
    "Provenance",
]


def report(tmp_path: Path, *args: str) -> str:
    path = tmp_path / "report.html"
    assert tune.main([*args, "--report", str(path)]) == 0
    return path.read_text()


def check(text: str) -> Page:
    """A page that loads nothing."""
    page = Page(text)
    assert not re.findall(r"https?:|url\((?!#)|@import|<script", text)
    assert all(link.startswith("#") for link in page.links)
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    return page


def test_a_report_of_a_search(tmp_path: Path) -> None:
    strange = tmp_path / "a<b>&c.pdojo"
    strange.write_text(SOFTMAX)
    text = report(tmp_path, *model(strange, database=tmp_path / "db", budget="12"))
    page = check(text)
    assert page.headings == [str(strange), *SECTIONS]
    assert "a&lt;b&gt;&amp;c.pdojo" in text
    assert "a<b>" not in text
    assert "m[{0}] max= x[{0},{1}]" in text
    assert "The estimate in cycles after each move" in text
    assert "pushq" in text or "mov" in text
    for fact in ("12 evaluations", "analytical", "x86-64-avx2", "llvmlite", "seed", "--budget 12"):
        assert fact in text
    assert page.names >= {"svg", "table", "details", "pre"}


@pytest.mark.parametrize("fails", [False, True])
def test_convergence_of_a_timed_search(fails: bool) -> None:
    """Relative to the start, unless that cannot be run."""

    class Maybe(Weather):
        def outcome(self, candidate: Candidate, inputs: int | None) -> Evaluation | None:
            wrong = fails and candidate.fingerprint == start().fingerprint
            return Evaluation.failed("WrongResult", {"kind": "WrongResult"}) if wrong else None

    result = find(Maybe(), 20)
    assert result.best is not None
    tuning = make_moves(start().kernel, start().machine, None)
    subject = TuningTask("it", None, tuning, None, "none")
    plan = SearchConfig("sample", "edges", Budget(20), "runtime", "pass")
    found = SearchOutcome(plan, 1, "s", Baselines(inf, inf, "pass"), result, {}, "a.sqlite", (Key(1, ""), Key(1, "")))
    text = Chapter(TuneResult(subject, ScheduledKernel(result.best.game), Verification("right"), found=found)).html(0)
    section = text[text.index("Convergence") : text.index("Program")]
    assert ("times as fast as the start" in section) != fails
    assert ("times what the start takes" in section) != fails
    assert ("milliseconds" in section) == fails
    assert "nan" not in section
    better = [row.best for row in result.history if row.is_best]
    assert len(better) > 1
    assert better == sorted(set(better), reverse=True)
    last = cost_text(result.cost, "s") if fails else f"{result.root.cost / result.cost:.2f}"
    assert f">{last}</td>" in section


def test_a_report_of_several_kernels(tmp_path: Path) -> None:
    softmax = tmp_path / "softmax.pdojo"
    softmax.write_text(SOFTMAX)
    text = report(tmp_path, *model(softmax, "add:64x64", database=tmp_path / "db", budget="3"))
    page = check(text)
    assert page.headings == [str(softmax), *SECTIONS, "add:64x64", *SECTIONS]
    assert {"k0-trace", "k1-trace"} <= set(page.ids)


def test_a_report_of_a_pass_alone(tmp_path: Path) -> None:
    text = report(tmp_path, "add:64x64", "--no-measure", "--machine", "x86-64-avx2")
    headings = check(text).headings
    assert headings == ["add:64x64", "Summary", "Program", "Trace", "Generated code", "Provenance"]
    assert "Nothing was measured in the end." in text


def test_charts_need_no_other_package() -> None:
    """Nor do they load any: matplotlib would be there for benchmarks only."""
    program = "import sys, pdojo_tools.tuning.report.page; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def numbers(text: str, pattern: str) -> list[float]:
    return [float(number) for number in re.findall(pattern, text)]


def test_the_chart_of_a_search() -> None:
    costs = [4e-3, 8e-3, inf, 1e-3]
    best = [4e-3, 4e-3, 4e-3, 1e-3]
    history = [
        HistoryRow(k, k * 2.5, cost, "", low, True) for k, (cost, low) in enumerate(zip(costs, best, strict=True))
    ]
    text = charts.convergence(history, "s", [("plain", 4e-3), ("the <pass>", 2e-3), ("lost", inf)])
    page = Page(text)
    assert page.names == {"figure", "svg", "g", "path", "circle", "text"}
    assert text.count("<circle") == 2 * 3  # the program that failed has none
    assert "the &lt;pass&gt;" in text
    assert "lost" not in text
    for label in ("milliseconds", "evaluations", "seconds", ">1<", ">2<", ">5<"):
        assert label in text
    across, up = numbers(text, r'cx="([\d.]+)"'), numbers(text, r'cy="([\d.]+)"')
    assert all(0 < x < charts.WIDTH for x in across)
    assert across[:3] == sorted(across[:3])
    # 8 ms, 4 ms and 1 ms on a logarithmic axis: one factor of 2, then two of them.
    assert up[1] < up[0] < up[2]
    assert (up[2] - up[0]) / (up[0] - up[1]) == pytest.approx(2, rel=0.01)
    # Both panes show the same costs at the same heights, and the line of the best goes through the best.
    assert up[3:] == up[:3]
    steps = re.findall(r'd="(M[^"]*)" stroke="var\(--second\)"', text)
    assert len(steps) == 2
    assert steps[0].endswith(f"V{up[2]:g}")


def test_the_chart_of_a_trace() -> None:
    found = [Prefix(0, "", 100.0), Prefix(1, "a", 90.0), Prefix(2, "b", inf, "left out"), Prefix(3, "c", 60.0)]
    text = charts.steps(found, "cycles")
    Page(text)
    assert text.count("<circle") == 3
    assert "cycles" in text
    assert ">0<" in text  # not logarithmic: the axis begins at 0
    # The program without a cost has a cross, two thirds of the way from the first to the last.
    (cross,) = numbers(text, r'd="M([\d.]+) [^"]*l6 6')
    first, _, last = numbers(text, r'cx="([\d.]+)"')
    assert cross + 3 == pytest.approx(first + (last - first) * 2 / 3, abs=0.1)
    for nothing in ([], [Prefix(0, "", inf, "no")], [Prefix(0, "", 0.0)]):
        Page(charts.steps(nothing, "s"))


@pytest.mark.parametrize(
    ("low", "high", "logarithmic", "ticks"),
    [
        (0, 1, False, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0, 37, False, [0, 10, 20, 30]),
        (0.9, 8.8, True, [1, 2, 5]),
        (1, 2e6, True, [1, 10, 100, 1e3, 1e4, 1e5, 1e6]),
    ],
)
def test_ticks_are_round(low: float, high: float, logarithmic: bool, ticks: list[float]) -> None:
    assert PlotAxis(low, high, 0, 1, logarithmic).ticks() == pytest.approx(ticks)


def test_foreign_load_is_in_the_report() -> None:
    quiet, loud = (Ok((1e-3,), 1, 1, load, 0.1, None) for load in (0.0, 1.5))
    assert "Warning: other programs kept 1.5 processors busy" in measured_table(
        [Timed("a", quiet, 0), Timed("b", loud, 1)]
    )
    assert "Warning" not in measured_table([Timed("a", quiet, 0)])


def test_a_report_for_a_machine_without_machine_code(tmp_path: Path) -> None:
    described = tmp_path / "paper.toml"
    described.write_text('name = "paper"\ninherits = "nvidia-sm90"\nbackend = ""\n')
    args = ["add:64x64", "--no-measure", "--machine", str(described), "--pass", "none"]
    text = report(tmp_path, *args)
    check(text)
    assert "no backend generates code for paper" in text


def test_what_is_not_html_is_escaped() -> None:
    assert html("<b>") == "&lt;b&gt;"
    assert html(Html("<b>")) == "<b>"
    assert tag("a", "<", href='"x"') == '<a href="&quot;x&quot;">&lt;</a>'
    assert "&lt;i&gt;" in table(("<i>",), [("<u>",)])
    assert "<u>" not in table(("<i>",), [("<u>",)])


def test_lines_that_differ_are_marked() -> None:
    found = sides("one\ntwo\nsame\n", "1\nsame\nmore <\n")
    assert found.count('class="row gone"') == 2
    assert found.count('class="row come"') == 2
    # A line on one side alone stands beside a gap.
    assert found.count('class="row gap"') == 2
    assert "more &lt;" in found


def test_moves_that_change_nothing_share_a_row() -> None:
    costs = [10.0, 10.1, 10.2, 5.0, 5.1, inf, 5.0, 4.9]
    groups = grouped([Prefix(k, f"m{k}", cost) for k, cost in enumerate(costs)])
    assert [[prefix.moves for prefix in group.prefixes] for group in groups] == [[0], [1, 2], [3, 4], [5], [6, 7]]


def test_the_time_after_each_move_is_measured() -> None:
    kernel = parse_notation(ADD)[0]
    tuning = make_moves(kernel, host(), "naive")
    tuning.game.apply("tile_scope@y:0{size=16}")
    told: list[str] = []
    found = time_prefixes(tuning.game, 0, told.append)
    assert [prefix.moves for prefix in found] == list(range(len(tuning.game.trace.steps) + 1))
    assert found[0].move == ""
    assert found[-1].move == "tile_scope@y:0{size=16}"
    assert all(0 < prefix.cost < 1 and not prefix.note for prefix in found)
    assert told[-1] == f"timing {len(found)} programs in turns"


def test_slow_programs_are_left_out_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefixes, "LONGEST", 1.0)
    slow = "kernel slow(x) -> (y)\nx f32 [1] heap\ny f32 [1] heap\n\n"
    slow += "1000\n| y[{0}-{0}] = 0\n| 1000 1000 1000 y[{0}-{0}] += x[{0}-{0}]\n"
    found = time_prefixes(make_moves(parse_notation(slow)[0], host(), None).game, 0, lambda _: None)
    assert found == [Prefix(0, "", inf, "left out: a call takes more than 1 s")]


@pytest.mark.parametrize("programs", [1, 2, 3, 7, 64])
def test_programs_are_tried_from_both_ends(programs: int) -> None:
    """What is left out when the time is up is spread over the trace: no gap is more than twice as long as another."""
    order = prefixes.spread(programs)
    assert sorted(order) == list(range(programs))
    assert order[:2] == [0, programs - 1][: len(order)]
    for tried in range(2, programs):
        known = sorted(order[:tried])
        gaps = [later - earlier for earlier, later in pairwise(known)]
        assert max(gaps) <= 2 * min(gaps) + 2


def test_times_after_moves_have_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program seems to take 14 s: the first and the last one are tried, and the others named as left out."""
    tuning = make_moves(parse_notation(ADD)[0], host(), None)
    for depth, size in enumerate((32, 16, 8, 4)):
        tuning.game.apply(f"tile_scope@y:{depth}{{size={size}}}")
    monkeypatch.setattr(prefixes, "LONGEST", 60.0)
    monkeypatch.setattr(prefixes.time, "monotonic", count(0, 14).__next__)
    found = time_prefixes(tuning.game, 0, lambda _: None)
    assert len(found) == 5
    assert [found[0].note, found[-1].note] == ["", ""]
    assert any(prefix.note == prefixes.LEFT_OUT for prefix in found)
    assert all((prefix.cost == inf) == (prefix.note == prefixes.LEFT_OUT) for prefix in found)


def test_long_phases_show_themselves(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(phases, "SILENT", 0.01)
    monkeypatch.setattr(phases, "AGAIN", 0.01)
    console = Console(width=80)
    with phases.phase(console, "measuring") as tell:
        tell("the plain kernel")
        time.sleep(0.3)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("measuring: the plain kernel ...\n" * 2)
    with phases.loading():
        time.sleep(0.3)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("loading ...\n" * 2)
    monkeypatch.setattr(phases, "SILENT", 60.0)
    with phases.phase(console, "measuring"), phases.loading():
        pass
    assert capsys.readouterr() == ("", "")
