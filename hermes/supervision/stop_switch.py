"""Entry point for every request to stop: signals, operators, a failed store.

It exists before the root actor and after it: a signal can arrive while the daemon starts and after its loop has
ended. A request that is accepted goes to the root as a message.
"""

from __future__ import annotations

from collections.abc import Callable

from loguru import logger

from hermes.domain.cause.reason import with_person
from hermes.domain.errors import BadInputError, StorageFailedError
from hermes.domain.values import replace
from hermes.supervision.shutdown import Admission, PendingStop, StopRequest, StopTrigger, admit
from hermes.supervision.watchdog import exit_interrupted


class StopSwitch:
    """Keeps the pending request, and whether the daemon starts again after it."""

    def __init__(self, *, embedded: bool = False) -> None:
        self._pending: PendingStop | None = None
        self.embedded = embedded  # inside another program, which ends it
        self._forward: Callable[[StopRequest], None] | None = None

    @property
    def pending(self) -> StopRequest | None:
        return None if self._pending is None else self._pending.request

    @property
    def comes_back(self) -> bool:
        return self._pending is not None and self._pending.comes_back

    def __bool__(self) -> bool:
        return self._pending is not None

    def request(
        self, reason: str, cause: StopTrigger = StopTrigger.OPERATOR, *, restart: bool = False, who: str = ""
    ) -> None:
        if self.embedded:
            raise BadInputError("this daemon runs inside another program, `hermes chat` say, and ends with it")
        asked = StopRequest(reason=reason, cause=cause, restart=restart, who=who)
        self._pending, admission = admit(self._pending, asked)
        match admission:
            case Admission.ACCEPTED:
                logger.info("stopping for a {}", with_person(asked.announced, who))
                if self._forward is not None:
                    self._forward(asked)
            case Admission.RESTART_CANCELLED:
                logger.info("shutdown: restart cancelled: {}", reason)
            case Admission.RESTART_REFUSED:
                raise BadInputError(
                    f"the daemon is stopping already ({self._pending.request.reason}) and does not come back by "
                    "itself; start it when it has stopped",
                    code="ending_already",
                )
            case Admission.FORCE_EXIT:
                exit_interrupted()
            case Admission.REPEATED:
                pass

    def request_late(self) -> None:
        """Cancel a restart. Called in a signal handler, when everything else has stopped."""
        if self._pending is not None:
            self._pending = replace(self._pending, comes_back=False)

    def on_storage_failure(self, error: StorageFailedError) -> None:
        logger.error("storage failed, the daemon stops: {}", error)
        if not self.embedded:
            self.request("storage failed", StopTrigger.STORAGE_FAILURE)

    def connect(self, forward: Callable[[StopRequest], None]) -> None:
        """Forward the request from now on, also one that was accepted before."""
        self._forward = forward
        if self._pending is not None:
            forward(self._pending.request)
