"""Without a sandbox, file tools are kept from received files of other chats by a gate."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

from hermes.app.factories.turn_environment import _path_gate
from hermes.domain.turn.tool_call import Verdict
from hermes.tools.files.file_tools import file_tools
from hermes.tools.toolbox import Toolbox
from hermes.tools.workplace import Workplace
from tests.tools.workbench import a_context


def test_received_files_of_other_chats_are_blocked(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    for name in ("own", "other", "out"):
        (root / "media" / name).mkdir(parents=True)
        (root / "media" / name / "a.txt").write_text("received")
    (root / "media" / "flat.txt").write_text("received")
    place = Workplace(default_cwd=str(root), home=str(root), hermes_home=str(root))
    toolbox = Toolbox(file_tools(place, partial(_path_gate, place, ())), toolsets={"default": ["file"]})
    context = replace(a_context(root / "work" / "s"), media=root / "media" / "own")

    def verdict(path: str, **more: str) -> Verdict:
        tool = "write_file" if more else "read_file"
        arguments = json.dumps({"path": str(root / "media" / path), **more})
        return toolbox.propose(tool, arguments, context).gate.verdict

    assert verdict("own/a.txt") is Verdict.ALLOW
    for path in ("other/a.txt", "out/a.txt", "flat.txt", ".", "own/../other/a.txt"):
        assert verdict(path) is Verdict.BLOCK
    assert verdict("own/a.txt", content="changed") is Verdict.BLOCK
