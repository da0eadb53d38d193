"""An adapter, and the fake Slack it talks to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from hermes.adapters.slack.adapter import SlackAdapter
from hermes.adapters.slack.rate_limiter import SlackLimits
from hermes.adapters.slack.workspace import Credentials
from hermes.config.secret import Secret
from tests.adapters.edge import patience_s
from tests.support.slack_server import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET, SlackServer

HURRIED = SlackLimits(
    channel_every_s=0, every_s=0, change_every_s=0, look_every_s=0
)  # for tests that are not about the pace
CREDENTIALS = Credentials(bot=Secret(BOT_TOKEN), app=Secret(APP_TOKEN), signing=Secret(SIGNING_SECRET))


@pytest.fixture
def server() -> Iterator[SlackServer]:
    with SlackServer(again_after_s=0.6) as server:
        yield server


@pytest.fixture
async def adapter(server: SlackServer, request: pytest.FixtureRequest) -> AsyncIterator[SlackAdapter]:
    adapter = SlackAdapter(
        [CREDENTIALS], base_url=server.base_url, limits=HURRIED, answer_within_s=patience_s(request)
    )
    yield adapter
    await adapter.close()
