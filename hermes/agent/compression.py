"""When a conversation has to be shortened, what of it is kept, and what its continuation begins with. Pure.

A transcript is cut into a head (how it began), a middle (to be summarised) and a tail (what is going on now):

    head   the instructions it begins with and, the first time, its first exchanges. Once there is a summary the
           head decays to the instructions: the summary then holds the beginning, and the head cannot pile up.
           It ends with an answer, so that no old request in it looks like an open one.
    tail   the newest messages within a budget. Within a larger one: the last thing that a person said, the answer
           that they replied to, and all that was done since. What does not fit loses its old tool results first;
           then steps between the person's message and the newest go to the summary as well. The person's message
           itself is never lost.
    middle the rest. A summary of an earlier compression is recognised and updated, not summarised as text.

A tool call is never parted from its results. A call without all its results, or a result without its call, cannot
be shown to a model; it goes to the summary. While the newest calls are still open there is no plan at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from hermes.agent.chat_message import INSTRUCTIVE, ChatMessage, cut, encode, read, text_tokens
from hermes.domain.types import EncodedMessage
from hermes.domain.values import dataclass

FRUITFUL = 0.1  # share of the tokens that a compression must save to be worth the next one
SMALL_WINDOW_SHARE = 0.75  # the floor never asks for more of the window than this
HEAD_SHARE = 0.1  # of the threshold, like the next two
TURN_SHARE = 0.4  # for what was done about the person's last message
SUMMARY_SHARE = 0.2
MIN_SUMMARY, MAX_SUMMARY = 2_000, 10_000  # tokens; a small window's share goes before
SUMMARY_WORTH = 40  # tokens; in fewer nothing can be said
SUMMARY_SLACK = 1.25  # by how much a summary may be longer than asked for before it is cut
TODO_SHARE = 0.25  # of the summary message
STUB_OVER_TOKENS = 100  # a shorter tool result is left as it is
_MAX_NAME = 64

_MARK = "[Summary of the earlier part of this conversation, written "
_NOTICE = (
    "For reference only, not a request: what it calls done is done. Go on from the messages after it; where they "
    "and the summary disagree, they are right."
)
_TODO = "[Task list at that time]"
_END = "[End of the summary]"
_FRAME_TOKENS = (len(_MARK) + len(_NOTICE) + len(_TODO) + len(_END)) // 4 + 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionSettings:
    threshold: float = 0.5  # of the window without the reserved output
    floor_tokens: int = 64_000  # no sooner than this, where the window is large enough
    target_ratio: float = 0.2  # of the threshold: how much of the newest is kept whole
    protect_first_n: int = 3  # messages, not counting instructions


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionPlan:
    head: tuple[EncodedMessage, ...]
    middle: tuple[EncodedMessage, ...]  # empty: dropping old tool results is enough, no summary is needed
    tail: tuple[EncodedMessage, ...]
    previous_summary: str  # of an earlier compression, to be updated
    asked: str  # what a person said last: it is kept, and the summary need not repeat it
    focus: str
    summary_tokens: int  # how long the summary should be
    carry_tokens: int  # how long the message with it may become; 0 when there is none
    tokens_before: int
    tokens_kept: int  # of head and tail


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Messages that stay together: a plain one, or an assistant's tool calls and their results."""

    messages: tuple[ChatMessage, ...]
    whole: bool  # no result is missing, none is left over

    @property
    def tokens(self) -> int:
        return sum(message.tokens for message in self.messages)

    @property
    def role(self) -> str:
        return self.messages[0].role


def threshold_tokens(*, context_window: int, max_output: int, settings: CompressionSettings) -> int:
    """The size of a prompt from which on it is shortened.

    The floor spares large windows needless summaries. In a small window, where it could not be reached before the
    provider refuses, three quarters of the room take its place: half of 2,000 tokens is hardly a conversation.
    """
    room = max(context_window - max_output, context_window // 2)
    floor = min(settings.floor_tokens, int(room * SMALL_WINDOW_SHARE))
    return max(int(room * settings.threshold), floor, 1)


def is_due(*, prompt_tokens: int, context_window: int, max_output: int, settings: CompressionSettings) -> bool:
    """`prompt_tokens` is what the provider counted, or else an estimate of everything that is sent."""
    limit = threshold_tokens(context_window=context_window, max_output=max_output, settings=settings)
    return prompt_tokens >= limit


def saved(before: int, after: int) -> float:
    """The share of the tokens that is gone; below FRUITFUL the compression was fruitless."""
    return (before - after) / before if before > 0 else 0.0


def plan(
    messages: Sequence[EncodedMessage],
    *,
    context_window: int,
    settings: CompressionSettings,
    max_output: int = 0,
    fixed_tokens: int = 0,
    focus: str = "",
) -> CompressionPlan | None:
    """How to shorten this transcript, or None when nothing worth it can be gained, or calls are still open.

    `fixed_tokens` is what every request holds beside these messages: the prompt and the tools' descriptions.
    """
    blocks = _blocks(messages)
    if not blocks or (blocks[-1].messages[0].calls and not blocks[-1].whole):
        return None
    instructions = _leading(blocks)
    before = sum(block.tokens for block in blocks)
    limit = threshold_tokens(context_window=context_window, max_output=max_output, settings=settings)
    fixed = fixed_tokens + sum(block.tokens for block in blocks[:instructions])
    room = limit - min(fixed, limit * 3 // 4)
    budget = min(room, before)  # so that a compression asked for early has something to do
    asked, previous = _last_from_person(blocks), _previous(blocks)
    head = instructions if previous is not None else _head_end(blocks, instructions, settings.protect_first_n, budget)
    start = head if previous is None else previous + 1
    kept = _tail(blocks, start, asked, recent=int(budget * settings.target_ratio), turn=int(room * TURN_SHARE))
    kept_tokens = sum(block.tokens for block in (*blocks[:head], *kept.values()))
    middle = [block for i, block in enumerate(blocks) if i >= head and i not in kept and i != previous]
    summary, carry = _summary_budget(before - kept_tokens, budget)
    carry = carry if middle or previous is not None else 0
    if saved(before, kept_tokens + carry) < FRUITFUL or 0 < carry < _FRAME_TOKENS + SUMMARY_WORTH:
        return None
    return CompressionPlan(
        head=_encoded(blocks[:head]),
        middle=_encoded(middle),
        tail=_encoded(kept[i] for i in sorted(kept)),
        previous_summary="" if previous is None else summary_in(blocks[previous].messages[0].text),
        asked="" if asked is None else blocks[asked].messages[0].text,
        focus=focus,
        summary_tokens=summary,
        carry_tokens=carry,
        tokens_before=before,
        tokens_kept=kept_tokens,
    )


def carried(plan: CompressionPlan, summary_text: str, *, todo: str = "", at: float) -> tuple[EncodedMessage, ...]:
    """What the continuation's transcript begins with. It is shorter than what it stands for, whatever the summary.

    Raises ValueError without one where one is needed: a summary that failed must drop nothing.
    """
    if not plan.carry_tokens:
        return (*plan.head, *plan.tail)
    if not (body := _unmarked(summary_text)):
        raise ValueError("nothing can be dropped without a summary of it")
    return (*plan.head, _summary_message(plan, body, todo, at), *plan.tail)


def summary_in(text: str) -> str:
    """The summary in the text of a message that `carried` made; empty when it made none."""
    if not text.startswith(_MARK) or not text.endswith(_END):
        return ""
    body = text.partition("\n\n")[2].removesuffix(_END)
    return body.partition(f"\n{_TODO}\n")[0].strip()


def _summary_budget(compressed: int, budget: int) -> tuple[int, int]:
    """Tokens to ask the summary for, and those that its message may take: always fewer than it stands for."""
    asked = min(max(compressed // 5, MIN_SUMMARY), MAX_SUMMARY, int(budget * SUMMARY_SHARE), compressed // 2)
    return asked, min(int(asked * SUMMARY_SLACK) + _FRAME_TOKENS, compressed * 9 // 10)


def _blocks(messages: Iterable[EncodedMessage]) -> list[_Block]:
    blocks: list[_Block] = []
    group: list[ChatMessage] = []  # calls and the results that have come so far
    open_ids: list[str] = []
    for message in map(read, messages):
        if message.role == "tool" and message.answers in open_ids:
            open_ids.remove(message.answers)
            group.append(message)
            continue
        if group:
            blocks.append(_Block(messages=tuple(group), whole=not open_ids))
        group, open_ids = [], [call.id for call in message.calls]
        if message.calls:
            group = [message]
        else:
            blocks.append(_Block(messages=(message,), whole=message.role != "tool"))
    if group:
        blocks.append(_Block(messages=tuple(group), whole=not open_ids))
    return blocks


def _leading(blocks: Sequence[_Block]) -> int:
    return next((i for i, block in enumerate(blocks) if block.role not in INSTRUCTIVE), len(blocks))


def _last_from_person(blocks: Sequence[_Block]) -> int | None:
    return next((i for i in reversed(range(len(blocks))) if blocks[i].role == "user"), None)


def _previous(blocks: Sequence[_Block]) -> int | None:
    """Where the summary of an earlier compression is. Something after it was said by a person, or it is not one."""
    last = _last_from_person(blocks) or 0
    found = (i for i in range(last) if blocks[i].role == "user" and summary_in(blocks[i].messages[0].text))
    return next(found, None)


def _head_end(blocks: Sequence[_Block], start: int, most: int, budget: int) -> int:
    end, count, tokens = start, 0, 0
    for i in range(start, len(blocks)):
        count += len(blocks[i].messages)
        tokens += blocks[i].tokens
        if count > most or tokens > budget * HEAD_SHARE or not blocks[i].whole:
            break
        if blocks[i].role == "assistant":
            end = i + 1
    return end


def _tail(blocks: Sequence[_Block], start: int, asked: int | None, *, recent: int, turn: int) -> dict[int, _Block]:
    """What is kept of the blocks from `start` on, by position, within these two budgets."""
    kept: dict[int, _Block] = {}
    used = 0
    if asked is not None and asked >= start:
        kept[asked] = blocks[asked]
        used = blocks[asked].tokens
    turn = max(turn, used + recent)  # a long question leaves room for what follows it
    for i in reversed(range(start, len(blocks))):
        block = blocks[i]
        if i == asked or not block.whole:
            continue
        in_turn = asked is None or i > asked
        replied_to = i + 1 == asked and block.role == "assistant" and not block.messages[0].calls
        room = (turn if in_turn or replied_to else recent) - used
        if in_turn and block.tokens > room:
            block = _shortened(block, room) if i == len(blocks) - 1 else _stubbed_block(block)
        if block.tokens > room:
            break
        kept[i] = block
        used += block.tokens
    return kept


def _stubbed_block(block: _Block) -> _Block:
    names = {call.id: call.name for call in block.messages[0].calls}
    messages = tuple(_stub(message, names.get(message.answers, "")) for message in block.messages)
    return _Block(messages=messages, whole=block.whole)


def _stub(message: ChatMessage, name: str) -> ChatMessage:
    if message.role != "tool" or message.tokens <= STUB_OVER_TOKENS:
        return message
    name = " ".join((name or str(message.fields.get("name") or "") or "a tool").split())[:_MAX_NAME]
    lines = message.text.count("\n") + 1
    text = (
        f"[old result of {name} left out: {len(message.text):,} characters, {lines:,} lines; call it again if needed]"
    )
    stub = read(encode({**message.fields, "content": text}))
    return stub if stub.tokens < message.tokens else message


def _shortened(block: _Block, room: int) -> _Block:
    """The newest results, cut instead of left out: the model is waiting for them and would only ask again."""
    results = [message for message in block.messages if message.role == "tool"]
    if not results:
        return block
    fixed = block.tokens - sum(text_tokens(message.text) for message in results)
    share = max(room - fixed, 0) // len(results)
    if share < STUB_OVER_TOKENS:
        return _stubbed_block(block)
    messages = tuple(_cut_result(message, share) if message.role == "tool" else message for message in block.messages)
    return _Block(messages=messages, whole=block.whole)


def _cut_result(message: ChatMessage, tokens: int) -> ChatMessage:
    text = cut(message.text, tokens)
    shorter = message if text == message.text else read(encode({**message.fields, "content": text}))
    return shorter if shorter.tokens < message.tokens else message


def _encoded(blocks: Iterable[_Block]) -> tuple[EncodedMessage, ...]:
    return tuple(message.encoded for block in blocks for message in block.messages)


def _summary_message(plan: CompressionPlan, summary: str, todo: str, at: float) -> EncodedMessage:
    room = max(plan.carry_tokens - _FRAME_TOKENS, 0)
    tasks = cut(_unmarked(todo), int(room * TODO_SHARE))
    body = cut(summary, room - text_tokens(tasks))
    when = datetime.fromtimestamp(at, UTC)
    text = f"{_MARK}{when:%Y-%m-%d %H:%M} UTC]\n{_NOTICE}\n\n{body}\n"
    text += f"\n{_TODO}\n{tasks}\n" if tasks else ""
    return encode({"role": "user", "content": f"{text}\n{_END}"})


def _unmarked(text: str) -> str:
    """Without lines that are our own marks, by which the summary is found again."""
    return "\n".join(line for line in text.splitlines() if line.strip() not in (_TODO, _END)).strip()
