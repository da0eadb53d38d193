"""Command `/mcp`: the MCP servers, acceptance of changed tools, and answers to questions of servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hermes.domain.access.role import Role
from hermes.domain.ids import SessionId
from hermes.domain.mcp.mcp_question import McpQuestion, in_words
from hermes.domain.text.visible_text import visible
from hermes.ports.mcp_servers.mcp_control import McpServers
from hermes.services.commands.context import CommandContext, Handler
from hermes.services.commands.reply import CommandReply, refused

_MAX_TOOLS: Final = 60
_MAX_ABOUT: Final = 500
_OWNERS: Final = ("show", "test", "approve", "stop")


async def manage(context: CommandContext) -> CommandReply:
    mcp = context.services.mcp
    if mcp is None:
        return CommandReply(text="This Hermes has no MCP client.")
    word, _, rest = context.argument.partition(" ")
    word, rest = word.lower(), rest.strip()
    if word in ("answer", "decline", "questions"):
        return await _question(context, mcp, word, rest)
    if not context.caller.role.includes(Role.USER):
        return refused("The list of MCP servers is for users, admins and the owner.")
    if word in ("", "list"):
        return await _listed(mcp, problems=context.caller.role.approves)
    if word not in _OWNERS or not rest:
        return context.usage("Give list, questions, or an action and a name.")
    if not context.caller.role.approves:
        return refused("Changes of MCP servers are for the owner and admins.")
    return await _acted(mcp, word, rest)


async def _listed(mcp: McpServers, *, problems: bool) -> CommandReply:
    """List the servers. Only the owner and admins see problems: the words of a server can hold secrets."""
    rows = await mcp.listed()
    if not rows:
        return CommandReply(text="No MCP server is configured; the owner adds one with `hermes mcp add`.")
    return CommandReply(text="\n".join(_line(row if problems else {**row, "problem": ""}) for row in rows))


def _line(row: Mapping[str, Any]) -> str:
    tools = f"{row['tool_count']} tools" if row["is_learned"] else "tools not known yet"
    waiting = f", {row['waiting_for_approval']} wait for /mcp approve" if row["waiting_for_approval"] else ""
    problem = f": {visible(row['problem'])}" if row["problem"] else ""
    return f"{row['name']} ({row['transport']}): {row['state']}, {tools}{waiting}{problem}"


async def _acted(mcp: McpServers, word: str, name: str) -> CommandReply:
    if word == "approve":
        approved = (await mcp.approve(name))["approved"]
        return CommandReply(text=f"Accepted: {', '.join(approved)}." if approved else "Nothing waited for approval.")
    if word == "stop":
        return CommandReply(text=_line(await mcp.stop(name)))
    shown = await (mcp.tested(name) if word == "test" else mcp.shown(name))
    lines = [_line(shown)]
    for tool in shown["tools"][:_MAX_TOOLS]:
        asks = "" if not tool["asks"] else ", asks"
        about = visible(" ".join(tool["description"].split()))
        if tool["standing"] == "approved":
            lines.append(f"- {tool['name']}{asks}: {about[:100]}")
        else:
            why = f" ({tool['finding']})" if tool["finding"] else ""
            lines.append(f"- {tool['name']}, {tool['standing']}{why}: {about[:_MAX_ABOUT]}")
    return CommandReply(text="\n".join(lines))


# ------------------------------------------------------------ questions


async def _question(context: CommandContext, mcp: McpServers, word: str, rest: str) -> CommandReply:
    if word == "questions":
        found = [each for each in await mcp.open_questions() if await _may_answer(context, each)]
        text = "\n\n".join(in_words(each) for each in found)
        return CommandReply(text=text or "No MCP server waits for an answer.")
    name, _, text = rest.partition(" ")
    if not name or (word == "answer" and not text.strip()):
        return context.usage("Give the id of the question, and the answer.")
    question = await mcp.question(name)
    if not await _may_answer(context, question):
        return refused("This question is for another conversation.")
    answered, waited = await mcp.answer(name, text if word == "answer" else None)
    if waited:
        return CommandReply(text=f"{answered.server} has your answer.")
    return CommandReply(
        text=f"Your answer is stored. The call that needed it has ended; {answered.server} gets the answer when the "
        "agent makes that call again."
    )


async def _may_answer(context: CommandContext, question: McpQuestion) -> bool:
    """Return whether the question belongs to this conversation; the owner and admins may answer all."""
    if context.caller.role.approves:
        return True
    session = context.session
    if session is None:
        return False
    if session.id == question.session:
        return True
    view = await context.sessions.view(session.id)
    return SessionId(question.session) in view.lineage


HANDLERS: Mapping[str, Handler] = {"mcp": manage}
