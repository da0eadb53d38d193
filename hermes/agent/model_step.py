"""Model step of a turn: send prompt, transcript and tools to the model; report its answer or tool calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from hermes.agent.accounting import costed
from hermes.agent.approval_judge import ApprovalJudge
from hermes.agent.chat_message import MEDIA_TOKENS, encode, read, total_tokens
from hermes.agent.client_tools import ClientTools, client_tools, handed_calls, model_options
from hermes.agent.compression import CompressionSettings, is_due
from hermes.agent.hooks.hooked_calls import hooked
from hermes.agent.image_description import ImageDescriptions
from hermes.agent.image_policy import ImagePolicy, ShownMessages, sees
from hermes.agent.ledger import Ledger
from hermes.agent.models.chain import ModelChain, ModelReply, ReplyListener, Retry
from hermes.agent.models.failure import failure
from hermes.agent.models.model_set import ModelChoice, ModelSet, ModelTerms
from hermes.agent.picture_refusals import PictureRefusals
from hermes.agent.tool_call_parser import NOTHING, Proposed, is_quick, propose_all, with_safe_ids
from hermes.agent.tool_step import Folders
from hermes.domain.access.role import Role
from hermes.domain.child.child import Assignment, is_spent, only_tools
from hermes.domain.errors import ConfigError
from hermes.domain.events import Notice, ReasoningDelta, TextDelta, TextReset
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.session.jobs import ModelJob, ModelReport, RetryReport
from hermes.domain.session.note import step_limit
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.reasoning import Reasoning, fields_of
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.turn.usage import Usage
from hermes.domain.values import dataclass, replace
from hermes.ports.agent import Model, ModelRequest
from hermes.ports.hooks import ToolHooks
from hermes.ports.hub import Hub
from hermes.system.crash_point import reach
from hermes.tools.tool import ToolContext

if TYPE_CHECKING:
    from hermes.tools.toolbox import Toolbox

_NOTHING = EncodedMessage(b"")
Recall: TypeAlias = Callable[[ModelJob], Awaitable[tuple[EncodedMessage, ...]]]  # messages with what is recalled
BYTES_PER_TOKEN = 4  # of text and JSON
TURNS_REMEMBERED = 1000


class TurnEnvironment(Protocol):
    """Toolbox and prompt builder of a turn. Setting it up takes a while."""

    @property
    def toolbox(self) -> Toolbox: ...
    @property
    def build_prompt(self) -> Callable[[ModelJob, Path], Awaitable[str]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingSettings:
    max_replies: int
    compression: CompressionSettings
    compress: bool = True
    vision: str = "auto"  # send images: auto, always or never
    vision_model: str = ""  # describes images for a model that cannot see them; empty: none does
    reasoning: str = ""  # effort, unless the conversation chose one
    terms: Callable[[str, str], ModelTerms]  # of a provider's model
    choice: Callable[[str, str], ModelChoice] = lambda text, _: ModelChoice(model=text)  # of preference and chat


class ModelStep:
    def __init__(
        self,
        *,
        settings: ThinkingSettings,
        workshop: Callable[[], Awaitable[TurnEnvironment]],
        folders: Folders,
        ledger: Ledger,
        hub: Hub,
        sight: ImagePolicy | None = None,
        judge: ApprovalJudge | None = None,
        recall: Recall | None = None,
        family: Callable[[SessionId, Assignment | None], Usage] = lambda *_: Usage(),
        hooks: ToolHooks | None = None,
    ) -> None:
        self._family = family  # what a subagent's parent and the others of its call have spent
        self._hooks = hooks
        self.settings = settings
        self._workshop = workshop
        self._folders = folders
        self._ledger = ledger
        self._hub = hub
        self._sight = sight
        self._judge = judge
        self._recall = recall
        self._descriptions = ImageDescriptions()
        self._refusals = PictureRefusals()
        self._moved: dict[TurnId, int] = {}  # turns that continue with a fallback, and its place in the chain

    async def answer(
        self,
        job: ModelJob,
        models: ModelSet,
        caller: ModelChain,
        said: list[str],
        retried: Callable[[RetryReport], None] = lambda _: None,
    ) -> ModelReport:
        """Ask the model and report its answer. Text is appended to `said` as it arrives."""
        spent = job.spent + self._family(job.session, job.assignment)
        if problem := self._ledger.problem(spent, guest=_guest(job)) or _spent_by_child(job):
            return _failed(job, Failure(kind=FailureKind.BUDGET, message=problem))
        workshop = await self._workshop()
        folder = self._folders.path(job.root, job.role)
        prompt = job.prompt
        if prompt is None:
            prompt = _system(await workshop.build_prompt(job, folder))
        choice = self.settings.choice(job.preferences.model, job.chat)
        chain = models.chain_for(choice)
        chosen, wanted_name = _chosen(choice, chain)
        client = client_tools(job.options)
        tools = client.offered(
            workshop.toolbox.schemas(job.platform, job.role, only_tools(job.assignment)), first=not job.replies
        )
        recalled = job if self._recall is None else replace(job, messages=await self._recall(job))
        request = self._request(recalled, prompt, tools, wanted_name)
        size_bytes = request.size_bytes + len(request.tools)
        first = self._moved.get(job.turn, chosen)
        name = chain[first].name if first else wanted_name or chain[0].name
        terms = self.settings.terms(chain[first].provider, name)
        show = partial(self._shown, models=models, caller=caller, pictured=job.pictured)
        shown = await show(request, name, of=chain[first])
        size_bytes += shown.pictures * MEDIA_TOKENS * BYTES_PER_TOKEN  # their encoded size does not count
        if self.settings.compress and await self._overflows(shown.messages, size_bytes, terms.context_window):
            return _failed(job, failure(FailureKind.CONTEXT_OVERFLOW, "the conversation no longer fits the model"))
        self._moved.pop(job.turn, None)

        async def suited(wanted: ModelRequest, model: str) -> ModelRequest:
            """Return the request for another model, which may differ in vision support."""
            alike = model == name or self._sees(model) == self._sees(name, chain[first])
            messages = (shown if alike else await show(wanted, model)).messages
            return wanted if messages is wanted.messages else replace(wanted, messages=messages, size_bytes=0)

        reach("turn: about to ask the model")
        ask = partial(caller.ask, chain, request, self._listener(job, said, retried), first=first)
        reply = await ask(suited=suited)
        if shown.pictures and isinstance(reply, Failure) and reply.kind is FailureKind.BAD_REQUEST:
            reply = await ask(suited=self._without_pictures)  # the provider may have refused one of them
            if isinstance(reply, ModelReply) and reply.place == first:
                self._refusals.refused(chain[first], name, shown.names)
        elif shown.pictures and isinstance(reply, ModelReply) and reply.place == first:
            self._refusals.accepted(chain[first], name)
        if isinstance(reply, Failure):
            return _failed(job, reply)
        proposed, judging = NOTHING, Usage()
        if reply.done.tool_calls and not job.last:
            self._remember(job.turn, reply.place)
            proposed = await self._proposed(job, reply, workshop.toolbox, folder, client)
            if self._hooks is not None:
                proposed = await hooked(proposed, job, self._hooks)
            if self._judge is not None:
                calls, judging = await self._judge.judged(job, proposed.calls, models, caller)
                proposed = replace(proposed, calls=calls)
        report = self._report(job, reply, proposed, size_bytes)
        report = replace(report, usage=report.usage + judging) if judging != Usage() else report
        return report if job.prompt is not None else replace(report, prompt=prompt)

    async def _shown(
        self,
        request: ModelRequest,
        model: str,
        *,
        models: ModelSet,
        caller: ModelChain,
        pictured: bool,
        of: Model | None = None,
    ) -> ShownMessages:
        """Return the request's messages as this model can use them. `of` is the model that is asked first."""
        if self._sight is None or not pictured:
            return ShownMessages(messages=request.messages)
        messages, sees = request.messages, self._sees(model, of)
        if self.settings.vision_model and not sees:
            describe = partial(self._describe, request.session, models, caller)
            messages = await self._descriptions.told(messages, describe)
        refused = self._refusals.of(of, model) if of else frozenset()
        return await self._sight.shown(messages, sees=sees, without=refused)

    async def _without_pictures(self, request: ModelRequest, _model: str) -> ModelRequest:
        assert self._sight is not None
        messages = (await self._sight.shown(request.messages, sees=False)).messages
        return replace(request, messages=messages, size_bytes=0)

    async def _describe(
        self, session: SessionId, models: ModelSet, caller: ModelChain, question: EncodedMessage
    ) -> str | Failure:
        """Ask the vision model."""
        assert self._sight is not None
        choice = self.settings.choice(self.settings.vision_model, "")
        shown = await self._sight.shown([question], sees=True)
        request = ModelRequest(session=session, messages=shown.messages, model=choice.model)
        reply = await caller.ask(models.chain_for(choice)[:1], request, ReplyListener())  # others may be blind
        if isinstance(reply, Failure):
            return reply
        terms = self.settings.terms(reply.reasoning.provider, reply.reasoning.model)
        self._ledger.add(costed(reply.done.usage, terms.price))
        return reply.text

    def _sees(self, model: str, asked: Model | None = None) -> bool:
        is_blind = asked is not None and self._refusals.is_blind(asked, model)
        return not is_blind and sees(model, self.settings.vision)

    def _remember(self, turn: TurnId, place: int) -> None:
        """Let the turn continue with the fallback that answered; the next turn starts with the first choice again."""
        if place:
            self._moved[turn] = place
            if len(self._moved) > TURNS_REMEMBERED:  # stopped turns do not remove their entry
                del self._moved[next(iter(self._moved))]

    async def _proposed(
        self, job: ModelJob, reply: ModelReply, toolbox: Toolbox, folder: Path, client: ClientTools
    ) -> Proposed:
        context = ToolContext(
            session=job.session,
            turn=job.turn,
            call="",
            platform=job.platform,
            folder=folder,
            media=self._folders.media(job.media_scope),
            role=job.role,
            only=only_tools(job.assignment),
        )
        tool_calls = with_safe_ids(reply.done.tool_calls, job.turn, job.replies)
        cut = reply.done.finish_reason == "length"
        if is_quick(tool_calls, toolbox, job.platform, job.role):
            return propose_all(tool_calls, toolbox, context, cut=cut, client=client)
        skills = await asyncio.to_thread(self._folders.skills, toolbox.names(job.platform, job.role))
        context = replace(context, skills=skills)
        return await asyncio.to_thread(propose_all, tool_calls, toolbox, context, cut=cut, client=client)

    async def _overflows(self, messages: Sequence[EncodedMessage], size_bytes: int, window: int) -> bool:
        """Return whether the request exceeds the window. Count tokens only if it has many bytes."""
        if size_bytes // BYTES_PER_TOKEN <= window:
            return False
        return await asyncio.to_thread(total_tokens, messages) > window

    def _request(self, job: ModelJob, prompt: EncodedMessage, tools: bytes, model: str) -> ModelRequest:
        first = with_instructions(prompt, job.instructions)
        last: tuple[EncodedMessage, ...] = ()
        if job.last:
            last = (encode({"role": "user", "content": step_limit(self.settings.max_replies)}),)
        size_bytes = job.size_bytes or sum(map(len, job.messages))
        offers = not job.last and len(tools) > len(b"[]")
        return ModelRequest(
            session=job.session,
            messages=[first, *job.messages, *last],
            size_bytes=size_bytes + len(first) + sum(map(len, last)),
            options=model_options(job.options, tools=offers, first=not job.replies),
            tools=tools if offers else b"",
            model=model,
            reasoning=job.preferences.reasoning or self.settings.reasoning,
        )

    def _listener(self, job: ModelJob, said: list[str], retried: Callable[[RetryReport], None]) -> ReplyListener:
        session, turn, publish = job.session, job.turn, self._hub.publish

        def heard(text: str) -> None:
            said.append(text)
            publish(TextDelta(session=session, turn=turn, text=text))
            reach("turn: in the middle of an answer")

        def reset() -> None:
            said.clear()
            publish(TextReset(session=session, turn=turn))

        return ReplyListener(
            text=heard,
            reasoning=lambda text: publish(ReasoningDelta(session=session, turn=turn, text=text)),
            reset=reset,
            trouble=lambda text: publish(Notice(session=session, turn=turn, text=text, of_model=True)),
            retried=lambda retry: retried(_retry_report(job, retry)),
        )

    def _report(
        self,
        job: ModelJob,
        reply: ModelReply,
        proposed: Proposed,
        size_bytes: int,
    ) -> ModelReport:
        terms = self.settings.terms(reply.reasoning.provider, reply.reasoning.model)
        usage = costed(reply.done.usage, terms.price)
        self._ledger.add(usage, guest=_guest(job))
        text = reply.text or (
            ""
            if proposed.calls or proposed.handed
            else f"Stopped after {self.settings.max_replies} steps without an answer."
        )
        tokens = usage.prompt_tokens + usage.completion_tokens or (size_bytes + len(text)) // BYTES_PER_TOKEN
        return ModelReport(
            turn=job.turn,
            attempt=job.attempt,
            replies=job.replies,
            message=_assistant(text, proposed.messages or proposed.handed, reply.reasoning),
            text=text,
            model=reply.done.model,
            finish_reason="length" if job.last else reply.done.finish_reason,
            usage=usage,
            calls=proposed.calls,
            context_tokens=tokens,
            context_full=self.settings.compress and self._is_full(tokens, terms.context_window),
            waited_s=reply.waited_s,
            handed=handed_calls(proposed.handed),
            handed_message=_assistant("", proposed.handed, Reasoning())
            if proposed.calls and proposed.handed
            else _NOTHING,
        )

    def _is_full(self, tokens: int, window: int) -> bool:
        return is_due(prompt_tokens=tokens, context_window=window, max_output=0, settings=self.settings.compression)


def _chosen(choice: ModelChoice, chain: Sequence[Model]) -> tuple[int, str]:
    """Return the place in the chain to start at, and the model name for the first model if it is not its own."""
    name = choice.model
    if choice.provider:
        return 0, name
    others = [model.name for model in chain[1:]]
    return (others.index(name) + 1, "") if name in others and name != chain[0].name else (0, name)


def _guest(job: ModelJob) -> str:
    """Return the guest whose own budget counts; empty if there is none."""
    return (job.by or job.session) if job.role is Role.GUEST else ""


def _spent_by_child(job: ModelJob) -> str:
    """Return why a child session may make no further model call; empty if it may."""
    spent = job.assignment is not None and is_spent(job.assignment, job.spent)
    return "this child session has used up its budget" if spent else ""


def _system(text: str) -> EncodedMessage:
    return encode({"role": "system", "content": text})


def with_instructions(prompt: EncodedMessage, instructions: EncodedMessage) -> EncodedMessage:
    """Return the prompt with the client's instructions. Some endpoints accept only one system message."""
    return _system(f"{read(prompt).text}\n\n{read(instructions).text}") if instructions else prompt


def _assistant(text: str, tool_calls: Sequence[dict[str, Any]], reasoning: Reasoning) -> EncodedMessage:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if tool_calls:
        message["tool_calls"] = list(tool_calls)
    return encode({**message, **fields_of(reasoning)})  # last: it is cut off there


def _retry_report(job: ModelJob, retry: Retry) -> RetryReport:
    return RetryReport(
        turn=job.turn,
        attempt=job.attempt,
        replies=job.replies,
        model=retry.model,
        failure=retry.failure,
        tries=retry.tries,
        delay_s=retry.delay_s,
    )


def not_thought(job: ModelJob, error: Exception) -> ModelReport:
    if isinstance(error, ConfigError):  # its text tells the person what to change
        return _failed(job, Failure(kind=FailureKind.INTERNAL, message=str(error)))
    return _failed(job, failure(FailureKind.INTERNAL, f"the model call failed ({type(error).__name__})"))


def _failed(job: ModelJob, why: Failure) -> ModelReport:
    return ModelReport(turn=job.turn, attempt=job.attempt, replies=job.replies, failure=why)
