"""What the site adds to the pages: a table of contents from the map, help of tools, docstrings, colours of kernels."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from pygments.lexer import RegexLexer, bygroups
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Text
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_id

MAP = "docs/README"
RESULTS = "benchmarks/results"
_SECTION = re.compile(r"^## (.*)$", re.MULTILINE)
_LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+\.md)\)")
_QUOTED = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_SITE = re.compile(r"^<!-- site(?: if (\w+))?\n(.*?)^-->$", re.MULTILINE | re.DOTALL)
"""A comment with what only the site has, perhaps only where a package is installed."""


class NotationLexer(RegexLexer):
    """Colours of kernels in the notation."""

    name = "pdojo notation"
    aliases = ("pdojo",)
    tokens = {  # noqa: RUF012  # as in its base class
        "root": [
            (r"#.*", Comment),
            (r"(kernel)( +)(\w+)", bygroups(Keyword, Text, Name.Function)),
            (r"\b(heap|stack|shared|register|table|const|align|machine|numerics|inf)\b", Keyword),
            (r"\b(f64|f32|f16|bf16|i64|i32|i16|i8|i1)\b", Keyword.Type),
            (r"(\d+)(:\w+(?:\(\w+\))?)", bygroups(Number, Keyword)),
            (r"\d+(\.\d+)?(e[-+]?\d+)?", Number),
            (r"\{\d+\}", Name.Variable),
            (r"\w+(?=\()", Name.Builtin),
            (r"\w+", Name),
            (r"[-+*/=<>|&%:]+", Operator),
            (r"\s+", Text),
            (r".", Text),
        ]
    }


class MlirLexer(TextLexer):
    """MLIR without colours."""

    aliases = ("mlir",)


def contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Add what only the site has: comments `site`, the table of contents on the first page, those of folders."""
    source[0] = _SITE.sub(lambda found: "" if found[1] and find_spec(found[1]) is None else found[2], source[0])
    if page == app.config.root_doc:
        text = _text(app, MAP)
        seen = {page, *(below for folder in app.env.found_docs if _is_folder(folder) for below in _linked(app, folder))}
        source[0] += _tree("", [MAP], seen)
        parts = _SECTION.split(text)
        for title, part in zip(parts[1::2], parts[2::2], strict=True):
            source[0] += _tree(title, _linked(app, MAP, part), seen)
        others = sorted(app.env.found_docs - seen)
        source[0] += _tree("Project", [each for each in others if not each.startswith(RESULTS)], seen)
        source[0] += _tree("Measurements", others, seen)
    elif _is_folder(page):
        source[0] += _tree("", _linked(app, page), {page})


def _is_folder(page: str) -> bool:
    """True for a page with the table of contents of its folder."""
    return page.endswith("/README") and page != MAP


def _text(app: Sphinx, page: str) -> str:
    return (Path(app.srcdir) / f"{page}.md").read_text(encoding="utf-8")


def _linked(app: Sphinx, page: str, text: str | None = None) -> list[str]:
    """The pages that the tables and lists of a page link, in their order; for a folder's page, those of the folder."""
    root = Path(app.srcdir).resolve()
    folder = root / Path(page).parent
    lines = (_text(app, page) if text is None else text).splitlines()
    links = (link for line in lines if line.startswith(("|", "-")) for link in _LINK.findall(line))
    targets = [(folder / link).resolve() for link in links]
    inside = [each for each in targets if each.is_relative_to(folder if _is_folder(page) else root)]
    names = dict.fromkeys(str(each.relative_to(root).with_suffix("")) for each in inside)
    return [name for name in names if name in app.env.found_docs]


def _tree(caption: str, pages: list[str], seen: set[str]) -> str:
    new = [page for page in pages if page not in seen]
    seen.update(new)
    if not new:
        return ""
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["\n\n```{toctree}", *options, "", *(f"/{page}" for page in new), "```\n"])


def folders(app: Sphinx, document: nodes.document) -> None:
    """A link to a folder of the repository, which the site does not have, becomes text."""
    root = Path(app.srcdir).resolve()
    here = (root / app.env.docname).parent
    for link in list(document.findall(pending_xref)):
        target = (here / str(link["reftarget"])).resolve()
        if link["reftype"] == "myst" and target.is_dir() and target.is_relative_to(root):
            link.replace_self(link.children)


def docstring(app: Sphinx, what: str, name: str, it: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text: back quotes are code, and so are indented lines."""
    found: list[str] = []
    block = ""
    for line in lines:
        kind = "code" if line.startswith("    ") else "session" if line.startswith(">>>") else ""
        if not line.strip():
            # Indented lines go on after a blank one, a session of Python ends.
            block = block if block == "code" else ""
        elif block == "code" and kind != "code":
            found.append("")
            block = kind
        elif block != "session":
            if kind == "code" and block != "code":
                found += ["", "::", ""]
            block = kind
        found.append(line if block else _prose(line))
    lines[:] = found


def _prose(line: str) -> str:
    pieces = _QUOTED.split(line)
    plain = [re.sub(r"[*|\\]|_(?!\w)", r"\\\g<0>", piece) for piece in pieces[::2]]
    coded = [rf"\ ``{piece}``\ " for piece in pieces[1::2]]
    return "".join(a + b for a, b in zip(plain, [*coded, ""], strict=True))


class ToolHelp(SphinxDirective):
    """The help of every tool and of its commands, from the parsers."""

    def run(self) -> list[nodes.Node]:
        """A section for each tool."""
        from pdojo_tools.completion import tool_parsers

        found: list[nodes.Node] = []
        for name, parser in sorted(tool_parsers().items()):
            helps = [parser.format_help(), *(each.format_help() for each in parser.commands().values())]
            identifier = make_id(self.env, self.state.document, "", name)
            section = nodes.section(ids=[identifier], names=[name])
            section += nodes.title(name, name)
            section += [nodes.literal_block(text, text, language="text") for text in helps]
            self.state.document.note_implicit_target(section, section)
            found.append(section)
        return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Register all of it."""
    app.add_lexer("pdojo", NotationLexer)
    app.add_lexer("mlir", MlirLexer)
    app.add_directive("tool-help", ToolHelp)
    app.connect("source-read", contents)
    app.connect("doctree-read", folders)
    app.connect("autodoc-process-docstring", docstring)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
