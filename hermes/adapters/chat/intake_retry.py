"""Retry of an intake until the platform's event is on disk, or can never be."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from loguru import logger

from hermes.domain.backoff import backoff_s
from hermes.domain.errors import (
    AlreadySeenError,
    BusyError,
    OutcomeUnknownError,
    RefusedError,
    StoppingError,
    StorageError,
)

T = TypeVar("T")

RETRYABLE = (StoppingError, BusyError, StorageError, OutcomeUnknownError)  # not stored: the platform must keep it
_FIRST_WAIT_S = 0.1
_MAX_WAIT_S = 5.0


async def until_stored(
    platform: str, name: str, take: Callable[[], Awaitable[T]], *, timeout_s: float = math.inf
) -> T | None:
    """Retry with backoff until it is stored. None: it was stored before, or can never be.

    Raises one of RETRYABLE if the next attempt would come after `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    failures = 0
    while True:
        try:
            return await take()
        except AlreadySeenError:
            return None
        except RETRYABLE as error:
            failures += 1
            wait_s = backoff_s(failures, first_s=_FIRST_WAIT_S, max_s=_MAX_WAIT_S)
            if time.monotonic() + wait_s > deadline:
                raise
            logger.info("{}: {} not stored yet, retrying: {}", platform, name, error)
        except RefusedError as error:
            logger.error("{}: {} dropped: {}", platform, name, error)
            return None
        await asyncio.sleep(wait_s)
