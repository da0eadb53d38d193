"""Table of operations and OpenAPI document, imported with the first request for them: they take more than 1 MB."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.adapters.http.presentation import JsonObject
    from hermes.adapters.openai_api.openapi.operation import ApiRoute


async def operations() -> tuple[ApiRoute, ...]:
    return await asyncio.to_thread(_operations)


async def document(version: str) -> JsonObject:
    return await asyncio.to_thread(_document, version)


def _operations() -> tuple[ApiRoute, ...]:
    from hermes.adapters.openai_api.openapi.operations import OPERATIONS  # noqa: PLC0415

    return OPERATIONS


def _document(version: str) -> JsonObject:
    from hermes.adapters.openai_api.openapi import document as made  # noqa: PLC0415

    return made.document(version)
