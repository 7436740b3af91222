"""Configuration of Sphinx: `make docs` builds the pages of the repository as a site that needs no network.

The pages are those that the repository shows: README.md, docs and the results of measurements, with the same links. The
map, docs/README.md, is the table of contents.
"""

import os
import shlex
import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))


# The help of the tools is the same wherever the site is built.
os.environ.update(COLUMNS="110", NO_COLOR="1")
for variable in ("XDG_DATA_HOME", "PDOJO_DATABASE"):
    os.environ.pop(variable, None)

project = "pdojo"
copyright = "the authors of pdojo"
release = metadata.version("pdojo")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinxcontrib.mermaid", "pages"]

# The sources are the repository's; `include_patterns` are the pages.
root_doc = "README"
source_suffix = {".md": "markdown"}
include_patterns = [
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md"),
    *("docs/*.md", "docs/*/*.md", "examples/README.md", "test/README.md", "benchmarks/results/**.md"),
]
exclude_patterns = [".*", "build", "pdojo", "tools", "qa", "typings"]

myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

# Diagrams are drawn when the site is built: pages load no code from elsewhere.
mermaid_cmd = shlex.join([sys.executable, "-m", "mermaidx"])
mermaid_params = ["--quiet", "--background", "white"]
mermaid_output_format = "svg"

# Docstrings are plain text with code in back quotes (`pages.docstring`).
autodoc_default_options = {"exclude-members": "get_irdl_definition, traits"}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True

html_theme = "furo"
html_title = f"pdojo {release}"
html_static_path = ["static"]
html_extra_path = ["extra"]
html_css_files = ["pdojo.css"]
html_show_sourcelink = False
html_copy_source = False
pygments_style = "default"
pygments_dark_style = "monokai"
