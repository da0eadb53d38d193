"""The clients of the matrix: packages in exact versions, the driver that uses them, and their modes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Ecosystem(Enum):
    PYTHON = "python"
    NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    key: str  # its name on the command line
    title: str
    packages: tuple[str, ...]
    driver: str  # a module of `drivers/`, without its ending
    modes: tuple[str, ...] = ("chat",)
    ecosystem: Ecosystem = Ecosystem.PYTHON
    opt_in: bool = False  # large: runs only if it is named


CHAT_AND_RESPONSES = ("chat", "responses")

CLIENTS = (
    Client(
        key="openai-python",
        title="openai (Python)",
        packages=("openai==3.51.0",),
        driver="openai_python",
        modes=CHAT_AND_RESPONSES,
    ),
)
