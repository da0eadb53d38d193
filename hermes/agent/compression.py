"""Plan of a compression: when it is due, what is kept, and how the continued transcript begins. Pure.

A transcript is split into a head, a middle and a tail:

    head   the leading instructions and, in the first compression, the first exchanges. In later compressions only
           the instructions, because the summary covers the beginning. It ends with an answer, so that no old
           request looks open.
    tail   the newest messages within a budget. A larger budget covers the person's last message, the answer before
           it and everything since. If that does not fit, old tool results are dropped first; then steps after the
           person's message are summarised too. The person's last message is always kept.
    middle the rest, to be summarised. The summary of an earlier compression is recognised and updated.

A tool call always stays with its results. An incomplete call, or a result without its call, cannot be sent to a
model and goes to the middle. While the newest calls are open, there is no plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from hermes.agent.chat_message import INSTRUCTIVE, ChatMessage, cut, encode, read, text_tokens
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.values import dataclass

FRUITFUL = 0.1  # share of the tokens that a compression must save
SMALL_WINDOW_SHARE = 0.75  # of the window; upper bound of the floor
HEAD_SHARE = 0.1  # of the threshold, like the next two
TURN_SHARE = 0.4  # for the work since the person's last message
SUMMARY_SHARE = 0.2
MIN_SUMMARY, MAX_SUMMARY = 2_000, 10_000  # tokens; the share of a small window takes precedence
SUMMARY_WORTH = 40  # tokens; a shorter summary is useless
SUMMARY_SLACK = 1.25  # a summary may be this much longer than requested before it is truncated
TODO_SHARE = 0.25  # of the summary message
STUB_OVER_TOKENS = 100  # shorter tool results are kept
_MAX_NAME = 64

_MARK = "[Summary of the earlier part of this conversation, written "
_NOTICE = (
    "For reference only, not a request. Do not repeat work that it reports as done. Continue from the messages after "
    "it. If they contradict the summary, they are right."
)
_TODO = "[Task list at that time]"
_END = "[End of the summary]"
_FRAME_TOKENS = (len(_MARK) + len(_NOTICE) + len(_TODO) + len(_END)) // 4 + 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionSettings:
    threshold: float = 0.5  # of the window without the reserved output
    floor_tokens: int = 64_000  # lower bound of the threshold, if the window is large enough
    target_ratio: float = 0.2  # of the threshold: budget of the newest messages
    protect_first_n: int = 3  # messages in the head, without instructions


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionPlan:
    head: tuple[EncodedMessage, ...]
    middle: tuple[EncodedMessage, ...]  # empty: dropping old tool results is enough
    tail: tuple[EncodedMessage, ...]
    previous_summary: str  # of an earlier compression, to be updated
    asked: str  # the person's last message: it is kept, so the summary need not repeat it
    focus: str
    summary_tokens: int  # requested length of the summary
    carry_tokens: int  # maximum length of the summary message; 0: there is none
    tokens_before: int
    tokens_kept: int  # of head and tail


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Messages that stay together: a plain message, or tool calls and their results."""

    messages: tuple[ChatMessage, ...]
    whole: bool  # calls and results match

    @property
    def tokens(self) -> int:
        return sum(message.tokens for message in self.messages)

    @property
    def role(self) -> str:
        return self.messages[0].role


def threshold_tokens(*, context_window: int, max_output: int, settings: CompressionSettings) -> int:
    """Return the prompt size at which a compression is due.

    The floor avoids needless summaries in large windows. In a small window it is at most three quarters of the room.
    """
    room = max(context_window - max_output, context_window // 2)
    floor = min(settings.floor_tokens, int(room * SMALL_WINDOW_SHARE))
    return max(int(room * settings.threshold), floor, 1)


def is_due(*, prompt_tokens: int, context_window: int, max_output: int, settings: CompressionSettings) -> bool:
    """Return whether to compress. `prompt_tokens` is the provider's count, or an estimate of the whole request."""
    limit = threshold_tokens(context_window=context_window, max_output=max_output, settings=settings)
    return prompt_tokens >= limit


def saved(before: int, after: int) -> float:
    """Return the saved share of the tokens; below FRUITFUL a compression is not worth it."""
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
    """Return a plan to shorten this transcript; None if too little can be saved or calls are still open.

    `fixed_tokens` counts the rest of every request: the prompt and the tools' descriptions.
    """
    blocks = _blocks(messages)
    if not blocks or (blocks[-1].messages[0].calls and not blocks[-1].whole):
        return None
    instructions = _leading(blocks)
    before = sum(block.tokens for block in blocks)
    limit = threshold_tokens(context_window=context_window, max_output=max_output, settings=settings)
    fixed = fixed_tokens + sum(block.tokens for block in blocks[:instructions])
    room = limit - min(fixed, limit * 3 // 4)
    budget = min(room, before)  # so that an early compression, requested by a person, saves something
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
    """Return the start of the continued transcript. It is always shorter than the messages it replaces.

    Raises ValueError if a required summary is empty: without it nothing may be dropped.
    """
    if not plan.carry_tokens:
        return (*plan.head, *plan.tail)
    if not (body := _unmarked(summary_text)):
        raise ValueError("the summary is empty, so no message may be dropped")
    return (*plan.head, _summary_message(plan, body, todo, at), *plan.tail)


def summary_in(text: str) -> str:
    """Return the summary in a message that `carried` created; empty for any other message."""
    if not text.startswith(_MARK) or not text.endswith(_END):
        return ""
    body = text.partition("\n\n")[2].removesuffix(_END)
    return body.partition(f"\n{_TODO}\n")[0].strip()


def _summary_budget(compressed: int, budget: int) -> tuple[int, int]:
    """Return the tokens to request for the summary, and the maximum of its message."""
    asked = min(max(compressed // 5, MIN_SUMMARY), MAX_SUMMARY, int(budget * SUMMARY_SHARE), compressed // 2)
    return asked, min(int(asked * SUMMARY_SLACK) + _FRAME_TOKENS, compressed * 9 // 10)


def _blocks(messages: Iterable[EncodedMessage]) -> list[_Block]:
    blocks: list[_Block] = []
    group: list[ChatMessage] = []  # calls and their results so far
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
    """Return the position of an earlier summary. A person's message must follow it."""
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
    """Return the kept blocks from `start` on, by position, within these two budgets."""
    kept: dict[int, _Block] = {}
    used = 0
    if asked is not None and asked >= start:
        kept[asked] = blocks[asked]
        used = blocks[asked].tokens
    turn = max(turn, used + recent)  # leave room after a long question
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
        f"[old result of {name} removed: {len(message.text):,} characters, {lines:,} lines; call it again if needed]"
    )
    stub = read(encode({**message.fields, "content": text}))
    return stub if stub.tokens < message.tokens else message


def _shortened(block: _Block, room: int) -> _Block:
    """Truncate the newest results instead of dropping them, because the model needs them next."""
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
    """Return the text without lines that equal our markers, so that the summary is found again."""
    return "\n".join(line for line in text.splitlines() if line.strip() not in (_TODO, _END)).strip()
