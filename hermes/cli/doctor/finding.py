"""CheckResult of one check of `hermes doctor`, and what every check gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import TypeAlias

from hermes.config.home import Home
from hermes.config.settings import Config
from hermes.domain.values import dataclass


class Status(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    id: str  # component.subject, stable
    status: Status
    text: str
    remedy: str = ""
    fixed: bool = False  # `--fix` has repaired it


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Installation that is checked."""

    home: Home
    environ: Mapping[str, str]  # of this shell, with the variables of the service's file
    config: Config | None  # None: it is not valid
    fix: bool


Check: TypeAlias = Callable[[Subject], Iterator[CheckResult]]


def sentence(error: Exception) -> str:
    """Return the text of an error with one mark at its end."""
    text = str(error)
    return text if text.endswith((".", "?")) else f"{text}."


def ok(name: str, text: str) -> CheckResult:
    return CheckResult(id=name, status=Status.OK, text=text)


def skipped(name: str, text: str) -> CheckResult:
    return CheckResult(id=name, status=Status.SKIPPED, text=text)


def warning(name: str, text: str, remedy: str) -> CheckResult:
    return CheckResult(id=name, status=Status.WARNING, text=text, remedy=remedy)


def failed(name: str, text: str, remedy: str) -> CheckResult:
    return CheckResult(id=name, status=Status.FAILED, text=text, remedy=remedy)


def repaired(name: str, text: str) -> CheckResult:
    return CheckResult(id=name, status=Status.OK, text=text, fixed=True)
