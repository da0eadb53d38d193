"""Stub module of scripts: valid Python with one typed function for each tool."""

from __future__ import annotations

import ast
from typing import Annotated

from hermes.tools.script.stub import stub_of
from hermes.tools.tool import ToolContext, tool


@tool("x")
async def fetch(
    context: ToolContext,
    *,
    url: Annotated[str, "where"],
    names: list[str] | None = None,
    background: bool = False,
    limit: int = 3,
) -> str:
    """Fetch a "page".

    More.
    """
    return ""


def test_each_tool_is_a_typed_function() -> None:
    module = ast.parse(stub_of((fetch,)))
    made = next(each for each in module.body if isinstance(each, ast.FunctionDef) and each.name == "fetch")
    assert ast.unparse(made.args) == ("url: str, names: list[str] | None=None, limit: int | None=None")
    assert ast.get_docstring(made) == 'Fetch a "page".'
    compile(module, "hermes_tools.py", "exec")
