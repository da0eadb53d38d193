"""Blocks, their marks and the comparison of shown with real output."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import block
from tests.docs.block import Mark, blocks, commands, shows
from tests.docs.page_shell import PageShell

PAGE = """
<!-- output varies: it has times -->
<!-- input: yes.txt -->
```console
$ hermes ps \\
    --json
one
$ echo two
```

Text.

```yaml
model: {}
```
"""


def test_blocks_have_their_marks_and_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page.md").write_text(PAGE)
    monkeypatch.setattr(block, "ROOT", tmp_path)
    console, data = blocks(tmp_path / "page.md")
    assert (console.place, console.language, data.language, data.marks) == ("page.md:4", "console", "yaml", {})
    assert console.marks == {Mark.OUTPUT_VARIES: "it has times", Mark.INPUT: "yes.txt"}
    first, second = commands(console)
    assert (first.text, first.output) == ("hermes ps \\\n    --json", ("one",))
    assert (second.text, second.output) == ("echo two", ())


@pytest.mark.parametrize(
    ("shown", "real", "same"),
    [
        (("a", "c"), "a\nb\nc\n", True),
        (("c", "a"), "a\nb\nc\n", False),
        (("id …, 2 …",), "id 77, 2 turns\n", True),
        (("id …, 2 …",), "id 77, 3 turns\n", False),
        (("a",), "ab\n", False),
        ((), "anything", True),
    ],
)
def test_shown_output_has_to_appear_in_order(shown: tuple[str, ...], real: str, same: bool) -> None:
    assert shows(shown, real) is same


def test_a_shell_keeps_variables_and_directory_and_reports_failures() -> None:
    with PageShell() as shell:
        assert shell.run("export A='x y'; mkdir d; cd d")[0] == 0
        assert shell.run("echo $A; basename $PWD") == (0, "x y\nd\n")
        assert shell.run("cat", "given")[1] == "given"
        assert shell.run("false")[0] == 1
