"""Tool that posts to chats: the owner's and the admins', and with an approval beyond the home channels."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, Literal

from hermes.domain.errors import BadInputError
from hermes.domain.event.target import TargetKind, parse_targets
from hermes.domain.source import Place
from hermes.domain.text.fence import fenced
from hermes.domain.turn.tool_call import Effect, Gate, Verdict
from hermes.ports.channels import Channels
from hermes.system.random_id import new_marker
from hermes.tools.tool import Tool, ToolContext, ToolError, tool

Post = Callable[[str, Place, str], Awaitable[None]]  # takes a unique name, the place and the text
MAX_TEXT: Final = 20_000
_RULE: Final = "send-message"
_MAX_LISTED: Final = 200
_FREE: Final = (TargetKind.HOME, TargetKind.ALL)  # the owner chose these chats


def gate_of(arguments: Mapping[str, Any], context: ToolContext) -> Gate:
    """Return whether a call may run: posts to other chats than the home channels need an approval."""
    if not context.role.approves:
        return Gate(verdict=Verdict.BLOCK, reason="only the owner and the admins may post to chats")
    if arguments.get("action", "send") == "list":
        return Gate()
    try:
        targets = parse_targets((str(arguments.get("target", "")),))
    except ValueError:
        return Gate()  # the call itself reports it
    rules = tuple(f"{_RULE}:{target}" for target in targets if target.kind not in _FREE)
    if not rules:
        return Gate()
    reason = f"posts to {', '.join(rule.partition(':')[2] for rule in rules)}"
    return Gate(verdict=Verdict.ASK, reason=reason, rules=rules, findings=(reason,), subjects=("",))


def send_message_tool(channels: Channels, post: Post) -> Tool:
    @tool("messaging", effect=Effect.EFFECT, decide=gate_of)
    async def send_message(
        context: ToolContext,
        *,
        action: Annotated[Literal["send", "list"], "send a message, or list the known chats"] = "send",
        target: Annotated[str, "home, PLATFORM, PLATFORM:NAME or PLATFORM:CHAT[:THREAD]; several with commas"] = "",
        text: Annotated[str, "the message, as Markdown"] = "",
    ) -> str:
        """Post a message to another chat, or list the chats that can be reached by name.

        Your ordinary answer already reaches the person you talk to: do not send it with this tool.
        """
        if action == "list":
            return await _listed(channels)
        if not text.strip() or len(text) > MAX_TEXT:
            raise ToolError(f"The text must have 1 to {MAX_TEXT} characters.")
        try:
            places = await channels.places((target,))
        except BadInputError as error:
            raise ToolError(f"Nothing was sent: {error}.") from error
        if not places:
            raise ToolError("Nothing was sent: name a target.")
        for number, place in enumerate(places):
            await post(f"{context.turn}:{context.call}:{number}", place, text)
        return f"Stored for delivery to {'; '.join(place.words for place in places)}."

    return send_message


async def _listed(channels: Channels) -> str:
    """Return the known chats. Their names come from other people."""
    found = await channels.channels()
    lines = [f"{each.platform}:{each.chat} {each.kind} {each.name}".rstrip() for each in found[:_MAX_LISTED]]
    if len(found) > _MAX_LISTED:
        lines.append(f"… and {len(found) - _MAX_LISTED} more")
    return fenced("\n".join(lines), new_marker(), max_chars=MAX_TEXT) if lines else "No chat is known yet."
