"""Access control of the admin socket: only the owner's own processes, never those of tools.

Three conditions hold for each request. The user is the daemon's own or root. The process that opened the connection
still runs and no tool started it (Linux). The request carries the admin token.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import sys
from typing import TYPE_CHECKING

from aiohttp import web
from loguru import logger

from hermes.adapters.admin.peer import PeerIdentity, peer_of
from hermes.adapters.admin.peer_ancestry import PeerAncestry, descent_of
from hermes.adapters.http.problem import Problem, ProblemError, refusal
from hermes.config.secret import Secret

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

_UNKNOWN_PEER = (
    "The daemon cannot tell which process is calling, so it refuses: the caller or one of its parent processes has "
    "ended, or /proc hides it. Run the command again from a terminal that stays open."
)
_WRONG_TOKEN = (
    "The admin token is missing or wrong. Send `Authorization: Bearer TOKEN`; it is in the file admin.token beside "  # noqa: S105
    "the socket, and changes at each start of the daemon."
)


class OwnerCheck:
    """Admission to the admin socket, and the check before its handlers."""

    def __init__(self, token: Secret) -> None:
        self.refusal = b""
        self._uids = {os.getuid(), 0}
        self._token_hash = _hash(token.reveal())
        self._identity = PeerIdentity()

    def admit(self, transport: asyncio.Transport) -> str | None:
        try:
            peer = peer_of(transport)
        except OSError as error:
            logger.warning("admin socket: refused a connection: {}", error)
            return None
        if peer.uid not in self._uids:
            logger.warning("admin socket: refused process {} of user {}", peer.pid, peer.uid)
            return None
        self._identity.connected(transport, peer)
        return str(peer.pid)

    def release(self, name: str) -> None:
        """Do nothing: the owner may open any number of connections."""

    def begin(self, _name: str) -> bool:
        return True

    def end(self, name: str) -> None: ...
    def set_known(self, _name: str) -> bool:
        return True

    def set_following(self, _name: str) -> bool:
        return True

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if sys.platform.startswith("linux"):
            await asyncio.to_thread(self._check_process, request.transport)
        self._check_token(request)
        return await handler(request)

    def _check_process(self, transport: asyncio.BaseTransport | None) -> None:
        try:
            peer = peer_of(transport)
        except OSError as error:
            raise refusal(403, "unknown_peer", _UNKNOWN_PEER) from error
        if peer.pid == os.getpid():
            return
        descent = descent_of(peer.pid, os.getpid())
        if descent is PeerAncestry.TOOL:
            logger.warning("admin socket: refused process {}: started by a tool", peer.pid)
            raise refusal(403, "from_a_tool", "A tool may not operate the daemon that runs it.")
        # Last: if the process is the same now, it was the same during the walk.
        if descent is PeerAncestry.UNKNOWN or not self._identity.is_same(transport, peer):
            logger.warning("admin socket: refused process {}: cannot be identified", peer.pid)
            raise refusal(403, "unknown_peer", _UNKNOWN_PEER)

    def _check_token(self, request: web.Request) -> None:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if not hmac.compare_digest(_hash(given.strip()), self._token_hash) or scheme.lower() != "bearer":
            logger.warning("admin socket: refused a request without the admin token")
            headers = {"WWW-Authenticate": 'Bearer realm="hermes-admin"'}
            raise ProblemError(Problem(status=401, code="invalid_admin_token", message=_WRONG_TOKEN, headers=headers))


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
