"""Context service: what fills the context window of a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from hermes.domain.access.role import Role, assumed
from hermes.domain.child.child import only_tools
from hermes.domain.ids import SessionId
from hermes.domain.read.context_report import ContextReport, PartSize
from hermes.domain.read.reader import Reader
from hermes.domain.read.transcript import Transcript
from hermes.domain.records import BadRecord
from hermes.domain.session.state import Session
from hermes.ports.storage import Journal

Schemas = Callable[[str, Role, tuple[str, ...] | None], Awaitable[bytes]]  # definitions of the tools, as JSON


class ContextService:
    def __init__(
        self,
        journal: Journal,
        *,
        sizes: Callable[..., tuple[PartSize, ...]],
        schemas: Schemas,
        window: Callable[[], int],
    ) -> None:
        """`sizes` is that of `context_meter`. It knows the prompt, which no adapter may import."""
        self._sizes = sizes
        self._journal = journal
        self._schemas = schemas
        self._window = window

    async def report(self, session: Session) -> ContextReport:
        """Return the parts of the session's next request, as far as they exist."""
        transcript = await self._journal.fetch(partial(_transcript, session.id))
        roles = [role for role in transcript.roles if role is not None]
        role = roles[-1] if roles else assumed(session.platform)
        parts = self._sizes(
            prompt=transcript.prompt if session.prompted else None,
            instructions=transcript.instructions,
            tools=await self._schemas(session.platform, role, only_tools(session.assignment)),
            messages=transcript.messages,
            origins=transcript.origins,
        )
        return ContextReport(session=session.id, parts=parts, window=self._window(), counted=session.context_tokens)


def _transcript(session: SessionId, reader: Reader) -> Transcript:
    transcript = Transcript()
    entries = reader.log(session)
    transcript.extend((each.seq, each.record) for each in entries if not isinstance(each.record, BadRecord))
    return transcript
