"""`GET /metrics`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from hermes.adapters.openai_api.metrics_api import exposition
from hermes.adapters.openai_api.server import ApiServer
from tests.adapters.conftest import ApiHarness
from tests.support.fakes import FakeOperations

ROOT = Path(__file__).parents[2]


async def test_metrics_need_the_key(world: ApiHarness, api: ApiServer, client: aiohttp.ClientSession) -> None:
    stranger = await world.client(api, Authorization="Bearer wrong")
    async with stranger.get("/metrics") as response:
        assert response.status == 401
    async with client.get("/metrics") as response:
        assert response.status == 200
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        samples = _samples(await response.text())
    assert samples["hermes_turns_total", "answered"] == 2
    assert samples["hermes_tokens_total", "prompt", "tiny-1"] == 7
    assert samples["hermes_cost_usd_total", "tiny-1"] == 0.5
    assert samples["hermes_mailbox_messages", "session"] == 4
    assert samples["hermes_commit_seconds_count",] == 10
    assert samples["hermes_commit_seconds_sum",] == 0.25
    assert samples["hermes_turn_seconds_bucket", "0.25"] == 0
    assert samples["hermes_turn_seconds_bucket", "0.5"] == 1
    assert samples["hermes_turn_seconds_bucket", "+Inf"] == 2
    assert samples["hermes_http_connections",] >= 1


def _samples(text: str) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(text)
    return {(each.name, *sorted(each.labels.values())): each.value for family in families for each in family.samples}


async def test_dashboard_and_docs_name_existing_metrics() -> None:
    names = {name for name, *_ in _samples(exposition(await FakeOperations().figures(), 1).decode())}
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}
    dashboard = (ROOT / "docs/grafana-dashboard.json").read_text("utf-8")
    assert json.loads(dashboard)["panels"]
    docs = (ROOT / "docs/metrics.md").read_text("utf-8")
    for text in (dashboard, docs):
        used = set(re.findall(r"hermes_[a-z_]+", text))
        assert used
        assert used <= names | families, used - names - families
    assert families <= set(re.findall(r"hermes_[a-z_]+", docs))
