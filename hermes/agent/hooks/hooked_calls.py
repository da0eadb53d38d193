"""Hooks before tool calls: their verdicts become the gates of the calls, which are stored before any call runs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hermes.agent.tool_call_parser import Proposed
from hermes.domain.event.hook import PRE_TOOL
from hermes.domain.session.jobs import ModelJob
from hermes.domain.turn.tool_call import Call, Verdict
from hermes.domain.values import replace
from hermes.ports.hooks import ToolHooks, ToolUse
from hermes.system.crash_point import reach


async def hooked(proposed: Proposed, job: ModelJob, hooks: ToolHooks) -> Proposed:
    """Return the calls with the verdicts of the hooks, which are asked for all calls at the same time."""
    arguments = {each["id"]: each["function"]["arguments"] for each in proposed.messages}
    calls = await asyncio.gather(*(_asked(call, arguments[call.id], job, hooks) for call in proposed.calls))
    return replace(proposed, calls=tuple(calls))


async def _asked(call: Call, arguments: str, job: ModelJob, hooks: ToolHooks) -> Call:
    if call.problem or call.gate.verdict is Verdict.BLOCK or not hooks.concern(PRE_TOOL, call.name):
        return call
    use = ToolUse(
        session=job.session,
        turn=job.turn,
        call=call.id,
        tool=call.name,
        arguments=_plain(arguments),
        platform=job.platform,
    )
    gate = await hooks.before(use, call.gate)
    reach("hook: asked before a call")
    whole = call.whole or (f"{call.name}: {arguments}" if gate.verdict is Verdict.ASK else "")
    if gate.verdict is Verdict.BLOCK and call.question:
        call = replace(call, question="", choices=())
    return replace(call, gate=gate, whole=whole)


def _plain(arguments: str) -> dict[str, Any]:
    found = json.loads(arguments or "{}")
    return found if isinstance(found, dict) else {}
