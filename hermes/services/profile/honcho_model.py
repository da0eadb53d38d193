"""Person model in Honcho: conversations are sent there, and its conclusions are the beliefs.

Honcho draws the conclusions itself, later, on its server. Each scope of memory is a peer of its own. The package
`honcho-ai` blocks, so it is called in threads.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from importlib import import_module
from typing import Any, Final, TypeVar

from hermes.domain.errors import BadInputError, StorageError
from hermes.domain.memory.scope import MemoryScope
from hermes.domain.profile.belief import MAX_BELIEFS, MAX_CONFIDENCE, Belief, Evidence
from hermes.domain.profile.conclusion import INFERRED_MAX, Spoken
from hermes.ports.memory import ChangeOrigin
from hermes.ports.profile import PersonModel

T = TypeVar("T")
TIMEOUT_S: Final = 10.0
ASSISTANT: Final = "hermes"
SAID: Final = 0.9  # confidence of what the person said
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")


class HonchoPersonModel(PersonModel):
    def __init__(self, *, api_key: str, base_url: str, workspace: str) -> None:
        self._api_key = api_key
        self._base_url = base_url
        self._workspace = workspace
        self._client: Any = None

    async def learn(self, scope: MemoryScope, said: Sequence[Spoken], origin: ChangeOrigin) -> int:
        """Send the messages. How many conclusions follow is not known then: the result is 0."""

        def send(client: Any) -> int:
            session = client.session(_session_id(scope, origin.session))
            if list(session.messages(filters={"metadata": {"operation": origin.operation}}, size=1)):
                return 0  # a crash came between sending and noting the place
            person, assistant = client.peer(peer_id(scope)), client.peer(ASSISTANT)
            session.add_messages(
                [
                    (person if each.by_person else assistant).message(
                        each.own_words if each.by_person else each.text,
                        metadata={"operation": origin.operation, "session": each.session, "turn": each.turn},
                        created_at=datetime.fromtimestamp(each.at, UTC),
                    )
                    for each in said
                ]
            )
            return 0

        return await self._call(send)

    async def beliefs(self, scope: MemoryScope) -> tuple[Belief, ...]:
        def read(client: Any) -> tuple[Belief, ...]:
            found = client.peer(peer_id(scope)).conclusions.list(size=MAX_BELIEFS, reverse=True)
            return tuple(_belief(each) for each in found.items)

        beliefs = await self._call(read)
        return tuple(sorted(beliefs, key=lambda each: (-each.confidence, -each.at)))

    async def people(self) -> tuple[str, ...]:
        return ()

    async def forget(
        self,
        scope: MemoryScope,
        belief: str | None,
        origin: ChangeOrigin,  # noqa: ARG002 - Honcho keeps no history of it
    ) -> tuple[Belief, ...]:
        """Delete conclusions. The messages stay in Honcho, which may conclude the same again."""

        def delete(client: Any) -> tuple[Belief, ...]:
            conclusions = client.peer(peer_id(scope)).conclusions
            known = [_belief(each) for each in conclusions.list(size=100)]  # follows the pages
            gone = [each for each in known if belief in (None, each.id)]
            if belief is not None and not gone:
                raise BadInputError(f"there is no belief {belief[:40]!r}", code="unknown_belief")
            for each in gone:
                conclusions.delete(each.id)
            return tuple(gone)

        return await self._call(delete)

    async def _call(self, work: Callable[[Any], T]) -> T:
        def run() -> T:
            errors: Any = import_module("honcho.http.exceptions")
            try:
                return work(self._opened())
            except errors.HonchoError as error:
                raise StorageError(f"Honcho failed ({type(error).__name__})") from error

        return await asyncio.to_thread(run)

    def _opened(self) -> Any:
        if self._client is None:
            honcho: Any = import_module("honcho")
            self._client = honcho.Honcho(
                api_key=self._api_key or None,
                base_url=self._base_url or None,
                workspace_id=self._workspace,
                timeout=TIMEOUT_S,
                max_retries=1,
            )
        return self._client


def peer_id(scope: MemoryScope) -> str:
    """Return the id of the person's peer. A hash in the folder makes it unique."""
    return "owner" if not scope.folder else f"person-{_UNSAFE.sub('-', scope.folder.rpartition('/')[2])}"


def _session_id(scope: MemoryScope, session: str) -> str:
    digest = blake2b(f"{scope.text}\0{session}".encode(errors="replace"), digest_size=16).hexdigest()
    return f"session-{digest}"


def _belief(found: Any) -> Belief:
    inferred = found.level != "explicit"
    text = " ".join(str(found.content).split())
    evidence = Evidence(quote="", session=found.session_id or "", turn="", at=found.created_at.timestamp())
    surer = 1 - (1 - SAID) / max(found.times_derived, 1)
    return Belief(
        id=str(found.id),
        topic="",
        text=text,
        confidence=INFERRED_MAX if inferred else min(surer, MAX_CONFIDENCE),
        inferred=inferred,
        evidence=(evidence,),
    )
