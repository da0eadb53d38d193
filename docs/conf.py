"""Configuration of the documentation site: `make site` builds it from the Markdown files of this repository.

The pages also read well without the site, so they contain no directives. The table of contents is made here.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent

# Captions and pages of the side bar. Each other page in docs/ is added below "More".
CONTENTS: dict[str, tuple[str, ...]] = {
    "Start": ("docs/index", "docs/quickstart", "docs/concepts"),
    "How to": (
        "docs/howto/model",
        "docs/howto/telegram",
        "docs/howto/slack",
        "docs/howto/service",
        "docs/howto/container",
        "docs/howto/backup",
        "docs/howto/upgrade",
        "docs/howto/openai-clients",
        "docs/howto/access",
        "docs/howto/budget",
        "docs/howto/web-search",
        "docs/howto/github-to-slack",
        "docs/howto/tool",
        "docs/howto/adapter",
        "docs/howto/stuck-session",
    ),
    "Help": ("docs/troubleshooting", "docs/faq", "docs/comparison"),
    "Guides": (
        "docs/terminal",
        "docs/dashboard",
        "docs/agent",
        "docs/memory",
        "docs/skills",
        "docs/recall",
        "docs/subagents",
        "docs/goals",
        "docs/execute-code",
        "docs/schedules",
        "docs/events",
        "docs/plugins",
        "docs/mcp",
        "docs/sandbox",
        "docs/chats",
        "docs/screens",
        "docs/models",
        "docs/operations",
        "docs/api",
        "docs/client",
        "docs/clients",
    ),
    "Reference": (
        "docs/commands",
        "docs/reference/commands",
        "docs/reference/slash-commands",
        "docs/reference/settings",
        "docs/reference/environment",
        "docs/reference/endpoints",
        "docs/errors",
        "docs/metrics",
        "docs/glossary",
    ),
    "Project": ("ARCHITECTURE", "CONTRIBUTING", "SECURITY", "docs/decisions/README", "bench/README", "CHANGELOG"),
}

project = "Hermes"
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "bench/README.md"]
exclude_patterns = ["**/.*", "build", "dist", "hermes", "tests"]
extensions = ["myst_parser", "sphinx_copybutton"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header", "misc.highlighting_failure"]  # a console block may show any output
html_theme = "furo"
html_title = "Hermes"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"


def _table_of_contents(_app: Sphinx, page: str, text: list[str]) -> None:
    """Append the side bar to the first page, and the list of decisions to theirs."""
    if page == root_doc:
        listed = {each for pages in CONTENTS.values() for each in pages}
        more = sorted(f"docs/{path.stem}" for path in (ROOT / "docs").glob("*.md"))
        rest = tuple(each for each in more if each not in listed)
        parts = {**CONTENTS, **({"More": rest} if rest else {})}
        text[0] += "".join(map(_toctree, parts, parts.values()))
    elif page == "docs/decisions/README":
        text[0] += _toctree("", tuple(sorted(path.stem for path in (ROOT / "docs/decisions").glob("[0-9]*.md"))))


def _toctree(caption: str, pages: tuple[str, ...]) -> str:
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(("\n\n```{toctree}", *options, "", *pages, "```", ""))


def _first_page(app: Sphinx, failure: Exception | None) -> None:
    """Make the README the page that a web server shows for the directory."""
    if failure is None:
        shutil.copyfile(Path(app.outdir) / f"{root_doc}.html", Path(app.outdir) / "index.html")


def setup(app: Sphinx) -> None:
    app.connect("source-read", _table_of_contents)
    app.connect("build-finished", _first_page)
