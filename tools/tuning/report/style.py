"""The style of a report: for wide pages and phones, light and dark."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --ground: #fcfcfa; --text: #1d1f21; --faint: #61676e; --line: #d9dbd7; --panel: #f2f3ef;
  --gone: #fbe3df; --come: #dff2e1; --accent: #1f5fa8; --second: #b3541e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #16181b; --text: #e4e6e8; --faint: #9aa1a9; --line: #363b41; --panel: #1f2327;
    --gone: #4a2522; --come: #1e3d26; --accent: #79b4f2; --second: #f0a06b;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1rem; max-width: 76rem; background: var(--ground); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: break-word;
}
h1 { font-size: 1.5rem; margin: .5rem 0; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 .5rem; padding-top: .5rem; border-top: 2px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.8rem 0 .4rem; }
nav a { margin-right: .9rem; }
a { color: var(--accent); }
.note { color: var(--faint); margin: .3rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
.number { text-align: right; white-space: nowrap; }
pre {
  background: var(--panel); padding: .7rem; margin: .3rem 0; overflow-x: auto; font-size: .78rem; line-height: 1.4;
  border-radius: .3rem;
}
code, .move { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.move { font-size: .82rem; }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: .7rem; }
.sides > * { min-width: 0; }
.row { display: block; min-height: 1.4em; }
.gone { background: var(--gone); }
.come { background: var(--come); }
details > summary { cursor: pointer; color: var(--accent); margin: .4rem 0; }
.warning { color: var(--second); }
figure { margin: .6rem 0; }
figure svg { display: block; width: 100%; height: auto; max-width: 56rem; color: var(--text); }
@media (max-width: 720px) {
  body { padding: .7rem; font-size: 15px; }
  .sides { grid-template-columns: 1fr; }
  .gap { display: none; }
}
@media print { details { display: none; } }
"""
