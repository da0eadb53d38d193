"""Comparison with other agents: what is reported, also about one that gave no answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.peers.__main__ import _ROWS, _table
from bench.peers.catalog import PEERS, Peer


def test_table_names_a_peer_that_was_not_measured() -> None:
    figures = dict.fromkeys(_ROWS, 2.0)
    lines = list(_table({"Hermes": figures, "other==1": figures}, {"broken==2": "it ended\nearly"}))
    assert "| | Hermes | other==1 |" in lines
    assert lines[-1] == "broken==2 was not measured: it ended early"


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_peer_has_an_exact_version_and_the_fake_model(peer: Peer, tmp_path: Path) -> None:
    assert all("==" in package for package in peer.packages)
    command = peer.command(Path("installed"), tmp_path, "http://127.0.0.1:1", 2)
    (config,) = (each.read_text() for each in tmp_path.glob("config.*"))
    assert "http://127.0.0.1:1/v1" in json.dumps(json.loads(config))
    assert command.environ["HOME"] == str(tmp_path)
    assert b"hello" in peer.request("s", "hello")
