"""Texts of notices about background processes, for the model and for people. Pure."""

from __future__ import annotations

import json

from hermes.domain.ids import InboundKey, TurnId
from hermes.domain.process.process import Chunk
from hermes.domain.process.process_record import ProcessRecord, ProcessView
from hermes.domain.process.staleness import how_ended, lasting
from hermes.domain.source import Source
from hermes.domain.text.fence import fenced
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Busy, Submission
from hermes.processes.command_output import plain_text
from hermes.processes.watch import WatchNotice

_FROM_HERMES = "This notice is from Hermes, not from a person."


DELETED = "its conversation was deleted"
RESET = "a reset ended it"
STOPPED = "the daemon stopped, and processes.keep_on_stop is off"


def end_notice(record: ProcessRecord, view: ProcessView, tail: Chunk, *, marker: str) -> str:
    """Return the notice of an ended process. `marker` fences its output."""
    took_s = (record.ended_at or view.started_at) - view.started_at
    lines = [
        f"[Background process {record.id} has ended with {how_ended(view)} after {lasting(took_s)}. {_FROM_HERMES}]",
        f"Command: {record.command}",
    ]
    said = plain_text(tail.data, terminal=record.pty).lstrip("\ufffd").strip("\n")
    if not said:
        lines.append("It wrote nothing.")
    elif tail.kept_from:
        kept = f"the last {tail.total - tail.kept_from} of {tail.total} bytes; the rest is no longer kept"
        lines.append(f"The end of its output (process with action log shows {kept}):")
    elif tail.offset:
        lines.append(f"The end of its output (process with action log shows all {tail.total} bytes):")
    else:
        lines.append("Its output:")
    return "\n".join([*lines, *([fenced(said, marker, max_chars=len(said))] if said else [])])


def late_notice(record: ProcessRecord, view: ProcessView) -> str:
    """Return the notice for the person, if the conversation that started the process has ended."""
    took_s = (record.ended_at or view.started_at) - view.started_at
    return (
        f"A background process of an ended conversation has ended with {how_ended(view)} after "
        f"{lasting(took_s)}: {record.command}"
    )


def watch_notice(view: ProcessView, notice: WatchNotice, *, marker: str) -> str:
    said = "\n".join(notice.lines)
    lines = [
        f"[Background process {view.id} wrote lines that you watch for. {_FROM_HERMES}]",
        f"Command: {view.command}",
        fenced(said, marker, max_chars=len(said)),
    ]
    if notice.suppressed:
        lines.append(f"({notice.suppressed} more such lines are not shown)")
    if notice.promoted:
        lines.append("(It writes them too often. You get no more of them, and a notice when it ends.)")
    return "\n".join(lines)


def notice_submission(record: ProcessRecord, what: str, text: str, turn: TurnId) -> Submission:
    """Return the message to the conversation. `what` makes its inbound id, under which it arrives once."""
    content = json.dumps({"role": "user", "content": text}, ensure_ascii=False)
    return Submission(
        turn=turn,
        messages=(EncodedMessage(content.encode("utf-8", "replace")),),
        source=Source(platform=record.platform, automatic=True, role=record.role),
        session=record.session,
        inbound=InboundKey(f"process:{record.id}:{what}"),
        fingerprint=b"process",  # constant: the text may differ after a restart
        busy=Busy.QUEUE,
    )
