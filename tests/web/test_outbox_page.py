"""Outbox page: what waits, dead letters, and a retry by the operator alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest

from hermes.actors.delivery.delivery_protocol import DropOutcome
from hermes.adapters.openai_api.server import ApiServer, ApiSettings
from hermes.config.home import Home
from hermes.config.secret import Secret
from hermes.domain.operations import Enqueue
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.source import Place
from hermes.domain.values import replace
from hermes.services.live_figures import LiveFigures
from hermes.services.log_reader import LogReader
from hermes.services.outbox import OutboxService
from hermes.services.setting_service import SettingService
from hermes.web.dashboard import Dashboard
from hermes.web.login_book import LoginBook
from hermes.web.login_limit import LoginLimit
from hermes.web.page_kit import DashboardParts
from tests.adapters.conftest import KEY, ApiHarness, world
from tests.support.fakes import NOW, a_dead_letter
from tests.support.journals import LoopJournal

__all__ = ["world"]


class NoDelivery:
    """No platform is configured."""

    async def ask(self, _message: object, *, block: bool) -> DropOutcome:
        assert not block
        return DropOutcome.ABSENT


@pytest.fixture
def logins() -> LoginBook:
    return LoginBook(lambda: NOW)


@pytest.fixture
def journal() -> LoopJournal:
    return LoopJournal()


@pytest.fixture
async def server(world: ApiHarness, logins: LoginBook, journal: LoopJournal, tmp_path: Path) -> ApiServer:
    home = Home(data_dir=tmp_path, config_file=tmp_path / "config.yaml")
    parts = DashboardParts(
        logins=logins,
        login_limit=LoginLimit(lambda: NOW),
        api_key=Secret(KEY),
        keys=world.keys,
        figures=LiveFigures(world.operations.figures, lambda: NOW),
        settings=SettingService(home, {}, reload=world.operations.reload),
        logs=LogReader(tmp_path / "hermes.log"),
        journal=cast("Any", journal),
        memories=cast("Any", None),
        skills=cast("Any", None),
        media=tmp_path,
    )
    settings = ApiSettings(host="127.0.0.1", port=0, key=KEY)
    outbox = OutboxService(journal, lambda _: None, clock=lambda: NOW, delivery=lambda: cast("Any", NoDelivery()))
    server = ApiServer(settings, replace(world.service(), outbox=outbox), world.keys, Dashboard(parts))
    await server.start()
    world.stack.push_async_callback(server.stop, 0)
    return server


async def visitor(world: ApiHarness, server: ApiServer, cookie: str) -> aiohttp.ClientSession:
    port = server.address.rpartition(":")[2]
    headers = {"Cookie": f"hermes_login_{port}={cookie}", "Accept": "text/html"}
    client = aiohttp.ClientSession(server.address, headers=headers, cookie_jar=aiohttp.DummyCookieJar())
    return await world.stack.enter_async_context(client)


async def text_of(client: aiohttp.ClientSession, path: str) -> str:
    async with client.get(path) as response:
        assert response.status == 200
        return await response.text()


async def submit(client: aiohttp.ClientSession, path: str) -> int:
    """Send a form of the outbox page without fields of its own."""
    token = re.findall(r'name="form-token" content="(\w+)"', await text_of(client, "/ui/outbox"))[0]
    async with client.post(path, data={"form_token": token}, allow_redirects=False) as response:
        return response.status


async def test_waiting_message_is_dropped_and_deleted_by_the_operator_alone(
    world: ApiHarness,
    server: ApiServer,
    logins: LoginBook,
    journal: LoopJournal,
) -> None:
    place = Place(platform="telegram", chat="1")
    waiting = OutboxMessage(id="reply:1", kind=OutboxKind.REPLY, place=place, text="hello", at=NOW)
    assert journal.engine.commit([(Enqueue(outgoing=waiting),)]) == [None]
    by_key = await visitor(world, server, logins.open(is_operator=False))
    operator = await visitor(world, server, logins.open(is_operator=True))
    assert "data-confirm" not in await text_of(by_key, "/ui/outbox")
    assert 'action="/ui/outbox/reply%3A1/drop"' in await text_of(operator, "/ui/outbox")
    assert await submit(by_key, "/ui/outbox/reply%3A1/drop") == 403
    assert await submit(operator, "/ui/outbox/reply%3A1/drop") == 303
    [letter] = journal.engine.dead_letters()
    assert letter.undelivered == replace(waiting, order=1)
    assert (letter.problem, journal.engine.outbox()) == ("dropped by the dashboard", [])
    assert await submit(by_key, "/ui/dead-letters/reply%3A1/delete") == 403
    assert await submit(operator, "/ui/dead-letters/reply%3A1/delete") == 303
    assert journal.engine.dead_letters() == []
    assert await submit(operator, "/ui/outbox/reply%3A1/drop") == 404


async def test_waiting_message_is_listed_with_its_problem(
    world: ApiHarness,
    server: ApiServer,
    logins: LoginBook,
    journal: LoopJournal,
) -> None:
    waiting = OutboxMessage(
        id="reply:1",
        kind=OutboxKind.REPLY,
        place=Place(platform="telegram", chat="<b>4711</b>"),
        text="not shown here",
        at=NOW,
        tries=3,
        problem="<i>no route</i>",
    )
    assert journal.engine.commit([(Enqueue(outgoing=waiting),)]) == [None]
    page = await text_of(await visitor(world, server, logins.open(is_operator=True)), "/ui/outbox")
    for shown in ("reply:1", "telegram &lt;b&gt;4711&lt;/b&gt;", "&lt;i&gt;no route&lt;/i&gt;"):
        assert shown in page
    assert "not shown here" not in page


async def test_dead_letter_is_retried_by_the_operator_alone(
    world: ApiHarness,
    server: ApiServer,
    logins: LoginBook,
) -> None:
    world.desk.letters["d1"] = a_dead_letter("d1", "s")
    by_key, operator = logins.open(is_operator=False), logins.open(is_operator=True)
    seen = await text_of(await visitor(world, server, by_key), "/ui/outbox")
    assert "d1" in seen
    assert "Retry" not in seen
    for cookie, status in ((by_key, 403), (operator, 303)):
        assert await submit(await visitor(world, server, cookie), "/ui/dead-letters/d1/retry") == status
        assert ("d1" in world.desk.letters) == (status == 403)
