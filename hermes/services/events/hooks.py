"""Hook service: tells hooks of events, and asks them about tool calls.

Lifecycle hooks run beside the turns, from a bounded queue in memory: each event is told at most once, and never
delays a turn. Hooks of tool calls are part of the turn: it waits for them, up to their timeouts.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from loguru import logger

from hermes.domain.cause.cause import EndCause
from hermes.domain.event.hook import (
    COMMAND,
    POST_TOOL,
    PRE_TOOL,
    Hook,
    HookAnswer,
    HookEvent,
    payload,
    stricter,
    with_context,
)
from hermes.domain.events import (
    CallEnded,
    Event,
    PhaseChanged,
    SessionOpened,
    TurnAnswered,
    TurnBegan,
    TurnGaveUp,
)
from hermes.domain.session.state import Phase
from hermes.domain.turn.tool_call import Gate, Verdict
from hermes.domain.values import dataclass
from hermes.ports.given import Clock
from hermes.ports.hooks import ToolHooks, ToolUse
from hermes.services.events.hook_runner import HookRunner

_MAX_PROBLEMS: Final = 10
_MAX_TEXT: Final = 4000  # characters of an answer or a result that hooks get


@dataclass(frozen=True, slots=True, kw_only=True)
class HookProblem:
    hook: str
    event: str
    problem: str
    at: float


class HookService(ToolHooks):
    NOTED: Final = (SessionOpened, PhaseChanged, TurnBegan, CallEnded, TurnAnswered, TurnGaveUp)  # events for `note`

    def __init__(
        self,
        hooks: Sequence[Hook],
        *,
        runner: HookRunner,
        clock: Clock,
        at_once: int,
        max_waiting: int,
        problems: Sequence[str] = (),
    ) -> None:
        self.hooks = [*hooks]
        self.unused = tuple(problems)  # hooks that could not be read
        self._runner = runner
        self._clock = clock
        self._at_once = at_once
        self._max_waiting = max_waiting
        self._queue: deque[tuple[Hook, dict[str, Any]]] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._counts: Counter[str] = Counter()
        self._problems: deque[HookProblem] = deque(maxlen=_MAX_PROBLEMS)
        self._closed = False

    # ------------------------------------------------------------ lifecycle

    def note(self, event: Event) -> None:
        """Queue the hooks of a live event. Never waits."""
        if not self.hooks:
            return
        facts: dict[str, Any]
        match event:
            case SessionOpened():
                facts = {"platform": event.platform, "reason": event.reason, "purpose": event.purpose}
                self.fire(HookEvent.SESSION_START, event.session, facts)
            case PhaseChanged(phase=Phase.ENDED):
                is_reset = event.cause is EndCause.RESET
                facts = {"cause": event.cause.value, "reason": event.reason}
                if is_reset:
                    self.fire(HookEvent.SESSION_RESET, event.session, facts)
                self.fire(HookEvent.SESSION_END, event.session, facts)
            case TurnBegan():
                self.fire(HookEvent.AGENT_START, event.session, {"turn_id": event.turn, "attempt": event.attempt})
            case CallEnded():
                facts = {"turn_id": event.turn, "tool_name": event.name, "outcome": event.outcome.value}
                self.fire(HookEvent.AGENT_STEP, event.session, {**facts, "took_s": round(event.took_s, 3)})
            case TurnAnswered():
                facts = {"turn_id": event.turn, "ok": True, "model": event.model, "response": event.text[:_MAX_TEXT]}
                self.fire(HookEvent.AGENT_END, event.session, facts)
            case TurnGaveUp():
                facts = {"turn_id": event.turn, "ok": False, "problem": event.failure.kind.value}
                self.fire(HookEvent.AGENT_END, event.session, facts)
            case _:
                pass

    def note_command(self, name: str, argument: str, session: str, by: str, ok: bool) -> None:
        facts = {"command": name, "argument": argument[:_MAX_TEXT], "by": by, "ok": ok}
        self.fire(f"{COMMAND}{name}", session, facts)

    def fire(self, event: str, session: str, facts: Mapping[str, Any]) -> None:
        """Queue the hooks of an event. Beyond the limit they are dropped and counted."""
        for hook in self.hooks:
            if not hook.takes(event) or self._closed:
                continue
            if len(self._queue) >= self._max_waiting:
                self._counts["dropped"] += 1
                if self._counts["dropped"] == 1:
                    logger.warning("hooks: {} events wait; further ones are dropped", self._max_waiting)
                continue
            self._queue.append((hook, payload(event, session, self._clock(), facts)))
        self._start_waiting()

    def _start_waiting(self) -> None:
        while self._queue and len(self._running) < self._at_once:
            hook, facts = self._queue.popleft()
            task = asyncio.create_task(self._tell(hook, facts), name=f"hook {hook.name}")
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not self._closed:
            self._start_waiting()

    async def _tell(self, hook: Hook, facts: dict[str, Any]) -> None:
        await self._asked(hook, facts)

    async def _asked(self, hook: Hook, facts: dict[str, Any]) -> HookAnswer:
        answer = await self._runner.run(hook, facts)
        self._counts["run"] += 1
        if answer.problem:
            self._counts["failed"] += 1
            event = str(facts["event"])
            self._problems.append(HookProblem(hook=hook.name, event=event, problem=answer.problem, at=self._clock()))
            logger.warning("hook {}: {}: {}", hook.name, event, answer.problem)
        return answer

    async def close(self, within_s: float = 0.0) -> None:
        """Wait for the hooks that were told, up to a limit, then end them."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        while (self._queue or self._running) and (left := deadline - loop.time()) > 0:
            await asyncio.wait(self._running, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        self._closed = True
        self._counts["dropped"] += len(self._queue)
        self._queue.clear()
        for task in (running := tuple(self._running)):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    # ------------------------------------------------------------ tool calls

    def concern(self, event: str, tool: str) -> bool:
        return any(hook.takes(event) and hook.concerns(tool) for hook in self.hooks)

    async def before(self, use: ToolUse, gate: Gate) -> Gate:
        """Return the gate of a call after its hooks, in their order. The first that blocks is the last one asked."""
        for hook in self._of(PRE_TOOL, use.tool):
            answer = await self._asked(hook, payload(PRE_TOOL, use.session, self._clock(), use.facts()))
            gate = stricter(gate, hook, answer)
            if answer.context:
                gate = with_context(gate, answer.context)
            if gate.verdict is Verdict.BLOCK:
                break
        return gate

    async def after(self, use: ToolUse, result: str, *, ok: bool) -> str:
        """Return what the hooks of a finished call add to its result."""
        found = []
        for hook in self._of(POST_TOOL, use.tool):
            facts = {**use.facts(), "tool_response": result[:_MAX_TEXT], "ok": ok}
            answer = await self._asked(hook, payload(POST_TOOL, use.session, self._clock(), facts))
            found += [text for text in (answer.context, answer.reason) if text]
        return "\n".join(found)

    def _of(self, event: str, tool: str) -> list[Hook]:
        return [hook for hook in self.hooks if hook.takes(event) and hook.concerns(tool)]

    # ------------------------------------------------------------ for operators

    def status(self) -> dict[str, Any]:
        """Return counts and the last problems; empty without hooks."""
        if not self.hooks and not self.unused:
            return {}
        return {
            "hooks": len(self.hooks),
            "waiting": len(self._queue),
            "running": len(self._running),
            **{name: self._counts[name] for name in ("run", "failed", "dropped")},
            "problems": [
                *self.unused,
                *(f"{each.hook}: {each.event}: {each.problem}" for each in self._problems),
            ],
        }

    def listed(self) -> list[dict[str, Any]]:
        return [
            {
                "name": hook.name,
                "events": list(hook.on),
                "kind": "url" if hook.url else "command" if hook.handler is None else "plugin",
                "matcher": hook.matcher,
                "timeout_s": hook.timeout_s,
                "on_failure": "block" if hook.closed else "allow",
            }
            for hook in self.hooks
        ]
