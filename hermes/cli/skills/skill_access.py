"""Access to the skills of the home: through its daemon, or without one under the lock of the home."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from hermes.cli.client import AdminClient
from hermes.domain.errors import NotRunningError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes.config.home import Home
    from hermes.services.learning.skill_service import SkillService


def access(environ: Mapping[str, str]) -> Callable[..., dict[str, Any]]:
    """Return a function that takes a verb and its fields, and returns the answer."""
    from hermes.config.home import Home

    home = Home.from_environ(environ)
    client = AdminClient(home.socket)
    try:
        client.info()
    except NotRunningError:
        return lambda verb, **fields: _without_daemon(home, environ, verb, fields)

    def ask(verb: str, **fields: object) -> dict[str, Any]:
        answer: dict[str, Any] = client.post(f"/skills/{verb}", fields)
        return answer

    return ask


def _without_daemon(home: Home, environ: Mapping[str, str], verb: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    from hermes.app.factories.skills import skill_settings
    from hermes.config.home import has_store, lock, note_store, prepare
    from hermes.config.loader import load_config
    from hermes.services.learning.skill_request import SkillRequest, SkillVerb, perform
    from hermes.services.learning.skill_service import SkillService
    from hermes.storage.lmdb_engine import LmdbEngine
    from hermes.system.clock import wall

    config = load_config(home, environ)
    prepare(home)
    with lock(home):
        engine = LmdbEngine.open(home.store_dir, made_before=has_store(home))
        note_store(home)

        async def run() -> dict[str, Any]:
            from hermes.actors.journal import ActorJournal

            journal = ActorJournal(engine, on_fatal=lambda _: None)
            try:
                service: SkillService = SkillService(
                    home.skills_dir, journal=journal, clock=wall, settings=skill_settings(config)
                )
                await service.recover()
                return await perform(service, SkillRequest(verb=SkillVerb(verb), **fields))
            finally:
                await journal.close()

        try:
            return asyncio.run(run())
        finally:
            engine.close()
