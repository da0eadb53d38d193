"""Descriptions of the event streams in the OpenAPI document."""

from __future__ import annotations

HERMES_EVENTS = """\
| event | fields |
| --- | --- |
| `hermes.tool.started` | `call_id`, `name`, `summary` |
| `hermes.tool.progress` | `call_id`, `text` |
| `hermes.tool.completed` | `call_id`, `name`, `summary`, `took_s`, \
`outcome` (ok, error, denied, stopped, not_run, unknown) |
| `hermes.approval.request` | `call_id`, `name`, `summary`, `question`, `choices`: a tool call waits for approval |
| `hermes.question` | `call_id`, `name`, `summary`, `question`, `choices`: the model asks the person a question |
| `hermes.answered` | `call_id`, `name`, `summary`, `answer`, `by` |
| `hermes.steered` | `message_turn_id`: a message sent meanwhile became part of this turn |
| `hermes.notice` | `text`: a notice for the person |
| `hermes.session` | `session_id`: the conversation continues under this id |"""

CHAT = f"""\
Server-sent events; the data of each is a `chat.completion.chunk`, in this order:

1. the role chunk: delta `{{"role": "assistant", "content": ""}}`, sent when the message is stored
2. deltas: `{{"content": ...}}`, any number: all text of the model in this turn, also before tool calls;
      the texts of several model calls are separated by a blank line, and a plain answer's `content` is the last one
3. the finish chunk: an empty delta, `finish_reason`, and the field `hermes` as in a plain answer
4. `event: hermes.session`: a chunk that adds nothing (empty delta, no finish_reason), with `hermes`, `session_id`
   and `turn_id`
5. with `stream_options.include_usage`, the usage chunk: no choices, `usage`, and `hermes`
6. `data: [DONE]`

Lines that start with a colon keep an idle stream alive. A turn that fails after the stream started ends it with
`data: {{"error": ...}}` (the schema Error), and no [DONE] follows.

Other events are named events between these. Their data are chunks that add nothing to the text; their fields are in
`hermes`, beside `session_id` and `turn_id`:

{HERMES_EVENTS}

While the turn waits for a person the stream stays open, and continues when the answer is given anywhere. A plain
request does not wait: its answer contains the question, `hermes.pending` has it as data, and the turn stays open."""

RESPONSE = f"""\
Server-sent events with OpenAI's `response.*` types, each with its `sequence_number`: created, in_progress, then for
each output item output_item.added, its parts and deltas, output_item.done, and finally completed, incomplete or
failed. A tool that ran on the server is an `mcp_call` item. A stream that needs a person ends with the question as a
message; the next message answers it.

With the header `X-Hermes-Events: 1` or `include: ["hermes.events"]`, our own events are between these, and a stream
that needs a person stays open until the answer is given on any surface:

{HERMES_EVENTS}"""

RUN = """\
Server-sent events. Those with an `id` are stored: send the last one as `Last-Event-ID` to continue after it, also
after a restart of the daemon. The others are live only.

| event | id | fields besides `run_id`, `session_id`, `at` |
| --- | --- | --- |
| `run.accepted` | yes | |
| `run.started` | yes | `attempt` |
| `run.interrupted` | yes | `reason`; it continues automatically |
| `message.delta` | no | `text` |
| `reasoning.delta` | no | `text`: reasoning of the model, where it reports it |
| `message.reset` | no | discard the text since the last tool call: it comes again |
| `message.completed` | yes | `text`, `tool_calls` (`call_id`, `name`, `arguments`): the model calls tools |
| `tool.started`, `tool.completed` | yes | as in `hermes.tool.*` of a stream |
| `tool.progress`, `notice`, `steered` | no | as in `hermes.*` of a stream |
| `approval.request`, `question`, `answered`, `session` | yes | as in `hermes.*` of a stream |
| `run.completed` | yes | `output`, `model`, `finish_reason`, `usage` |
| `run.failed`, `run.cancelled` | yes | `error` |
| `daemon.stopping` | no | `text`, `last_event_id`: the run is not over; reconnect when the daemon is back |

The stream ends after the last four. A client that reconnects with the last event's id gets 204. A run whose session
was suspended ends with a `run.failed` without an id: it can continue when the session is resumed."""

EVENTS = """\
Server-sent events of all sessions. Those of turns have the names and fields of a run's events, with `turn_id` and
`platform`. Stored ones have an `id`: send the last one as `Last-Event-ID` to continue after it, also after a restart.

| event | id | fields besides `session_id`, `platform` |
| --- | --- | --- |
| `stream.opened` | yes | `position`: first event of a stream without a gap |
| `gap` | yes | `reason` (too_old, unknown_position), `requested`, `position`: events are missing, read the lists |
| events of runs | as there | `run_id`, `turn_id`, and as there |
| `session.started` | yes | `reason`, `parent` |
| `session.ended`, `session.suspended`, `session.resumed` | yes | `reason` |
| `session.continued` | yes | `successor`, `reason` |
| `session.updated` | yes | `preferences` |
| `session.undone` | yes | `turns` |
| `session.posted` | yes | `message_id` |
| `session.handed_over` | yes | `to`, `reason` |
| `session.compressing`, `session.compression_failed` | yes | `reason` |
| `session.state` | no | `phase`, `reason` |
| `process.started`, `process.ended` | no | `process_id`, `command`, and `end` |
| `actor.failed` | no | `name`, `problem`, `verdict`; no `session_id`, `platform`; for the owner only |
| `daemon.stopping` | no | `text`, `last_event_id` |"""

SESSION_CHAT = """\
Server-sent events, each with `seq`, `ts`, `session_id`, `turn_id` and `run_id`: `run.started`, `assistant.delta`
(`delta`), events of tools and questions as in a chat stream, without `hermes.`, `assistant.completed` (`content`),
`run.completed` (`finish_reason`, `usage`, and `session_id` of the current session), and `done`."""
