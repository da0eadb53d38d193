"""Requests that MCP servers send to Hermes during a tool call: model calls (sampling) and questions (elicitation).

A request belongs to the call during which it arrives. If calls of several conversations are in flight, the protocol
does not say which one it is: the request is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from loguru import logger

from hermes.domain.access.role import Role
from hermes.domain.errors import HermesError
from hermes.domain.mcp.mcp_question import QuestionState
from hermes.domain.mcp.rate_window import RateWindow
from hermes.domain.mcp.server_spec import SamplingSpec
from hermes.domain.values import dataclass
from hermes.mcp.questions import McpQuestions, values_of
from hermes.mcp.server import CALLED, ActiveCall
from hermes.tools.tool import ToolContext

if TYPE_CHECKING:
    from hermes.mcp.server import McpServer

_INVALID_REQUEST = -32600
_REFUSED_BY_CLIENT = -1  # the code that the protocol's examples use for a refused model call
MAX_SAMPLED_CHARS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRequest:
    """A model call that a server asks for."""

    messages: tuple[tuple[str, str], ...]  # role and text
    system: str
    max_tokens: int
    temperature: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledText:
    text: str
    model: str


class Complete(Protocol):
    async def __call__(self, context: ToolContext, spec: SamplingSpec, request: SampleRequest) -> SampledText:
        """Call the model for the person of a turn. Raises HermesError."""


class ServerRequests:
    def __init__(self, questions: McpQuestions, complete: Complete, clock: Callable[[], float]) -> None:
        self._questions = questions
        self._complete = complete
        self._clock = clock
        self._windows: dict[str, RateWindow] = {}

    async def sample(self, server: McpServer, params: Any) -> Any:
        import mcp_types  # noqa: PLC0415 - part of the SDK, loaded when a server runs

        spec = server.spec.sampling
        call = _call_of(server)
        if refusal := self._sampling_refusal(server, call, params):
            logger.warning("mcp {}: model call refused: {}", server.name, refusal)
            return mcp_types.ErrorData(code=_REFUSED_BY_CLIENT, message=refusal)
        assert call is not None
        request = SampleRequest(
            messages=tuple((each.role, _text(each)) for each in params.messages),
            system=params.system_prompt or "",
            max_tokens=min(params.max_tokens, spec.max_tokens_cap),
            temperature=params.temperature,
        )
        try:
            answered = await self._complete(call.context, spec, request)
        except HermesError as error:
            logger.warning("mcp {}: model call failed: {}", server.name, error)
            return mcp_types.ErrorData(code=_REFUSED_BY_CLIENT, message="the model call failed")
        logger.info("mcp {}: had a model call in session {}", server.name, call.context.session)
        content = mcp_types.TextContent(type="text", text=answered.text)
        return mcp_types.CreateMessageResult(
            role="assistant", content=content, model=answered.model, stop_reason="endTurn"
        )

    def _sampling_refusal(self, server: McpServer, call: ActiveCall | None, params: Any) -> str:
        spec = server.spec.sampling
        if call is None:
            return "a model call is possible only during one tool call of one conversation"
        if not (call.context.role or Role.GUEST).includes(spec.role):
            return f"a model call needs a person with the role {spec.role} or higher"
        if params.tools:
            return "model calls with tools are not supported"
        if any(_text(each) == "" for each in params.messages) or not params.messages:
            return "a model call must consist of text"
        if sum(len(_text(each)) for each in params.messages) + len(params.system_prompt or "") > MAX_SAMPLED_CHARS:
            return "the model call is too long"
        window = self._windows.get(server.name) or RateWindow(most=spec.max_rpm)
        admitted = RateWindow(most=spec.max_rpm, times=window.times).admit(self._clock())
        if admitted is None:
            return f"only {spec.max_rpm} model calls a minute are allowed"
        self._windows[server.name] = admitted
        return ""

    async def elicit(self, server: McpServer, params: Any) -> Any:
        import mcp_types  # noqa: PLC0415

        call = _call_of(server)
        if call is None:
            logger.warning("mcp {}: question refused: it belongs to no single tool call", server.name)
            return mcp_types.ElicitResult(action="cancel")
        form = getattr(params, "requested_schema", None)
        call.pause(True)
        try:
            question = await self._questions.ask(
                session=call.context.session,
                server=server.name,
                message=params.message,
                schema=form if isinstance(form, dict) else None if form is None else form.model_dump(mode="json"),
                url=getattr(params, "url", None) or "",
            )
        except HermesError as error:
            logger.warning("mcp {}: question not asked: {}", server.name, error)
            return mcp_types.ErrorData(code=_INVALID_REQUEST, message="the question could not be asked")
        finally:
            call.pause(False)
        if question.state is QuestionState.DECLINED:
            return mcp_types.ElicitResult(action="decline")
        return mcp_types.ElicitResult(action="accept", content=None if question.url else values_of(question))


def _call_of(server: McpServer) -> ActiveCall | None:
    """Return the call that a request belongs to; None if there is none, or several conversations have one."""
    own = CALLED.get()
    if own is not None:
        return own
    sessions = {call.context.session for call in server.active.values()}
    return next(reversed(server.active.values())) if len(sessions) == 1 else None


def _text(message: Any) -> str:
    """Return the text of a message; empty if it has anything else."""
    blocks = message.content_as_list
    if any(getattr(each, "type", "") != "text" for each in blocks):
        return ""
    return "\n".join(each.text for each in blocks)
