"""Access to the memory of the home: through its daemon, or without one under the lock of the home."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from hermes.cli.client import AdminClient
from hermes.domain.errors import NotRunningError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.config.home import Home


def ask(environ: Mapping[str, str], verb: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Do what was asked, and return the answer."""
    from hermes.config.home import Home

    home = Home.from_environ(environ)
    client = AdminClient(home.socket)
    try:
        client.info()
    except NotRunningError:
        return _without_daemon(home, environ, verb, dict(fields))
    answer: dict[str, Any] = client.post(f"/memory/{verb}", fields)
    return answer


def _without_daemon(home: Home, environ: Mapping[str, str], verb: str, fields: dict[str, Any]) -> dict[str, Any]:
    from hermes.app.factories.memory import memory_settings
    from hermes.config.home import has_store, lock, note_store, prepare
    from hermes.config.loader import load_config
    from hermes.domain.memory.scope import MemoryTarget
    from hermes.services.memory.memory_request import MemoryRequest, MemoryVerb, perform, scope_named
    from hermes.services.memory.memory_service import MemoryService
    from hermes.storage.lmdb_engine import LmdbEngine
    from hermes.system.clock import wall

    config = load_config(home, environ)
    prepare(home)
    person, target = fields.pop("person", ""), fields.pop("target", None)
    asked = MemoryRequest(
        verb=MemoryVerb(verb), target=None if target is None else MemoryTarget(target), by="cli", **fields
    )
    with lock(home):
        engine = LmdbEngine.open(home.store_dir, made_before=has_store(home))
        note_store(home)

        async def run() -> dict[str, Any]:
            from hermes.actors.journal import ActorJournal

            journal = ActorJournal(engine, on_fatal=lambda _: None)
            try:
                service = MemoryService(
                    journal=journal,
                    directory=home.data_dir / "memories",
                    clock=wall,
                    settings=memory_settings(config),
                )
                return await perform(service, scope_named(service, person), asked)
            finally:
                await journal.close()

        try:
            return asyncio.run(run())
        finally:
            engine.close()
