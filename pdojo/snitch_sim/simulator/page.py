"""A self-contained HTML page of a trace: figures, the source with its lines' costs, every cycle."""

from __future__ import annotations

import html
import json

from pdojo.snitch_sim.simulator.causes import DESCRIPTIONS
from pdojo.snitch_sim.simulator.report import by_cycle, line_figures
from pdojo.snitch_sim.simulator.result import Result

_STYLE = """
body { font: 14px system-ui, sans-serif; margin: 24px; color: #1b1f24; background: #fff }
h1 { font-size: 20px }
h2 { font-size: 16px; margin-top: 28px }
table { border-collapse: collapse }
td, th { padding: 1px 10px 1px 0; text-align: left; vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
td.c { font: 12px ui-monospace, Consolas, monospace; white-space: pre }
td.w { color: #a55a10 }
.bar { display: inline-block; height: 9px; background: #3b7dd8 }
.wait { background: #e08a2e }
canvas { width: 100%; height: 90px; border: 1px solid #d0d7de }
#cycles tr:nth-child(even) { background: #f6f8fa }
button, input { font: inherit }
"""

# Columns of a data row: cycle; instruction and cause of the core, then of the FP subsystem; streams. -1 stands for no
# instruction, 0 for no cause.
_SCRIPT = """
const by = id => document.getElementById(id);
const data = JSON.parse(by('data').textContent), rows = data.rows, page = 200;
let at = 0;

const cell = (index, cause) => index < 0 ? '<td></td>'
  : cause ? '<td class="c w">- ' + data.causes[cause] + '</td>'
  : '<td class="c">' + data.text[index] + '</td>';

function show() {
  const part = rows.slice(at, at + page);
  const head = ['cycle', 'streams', 'core', 'FP subsystem'].map(title => '<th>' + title + '</th>');
  by('cycles').innerHTML = '<tr>' + head.join('') + '</tr>' + part.map(
    r => '<tr><td class=n>' + r[0] + '</td><td class=c>' + r[5] + '</td>'
      + cell(r[1], r[2]) + cell(r[3], r[4]) + '</tr>'
  ).join('');
  by('where').textContent = rows.length
    ? 'rows ' + (at + 1) + ' to ' + (at + part.length) + ' of ' + rows.length : 'nothing was traced';
}

function go(to) {
  at = Math.max(0, Math.min(rows.length - 1, to));
  show();
}

function find(cycle) {
  const found = rows.findIndex(r => r[0] >= cycle);
  go(found < 0 ? rows.length - 1 : found);
}

const canvas = by('strip');
function paint() {
  const w = canvas.width = canvas.clientWidth, h = canvas.height = 90, g = canvas.getContext('2d');
  const bins = Math.min(w, data.cycles) || 1, per = data.cycles / bins;
  for (const [column, base, colour] of [[3, 44, '#3b7dd8'], [1, h, '#57a65b']]) {
    const issued = new Array(bins).fill(0);
    for (const r of rows)
      if (r[column] >= 0 && !r[column + 1]) issued[Math.min(bins - 1, Math.floor(r[0] / per))]++;
    g.fillStyle = colour;
    issued.forEach((count, b) => {
      const height = 44 * Math.min(1, count / per);
      g.fillRect(b * w / bins, base - height, Math.max(1, w / bins), height);
    });
  }
}

canvas.onclick = e => find(Math.floor(e.offsetX / canvas.clientWidth * data.cycles));
window.onresize = paint;
by('back').onclick = () => go(at - page);
by('on').onclick = () => go(at + page);
by('to').onchange = e => find(+e.target.value);
paint();
show();
"""


def page(result: Result) -> str:
    """The page for a simulation's result with `trace=True`."""
    title = html.escape(result.program.source)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style></head><body>
<h1>{title}: {result.cycles} cycles</h1>
{_figures(result)}
<h2>Source</h2>
{_source(result)}
<h2>Cycles</h2>
<p>Issue rate of the FP subsystem (above) and the core (below); click to go there.</p><canvas id="strip"></canvas>
<p><button id="back">back</button> <button id="on">on</button>
cycle <input id="to" size="8"> <span id="where"></span></p>
<table id="cycles"></table>
<script type="application/json" id="data">{_data(result)}</script><script>{_SCRIPT}</script>
</body></html>
"""


def _figures(result: Result) -> str:
    rows = [
        ("the core returned after", result.core_cycles, "cycles"),
        ("instructions", result.instructions, f"{result.instructions_per_cycle:.3f} a cycle"),
        ("FPU instructions", result.fpu_operations, f"utilisation {result.utilisation:.3f}"),
        ("floating-point operations", result.flops, f"{result.flops / max(1, result.cycles):.3f} a cycle"),
        ("waits for a bank or port", result.bank_conflicts, "cycles of requests"),
    ]
    for unit, stalls in (("FP subsystem", result.fp_stalls), ("core", result.core_stalls)):
        for cause, cycles in sorted(stalls.items(), key=lambda item: -item[1]):
            rows.append((f"{unit} waits: {cause}", cycles, DESCRIPTIONS[cause]))
    body = "".join(f'<tr><td>{a}</td><td class="n">{b}</td><td>{html.escape(c)}</td></tr>' for a, b, c in rows)
    return f"<table>{body}</table>"


def _source(result: Result) -> str:
    figures = line_figures(result)
    most = max((count + sum(stalls.values()) for count, stalls in figures.values()), default=1) or 1
    rows: list[str] = []
    for number, text in enumerate(result.program.text.splitlines(), 1):
        count, stalls = figures.get(number, (0, {}))
        waited = sum(stalls.values())
        bars = f'<span class="bar" style="width:{160 * count / most:.0f}px"></span>'
        bars += f'<span class="bar wait" style="width:{160 * waited / most:.0f}px"></span>'
        causes = ", ".join(f"{cause} {cycles}" for cause, cycles in sorted(stalls.items(), key=lambda item: -item[1]))
        rows.append(
            f'<tr><td class="n">{number}</td><td class="c">{html.escape(text)}</td><td class="n">{count or ""}</td>'
            f'<td class="n">{waited or ""}</td><td>{bars if count or waited else ""}</td>'
            f'<td class="w">{causes}</td></tr>'
        )
    head = (
        '<tr><th class="n">line</th><th></th><th class="n">issued</th><th class="n">waited</th><th></th><th></th></tr>'
    )
    return f"<table>{head}{''.join(rows)}</table>"


def _data(result: Result) -> str:
    causes = ["", *DESCRIPTIONS]
    at, moved = by_cycle(result)
    rows: list[list[int | str]] = []
    for cycle in sorted(at):
        row: list[int | str] = [cycle]
        for unit in ("core", "fp"):
            event = at[cycle].get(unit)
            row += (-1, 0) if event is None else (event.index, causes.index(event.cause))
        rows.append([*row, moved.get(cycle, "")])
    texts = [html.escape(" ".join(i.text.split())) for i in result.program.instructions]
    data = {"cycles": result.cycles, "causes": causes, "text": texts, "rows": rows}
    return json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
