"""Generated SKILL.md files, valid and broken, from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

_NAMES = (
    "pdf",
    "pdf-tools",
    "a",
    "ein-werkzeug",
    "über",
    "技能",
    "v2",
    "x" * 64,
    "x" * 65,
    "Pdf",
    "-a",
    "a-",
    "a--b",
    "a_b",
    "1",
)
_TEXTS = (
    "Reads PDFs.",
    '"quoted: with a colon"',
    "'single quoted'",
    "with # hash",
    "with#hash",
    "colon: inside",
    "a --- b",
    "ends with:",
    "- dash first",
    "[flow, list]",
    "{flow: map}",
    "*alias",
    "&anchor text",
    "!tag text",
    "!!str text",
    "~",
    "null",
    "true",
    "1.0",
    "2020-01-01",
    "0x1F",
    "%percent",
    "@at",
    "`tick`",
    "? question",
    "| pipe",
    "folded >",
    "\n  on the next line",
    "|\n  block\n  of lines",
    ">-\n  folded\n  lines",
    '"escaped \\" quote"',
    '"tab\\tnewline\\n"',
    "tab\tinside",
    "\u00e4\u00f6\u00fc \u6f22\u5b57 \U0001f600",
    "trailing space ",
    '""',
    "''",
    "",
    "x" * 1024,
    "x" * 1025,
    '"unclosed',
    "'unclosed",
    "a\n  continued",
    "a\ncontinued",
    "100%",
    "a, b, c",
    "C:\\path",
    "http://example.org/a?b=c",
    "<<",
    "=",
    ">",
    "|",
)
_EXTRA = (
    "license: MIT",
    "license: ''",
    "license:\n  - MIT\n  - BSD",
    "compatibility: Needs Python 3.11",
    "compatibility: " + "x" * 501,
    "compatibility:\n  - a",
    "allowed-tools: Bash(git:*) Read",
    "allowed-tools:\n  - Read",
    "metadata:\n  author: me\n  version: '1.0'",
    "metadata:\n  author: me\n  version: 1.0",
    "metadata:\n  hermes:\n    tags:\n      - a\n      - b",
    "metadata: text",
    "metadata:\n  - a",
    "metadata:\n",
    "metadata: {}",
    "platforms:\n  - linux",
    "name: twice",
    "# a comment",
    "  indented: wrongly",
    "\tname: tab",
    "key without colon",
    "? complex\n: value",
    "a: &x 1\nb: *x",
    "<<: text",
    "1: number",
    "true: flag",
    "...",
    "%YAML 1.2",
)
_BODIES = ("", "\n# Steps\n\nDo it.\n", "\n---\n\nmore --- text\n", "no newline first", "\n\u200b\n")


def skill_texts(seed: int, count: int) -> Iterator[tuple[str, str]]:
    """Yield folder names and texts of SKILL.md."""
    random = Random(seed)
    for _ in range(count):
        name = random.choice(_NAMES)
        folder = name if random.random() < 0.9 else "another"
        lines = [f"name: {name}", f"description: {random.choice(_TEXTS)}"]
        lines += random.sample(_EXTRA, random.choice((0, 0, 1, 1, 2)))
        if random.random() < 0.2:
            lines.append(f"license: {random.choice(_TEXTS)}")
        if random.random() < 0.3:
            random.shuffle(lines)
        if random.random() < 0.05:
            lines.remove(random.choice(lines))
        opening, closing = "---\n", "\n---"
        if random.random() < 0.1:
            opening, closing = random.choice(
                (("---", "\n---"), ("\n---\n", "\n---"), ("--- \n", "\n---"), ("---\n", "\n"))
            )
        text = f"{opening}{chr(10).join(lines)}{closing}{random.choice(_BODIES)}"
        yield folder, text.replace("\n", "\r\n") if random.random() < 0.05 else text
