"""View model of a conversation: a pure reducer from events of the daemon to blocks on the screen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from hermes.domain.media.reference import named_by
from hermes.domain.values import dataclass, replace


class BlockKind(StrEnum):
    USER = "user"
    ANSWER = "answer"
    TOOL = "tool"
    NOTICE = "notice"


class Delivery(StrEnum):
    """State of a message that is not part of the conversation yet."""

    SENDING = "sending"
    KEPT = "kept"  # no daemon runs; it is sent when one is back
    QUEUED = "queued"
    STEERING = "steering"
    INTERRUPTING = "interrupting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One part of the conversation. `is_open`: more of it is expected."""

    key: str
    kind: BlockKind
    text: str = ""
    title: str = ""
    outcome: str = ""
    is_open: bool = False
    name: str = ""  # of a tool
    result: str = ""  # of a tool, as the model reads it
    took_s: float = 0.0
    pictures: tuple[str, ...] = ()  # of a message: paths, or names in the media store


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingMessage:
    """Message that was typed and has not started its turn."""

    key: str
    text: str
    state: Delivery
    turn: str = ""  # once the daemon has stored it
    pictures: tuple[str, ...] = ()  # paths


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPrompt:
    """Approval or question that waits for the person."""

    call: str
    name: str
    question: str
    choices: tuple[str, ...]
    approval: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatView:
    session: str
    blocks: tuple[Block, ...] = ()
    turn: str = ""  # that is being answered
    pending: tuple[PendingMessage, ...] = ()
    prompt: OpenPrompt | None = None
    ended: frozenset[str] = frozenset()  # turns whose events were all seen
    earliest: int | None = None  # position of the first message here; None: there is no earlier one

    def block(self, key: str) -> Block | None:
        return next((each for each in reversed(self.blocks) if each.key == key), None)


def with_notice(view: ChatView, text: str) -> ChatView:
    number = sum(block.key.startswith("notice.") for block in view.blocks)
    return _added(view, Block(key=f"notice.{number}", kind=BlockKind.NOTICE, text=text))


# ---------------------------------------------------------------- messages of the person


def with_message(view: ChatView, turn: str, text: str, pictures: tuple[str, ...] = ()) -> ChatView:
    """Return the view with the message of a turn; unchanged if it is shown already."""
    return _added(view, Block(key=f"{turn}.user", kind=BlockKind.USER, text=text, pictures=pictures))


def with_pending(view: ChatView, message: PendingMessage) -> ChatView:
    """Return the view with a pending message added or changed."""
    others = [each for each in view.pending if each.key == message.key or not _same_turn(each, message)]
    if any(each.key == message.key for each in others):
        return replace(view, pending=tuple(message if each.key == message.key else each for each in others))
    return replace(view, pending=(*others, message))


def without_pending(view: ChatView, key: str) -> ChatView:
    return replace(view, pending=tuple(each for each in view.pending if each.key != key))


def _same_turn(one: PendingMessage, other: PendingMessage) -> bool:
    return bool(one.turn) and one.turn == other.turn


def _begun(view: ChatView, turn: str) -> ChatView:
    """Move the pending message of a turn into the conversation."""
    found = next((each for each in view.pending if each.turn == turn), None)
    if found is None:
        return view
    view = without_pending(view, found.key)
    return with_message(view, turn, found.text, found.pictures) if found.text or found.pictures else view


# ---------------------------------------------------------------- stored messages


def with_transcript(view: ChatView, messages: list[Mapping[str, Any]]) -> ChatView:
    """Return the view with stored messages, oldest first."""
    for each in messages:
        key, text = f"stored.{each['seq']}", content_text(each.get("content"))
        pictures = content_pictures(each.get("content"))
        match each["role"]:
            case "user" if each.get("note"):
                view = _added(view, Block(key=key, kind=BlockKind.NOTICE, text=text))
            case "user" if view.block(f"{each.get('turn')}.user") is None and each.get("turn"):
                view = with_message(view, str(each["turn"]), text, pictures)
            case "user":
                view = _added(view, Block(key=key, kind=BlockKind.USER, text=text, pictures=pictures))
            case "assistant":
                view = _added(view, Block(key=key, kind=BlockKind.ANSWER, text=text)) if text else view
                view = _with_calls(view, each)
            case "tool":
                view = with_result(view, each)
            case _:
                pass
    return view


def with_earlier(view: ChatView, messages: list[Mapping[str, Any]], earliest: int | None) -> ChatView:
    """Return the view with stored messages before its first block."""
    blocks = with_transcript(ChatView(session=view.session), messages).blocks
    earlier = tuple(each for each in blocks if view.block(each.key) is None)
    return replace(view, blocks=(*earlier, *view.blocks), earliest=earliest)


def _with_calls(view: ChatView, message: Mapping[str, Any]) -> ChatView:
    for call in message.get("tool_calls") or ():
        made = call.get("function") or {}
        name = str(made.get("name") or "")
        title = gist(str(made.get("arguments") or ""))
        key = f"{message.get('turn')}.{call.get('id')}"
        view = _added(view, Block(key=key, kind=BlockKind.TOOL, name=name, title=title))
    return view


def with_result(view: ChatView, message: Mapping[str, Any]) -> ChatView:
    """Return the view with the stored result of a tool call."""
    block = view.block(f"{message.get('turn')}.{message.get('tool_call_id')}")
    if block is None or block.result:
        return view
    return _put(view, replace(block, result=content_text(message.get("content")), outcome=block.outcome or "ok"))


def content_text(content: object) -> str:
    """Return the text of a message, with a placeholder for each picture or file."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "\n".join(filter(None, map(_part_text, content)))


def content_pictures(content: object) -> tuple[str, ...]:
    """Return the names of a message's pictures in the media store."""
    return tuple(filter(None, map(named_by, content))) if isinstance(content, list) else ()


def _part_text(part: Any) -> str:
    if not isinstance(part, dict) or named_by(part):
        return ""
    kind = str(part.get("type") or "")
    return str(part.get("text") or "") if "text" in kind else f"[{kind.replace('_url', '') or 'file'}]"


def gist(arguments: str) -> str:
    """Return a summary of a call, as in its events: the command or the only text, else all arguments."""
    try:
        given = json.loads(arguments)
    except ValueError:
        return arguments
    if not isinstance(given, dict):
        return arguments
    values = [given["command"]] if "command" in given else list(given.values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else arguments


# ---------------------------------------------------------------- events


def reduce(view: ChatView, name: str, fields: Mapping[str, Any]) -> ChatView:
    """Return the view after an event. Unknown events change nothing: the daemon may be newer."""
    turn = str(fields.get("turn_id") or "")
    if name.startswith("tool."):
        return _tool(view, name, turn, fields)
    if name.startswith("run."):
        return _run(view, name, turn, fields)
    match name:
        case "message.delta":
            return _answer(view, turn, str(fields["text"]), append=True)
        case "message.reset":
            return _answer(view, turn, "", append=False)
        case "message.completed" if fields["text"]:
            return _closed(_answer(view, turn, str(fields["text"]), append=False), turn)
        case "approval.request" | "question":
            return _asked(view, fields, approval=name == "approval.request")
        case "answered":
            return replace(view, prompt=None)
        case "steered":
            return _begun(view, str(fields["message_turn_id"]))
        case "notice":
            return with_notice(view, str(fields["text"]))
        case _:
            return view


def _run(view: ChatView, name: str, turn: str, fields: Mapping[str, Any]) -> ChatView:
    match name:
        case "run.accepted" if turn not in view.ended and turn != view.turn and view.turn:
            if view.block(f"{turn}.user") or any(each.turn == turn for each in view.pending):
                return view
            return with_pending(view, PendingMessage(key=turn, text="", state=Delivery.QUEUED, turn=turn))
        case "run.started":
            return _started(view, turn, int(fields.get("attempt") or 1))
        case "run.completed":
            return _completed(view, turn, fields)
        case "run.failed" | "run.cancelled":
            text = str((fields.get("error") or {}).get("message") or "The turn was stopped.")
            return _over(_with_end(_closed(view, turn), turn, text), turn)
        case "run.interrupted":
            return with_notice(view, f"Interrupted ({fields['reason']}); the turn continues.")
        case _:
            return view


def _tool(view: ChatView, name: str, turn: str, fields: Mapping[str, Any]) -> ChatView:
    key, tool = f"{turn}.{fields['call_id']}", str(fields.get("name") or "")
    block = view.block(key)
    match name:
        case "tool.started":
            title = str(fields.get("summary") or "")
            if block is None:
                call = Block(key=key, kind=BlockKind.TOOL, name=tool, title=title, is_open=True)
                return _added_to(_closed(view, turn), turn, call)
            return _put(view, replace(block, title=title, text="", outcome="", is_open=True))
        case "tool.progress" if block is not None:
            return _put(view, replace(block, text=f"{block.text}{fields['text']}\n"))
        case "tool.completed":
            block = block or Block(key=key, kind=BlockKind.TOOL, name=tool)
            title = block.title or str(fields.get("summary") or "")
            took_s, outcome = float(fields.get("took_s") or 0.0), str(fields["outcome"])
            return _put(view, replace(block, title=title, outcome=outcome, took_s=took_s, is_open=False))
        case _:
            return view


def _started(view: ChatView, turn: str, attempt: int) -> ChatView:
    view = _begun(view, turn)
    if attempt > 1:  # the text of the last attempt comes again
        view = _answer(view, turn, "", append=False)
    return replace(view, turn=turn)


def _completed(view: ChatView, turn: str, fields: Mapping[str, Any]) -> ChatView:
    if text := str(fields.get("output") or ""):
        view = _answer(view, turn, text, append=False)
    view = _over(_closed(view, turn), turn)
    if fields.get("finish_reason") == "length":
        view = with_notice(view, "The answer was cut off at the output limit of the model.")
    return view


def _over(view: ChatView, turn: str) -> ChatView:
    view = _begun(view, turn)
    running = "" if view.turn == turn else view.turn
    return replace(view, turn=running, prompt=None, ended=view.ended | {turn})


def _with_end(view: ChatView, turn: str, text: str) -> ChatView:
    """Return the view with a notice after the last block of a turn: the next turn can have begun."""
    places = [place for place, each in enumerate(view.blocks) if each.key.startswith(f"{turn}.")]
    at = places[-1] + 1 if places else len(view.blocks)
    notice = Block(key=f"{turn}.end", kind=BlockKind.NOTICE, text=text)
    if view.block(notice.key) is not None:
        return view
    return replace(view, blocks=(*view.blocks[:at], notice, *view.blocks[at:]))


def _asked(view: ChatView, fields: Mapping[str, Any], *, approval: bool) -> ChatView:
    prompt = OpenPrompt(
        call=str(fields["call_id"]),
        name=str(fields.get("name") or ""),
        question=str(fields["question"]),
        choices=tuple(map(str, fields.get("choices") or ())),
        approval=approval,
    )
    return replace(view, prompt=prompt)


def _answer(view: ChatView, turn: str, text: str, *, append: bool) -> ChatView:
    """Change the open answer of a turn, or begin one after its last tool call."""
    last = next((each for each in reversed(view.blocks) if each.key.startswith(f"{turn}.answer")), None)
    if last is None or not last.is_open:
        if not text:
            return view
        number = sum(each.key.startswith(f"{turn}.answer") for each in view.blocks)
        block = Block(key=f"{turn}.answer{number}", kind=BlockKind.ANSWER, text=text, is_open=True)
        return _added_to(view, turn, block)
    return _put(view, replace(last, text=last.text + text if append else text))


def _closed(view: ChatView, turn: str) -> ChatView:
    """Return the view with the open answers of a turn closed, and empty ones removed."""

    def is_open(block: Block) -> bool:
        return block.kind is BlockKind.ANSWER and block.is_open and block.key.startswith(f"{turn}.")

    if not any(map(is_open, view.blocks)):
        return view
    closed = (replace(each, is_open=False) if is_open(each) else each for each in view.blocks)
    return replace(view, blocks=tuple(each for each in closed if each.text or each.kind is not BlockKind.ANSWER))


def _added_to(view: ChatView, turn: str, block: Block) -> ChatView:
    """Return the view with a block of a turn. If a later turn runs already, the block is before that one.

    Each turn has a connection of its own, so that the end of a turn can arrive after the start of the next one.
    """
    if view.block(block.key) is None and view.turn not in ("", turn):
        later = (at for at, each in enumerate(view.blocks) if each.key.startswith(f"{view.turn}."))
        at = next(later, len(view.blocks))
        return replace(view, blocks=(*view.blocks[:at], block, *view.blocks[at:]))
    return _added(view, block)


def _added(view: ChatView, block: Block) -> ChatView:
    return view if view.block(block.key) else replace(view, blocks=(*view.blocks, block))


def _put(view: ChatView, block: Block) -> ChatView:
    if view.block(block.key) is None:
        return _added(view, block)
    return replace(view, blocks=tuple(block if each.key == block.key else each for each in view.blocks))
