"""Relay of bytes between two sockets."""

from __future__ import annotations

import asyncio
import socket

from hermes.sandbox.network.relay import _CHUNK, Flow

SIZE = _CHUNK + 50_000  # two chunks


async def test_fast_flow_leaves_time_for_other_tasks() -> None:
    """Both sockets are ready all the time: reading and writing alone would never yield."""
    source, source_end = socket.socketpair()
    target, target_end = socket.socketpair()
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    with source, source_end, target, target_end:
        for each in (source, target):
            each.setblocking(False)
        for end in (source_end, target):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        source_end.sendall(bytes(SIZE))
        source_end.shutdown(socket.SHUT_WR)
        flow = Flow(source, target)
        counting = asyncio.create_task(count_turns())
        async with asyncio.timeout(30) as idle:
            await flow.run(idle, 30)
        counting.cancel()
        assert flow.bytes == SIZE
        assert turns >= 2
        assert len(target_end.recv(1 << 20, socket.MSG_WAITALL)) == SIZE
