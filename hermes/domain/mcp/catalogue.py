"""Catalogue of a server's tools, which descriptions the owner has accepted, and what a new listing changes. Pure.

The first listing of a server is accepted, except for tools whose text looks like prompt injection. A tool that is new
or different later waits until the owner has approved it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from hashlib import sha256
from typing import Any

from hermes.domain.text.injection import suspicion
from hermes.domain.values import dataclass, replace

MAX_TOOLS = 256  # of a server; the rest is left out
MAX_DESCRIPTION = 4_000
MAX_SCHEMA = 20_000  # characters of JSON
_ANY_OBJECT: Mapping[str, Any] = {"type": "object", "properties": {}}
_FORMAT = 1


class ToolKind(StrEnum):
    TOOL = "tool"
    LIST_RESOURCES = "list_resources"
    READ_RESOURCE = "read_resource"
    LIST_PROMPTS = "list_prompts"
    GET_PROMPT = "get_prompt"


class Standing(StrEnum):
    """State of a tool: only approved ones are offered to the model."""

    APPROVED = "approved"
    NEW = "new"
    CHANGED = "changed"
    SUSPICIOUS = "suspicious"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    name: str  # for the model
    remote: str  # the server's own name
    kind: ToolKind = ToolKind.TOOL
    description: str = ""
    schema: str = '{"type":"object","properties":{}}'  # JSON
    read_only: bool = False  # in the server's words: a hint
    destructive: bool = False

    @property
    def digest(self) -> str:
        """Return a hash of everything that the model reads."""
        return sha256(json.dumps([self.remote, self.description, self.schema]).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    server: str
    fingerprint: str  # of the definition that it was read with
    tools: tuple[McpTool, ...] = ()
    approved: tuple[tuple[str, str], ...] = ()  # server's name of a tool, and the digest that was accepted
    learned_at: float = 0.0
    version: str = ""  # name and version of the server

    @property
    def offered(self) -> tuple[McpTool, ...]:
        return tuple(each for each in self.tools if self.standing(each) is Standing.APPROVED)

    @property
    def waiting(self) -> tuple[McpTool, ...]:
        """Return the tools that wait for approval."""
        return tuple(each for each in self.tools if self.standing(each) is not Standing.APPROVED)

    def standing(self, tool: McpTool) -> Standing:
        accepted = dict(self.approved).get(tool.remote)
        if accepted == tool.digest:
            return Standing.APPROVED
        if finding(tool):
            return Standing.SUSPICIOUS
        return Standing.NEW if accepted is None else Standing.CHANGED


def finding(tool: McpTool) -> str:
    """Return why a tool's text looks like prompt injection; empty if it does not."""
    return suspicion(f"{tool.remote}\n{tool.description}\n{_texts(tool.schema)}")


def learned(
    before: Catalogue | None,
    *,
    server: str,
    fingerprint: str,
    tools: Iterable[McpTool],
    now: float,
    version: str = "",
) -> Catalogue:
    """Return the catalogue after a listing. What was approved stays approved, and nothing else is."""
    listed = tuple(tools)[:MAX_TOOLS]
    if before is not None and before.fingerprint == fingerprint:
        return replace(before, tools=listed, learned_at=now, version=version)
    first = tuple((each.remote, each.digest) for each in listed if not finding(each))
    return Catalogue(
        server=server, fingerprint=fingerprint, tools=listed, approved=first, learned_at=now, version=version
    )


def approve(catalogue: Catalogue) -> Catalogue:
    """Accept every tool as it is now."""
    return replace(catalogue, approved=tuple((each.remote, each.digest) for each in catalogue.tools))


def digest_of(tools: Iterable[McpTool]) -> str:
    return sha256("\0".join(each.digest for each in tools).encode()).hexdigest()[:12]


def bounded_schema(schema: object) -> str:
    """Return a tool's schema as JSON. One that is not an object's, or too large, becomes that of any object."""
    try:
        text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
        text.encode()
    except (TypeError, ValueError, RecursionError):
        text = ""
    if not text or len(text) > MAX_SCHEMA or not isinstance(schema, dict) or schema.get("type") != "object":
        return json.dumps(_ANY_OBJECT, separators=(",", ":"))
    if not isinstance(schema.get("properties", {}), dict):
        return json.dumps(_ANY_OBJECT, separators=(",", ":"))
    return text if "properties" in schema else json.dumps({**schema, "properties": {}}, ensure_ascii=False)


def bounded_description(text: str) -> str:
    text = text.encode("utf-8", "replace").decode().strip()
    return text if len(text) <= MAX_DESCRIPTION else f"{text[:MAX_DESCRIPTION]}…"


def _texts(schema: str) -> str:
    """Return all texts in a schema, one a line, as a model would read them."""
    found: list[str] = []

    def walk(node: Any) -> None:
        if isinstance(node, str):
            found.append(node)
        elif isinstance(node, dict):
            for key, value in node.items():
                found.append(key)
                walk(value)
        elif isinstance(node, list):
            for each in node:
                walk(each)

    walk(json.loads(schema))
    return "\n".join(found)


# ------------------------------------------------------------ stored form


def encode(catalogue: Catalogue) -> bytes:
    tools = [
        {
            "name": each.name,
            "remote": each.remote,
            "kind": each.kind.value,
            "description": each.description,
            "schema": each.schema,
            "read_only": each.read_only,
            "destructive": each.destructive,
        }
        for each in catalogue.tools
    ]
    stored = {
        "format": _FORMAT,
        "server": catalogue.server,
        "fingerprint": catalogue.fingerprint,
        "tools": tools,
        "approved": catalogue.approved,
        "learned_at": catalogue.learned_at,
        "version": catalogue.version,
    }
    return json.dumps(stored, ensure_ascii=False, separators=(",", ":")).encode()


def decode(raw: bytes | None) -> Catalogue | None:
    """Return a stored catalogue; None if there is none that this version can read."""
    if raw is None:
        return None
    try:
        stored = json.loads(raw)
        if stored.pop("format") != _FORMAT:
            return None
        tools = tuple(McpTool(**{**each, "kind": ToolKind(each["kind"])}) for each in stored.pop("tools"))
        approved = tuple((str(name), str(digest)) for name, digest in stored.pop("approved"))
        return Catalogue(tools=tools, approved=approved, **stored)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
