"""Client of the `openai` package, made on demand, and its exceptions translated to failures.

Importing the package takes half a second and some 25 MB (docs/decisions/0026-openai-package.md).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes import __version__
from hermes.agent.models.failure import from_error_object, from_status, from_transport, malformed
from hermes.domain.errors import ModelError
from hermes.domain.provider import Provider

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_UNUSED_KEY = "none"  # the package insists on one


def make_client(
    provider: Provider, *, base_url: str, key: str, connect_timeout_s: float, idle_timeout_s: float
) -> AsyncOpenAI:
    """Import the package and make a client. Slow, and it reads files: call it in a thread."""
    from openai import AsyncOpenAI, Timeout  # noqa: PLC0415

    own = {provider.key_header: key} if provider.key_header and key else {}
    return AsyncOpenAI(
        base_url=base_url,
        api_key=key or _UNUSED_KEY,
        timeout=Timeout(idle_timeout_s, connect=connect_timeout_s),
        max_retries=0,
        default_headers={"User-Agent": f"hermes/{__version__}", **own},
    )


@contextmanager
def translated(address: str, secret: str) -> Iterator[None]:
    import openai  # noqa: PLC0415 - imported already

    try:
        yield
    except openai.APIStatusError as error:
        status, headers, body = error.status_code, error.response.headers, error.response.content
        raise ModelError(
            from_status(status, headers, body, secret=secret, now=time.time(), address=address)
        ) from error
    except openai.APIConnectionError as error:
        slow = "Timeout" in type(error).__name__ + type(error.__cause__).__name__  # its transport has its own classes
        raise ModelError(from_transport(TimeoutError() if slow else error, address=address)) from error
    except openai.APIError as error:  # an error object within the stream
        raise ModelError(from_error_object(error.body, secret=secret)) from error
    except ValueError as error:
        raise malformed("the model endpoint sent a chunk that is not JSON") from error
    except OSError as error:
        raise ModelError(from_transport(error, address=address)) from error
