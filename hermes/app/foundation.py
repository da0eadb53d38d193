"""Foundation of a daemon: lock, log, secrets, models, store and boot record. It is open before the first actor."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from loguru import logger

from hermes.actors.journal import ActorJournal
from hermes.agent.models.model_set import ModelSet
from hermes.app.boot_record import BootRecord
from hermes.app.factories.models import make_models
from hermes.app.secret_files import digests
from hermes.app.servers import import_servers
from hermes.app.system_settings import are_there_resets
from hermes.config.file import EMPTY, is_empty
from hermes.config.home import Home, has_store, lock, note_store, prepare
from hermes.config.log import configure_logging, redact
from hermes.config.secret import Secret, ensure_api_key, given_api_key
from hermes.config.settings import Config
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.supervision.stop_switch import StopSwitch
from hermes.system.clock import wall
from hermes.system.crash_point import reach


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    home: Home
    config: Config
    environ: Mapping[str, str]
    stop: StopSwitch
    api_key: Secret
    secrets: dict[str, str]  # digests of secret files, by setting
    models: ModelSet
    import_of_servers: asyncio.Task[None]
    engine: LmdbEngine
    journal: ActorJournal
    boot_record: BootRecord | None  # None: embedded in another program
    facts: dict[str, Any]  # for the status


async def open_foundation(
    stack: AsyncExitStack, home: Home, config: Config, environ: Mapping[str, str], stop: StopSwitch
) -> Foundation:
    given_api_key(environ)  # before anything is made
    prepare(home)
    stack.enter_context(lock(home))
    reach("start: locked")
    configure_logging(config.log, home)
    config_empty = is_empty(home.config_file)
    if config_empty:
        logger.warning("{}: {}", home.config_file, EMPTY)
    key = ensure_api_key(home, config, environ)
    redact(key)
    secrets = await asyncio.to_thread(digests, home, config, environ)
    models = make_models(config, environ)
    importing = asyncio.create_task(asyncio.to_thread(import_servers))  # slow: done while the store opens
    engine, journal = await _open_store(stack, home, config, stop)
    boot_record = None if stop.embedded else await BootRecord.begin(journal, wall)
    if boot_record is not None:
        stack.push_async_callback(boot_record.end, stop)
    return Foundation(
        home=home,
        config=config,
        environ=environ,
        stop=stop,
        api_key=key,
        secrets=secrets,
        models=models,
        import_of_servers=importing,
        engine=engine,
        journal=journal,
        boot_record=boot_record,
        facts={
            "home": str(home.data_dir),
            "model": models.chain[0].name,
            "epoch": engine.epoch,
            "resets": are_there_resets(config.session_reset),
            "config_empty": config_empty,
        },
    )


async def _open_store(
    stack: AsyncExitStack, home: Home, config: Config, stop: StopSwitch
) -> tuple[LmdbEngine, ActorJournal]:
    made_before = has_store(home)
    engine = await asyncio.to_thread(
        LmdbEngine.open, home.store_dir, map_size_bytes=config.storage.map_size_mb << 20, made_before=made_before
    )
    stack.callback(engine.close)
    await asyncio.to_thread(note_store, home)
    reach("start: store open")
    journal = ActorJournal(engine, on_fatal=stop.on_storage_failure)
    stack.push_async_callback(journal.close)
    return engine, journal
