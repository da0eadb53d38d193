"""Fields of a job as people, tools and API clients write them: checked, and applied to a job. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any, Final

from hermes.domain.access.permission import NEEDS_APPROVER
from hermes.domain.errors import BadInputError
from hermes.domain.event.target import TargetKind, parse_targets
from hermes.domain.job.job import MAX_NAME, MAX_PROMPT, ApprovalPolicy, Job, MissedPolicy
from hermes.domain.job.report import attack_in
from hermes.domain.job.schedule import CronTimes, parse_schedule
from hermes.domain.text.title import clean_title
from hermes.domain.values import dataclass, replace

# Fields that only the owner and admins may set: they reach outside of the sandbox, or ask in others' chats.
APPROVERS_ONLY: Final = frozenset({"script", "no_agent", "workdir", "approvals"})
_MAX_LIST: Final = 20
_SCRIPT: Final = re.compile(r"[\w][\w.-]{0,99}(/[\w][\w.-]{0,99}){0,5}")
_DAY_S: Final = 86_400.0
_LIMITS: Final = {  # of numbers
    "repeat": (0, 1_000_000),
    "grace_s": (0, 30 * _DAY_S),
    "jitter_s": (0, _DAY_S),
    "retries": (0, 10),
    "max_steps": (0, 1000),
    "max_tokens": (0, 1_000_000_000),
    "max_usd": (0, 100_000),
}
_WHOLE: Final = frozenset({"repeat", "retries", "max_steps", "max_tokens"})
_TEXTS: Final = {"model": 200, "workdir": 4096}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldTerms:
    """What decides about the fields of a job."""

    now: float
    find_zone: Callable[[str], tzinfo]  # raises BadInputError
    times: CronTimes
    approves: bool  # the caller is the owner or an admin


def with_fields(job: Job, fields: Mapping[str, Any], terms: FieldTerms) -> Job:
    """Return the job with these fields. A new schedule or zone does not yet change its next occurrence."""
    if not terms.approves and (refused := sorted(APPROVERS_ONLY & {name for name, value in fields.items() if value})):
        raise BadInputError(f"only the owner and admins may set {', '.join(refused)}", code=NEEDS_APPROVER)
    changes: dict[str, Any] = {}
    for name, value in fields.items():
        changes[name] = _checked(name, value, terms)
    zone = terms.find_zone(changes.get("zone", job.zone))
    if "schedule" in fields:
        changes["schedule"] = parse_schedule(str(fields["schedule"]), now=terms.now, zone=zone, times=terms.times)
    changed = replace(job, **changes)
    _check_whole(changed)
    return changed


def _check_whole(job: Job) -> None:
    if job.no_agent and not job.script:
        raise BadInputError("a job without an agent needs a script", param="script", code="bad_job")
    if not job.prompt.strip() and not job.script and not job.skills:
        raise BadInputError("the job has no prompt", param="prompt", code="bad_job")
    if problem := attack_in(job):
        raise BadInputError(f"the prompt was refused: {problem}", param="prompt", code="blocked_prompt")


def _checked(name: str, value: Any, terms: FieldTerms) -> Any:
    match name:
        case "schedule":
            return value
        case "name":
            return clean_title(str(value))[:MAX_NAME]
        case "prompt":
            return _prompt(str(value))
        case "zone":
            terms.find_zone(str(value))
            return str(value)
        case "deliver":
            return _targets(value, terms)
        case "missed" | "approvals":
            return _choice(MissedPolicy if name == "missed" else ApprovalPolicy, name, value)
        case "no_agent":
            return bool(value)
        case "script":
            return _script(str(value))
        case "tools" | "skills" | "context_from":
            return _names(name, value)
    if name in _LIMITS:
        return _number(name, value)
    if name in _TEXTS:
        return _text(name, str(value), _TEXTS[name])
    raise BadInputError(f"a job has no field {name!r}", param=name, code="bad_job")


def _prompt(text: str) -> str:
    if len(text) > MAX_PROMPT:
        raise BadInputError(f"the prompt has more than {MAX_PROMPT} characters", param="prompt", code="bad_job")
    return _text("prompt", text, MAX_PROMPT)


def _text(name: str, value: str, most: int) -> str:
    if len(value) > most or "\0" in value:
        raise BadInputError(f"{name} is too long or contains a NUL character", param=name, code="bad_job")
    if name == "workdir" and value and not value.startswith("/"):
        raise BadInputError("workdir must be an absolute path", param=name, code="bad_job")
    return value


def _script(value: str) -> str:
    if value and not _SCRIPT.fullmatch(value):
        problem = "script must be the path of a file inside $HERMES_HOME/scripts, such as report.sh"
        raise BadInputError(problem, param="script", code="bad_job")
    return value


def _targets(value: Any, terms: FieldTerms) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else list(value)
    try:
        targets = parse_targets(tuple(map(str, texts)))
    except ValueError as error:
        raise BadInputError(str(error), param="deliver", code="bad_target") from error
    if not 1 <= len(targets) <= _MAX_LIST:
        raise BadInputError(f"deliver needs 1 to {_MAX_LIST} targets", param="deliver", code="bad_target")
    own = (TargetKind.LOCAL, TargetKind.ORIGIN)
    if not terms.approves and (others := [str(each) for each in targets if each.kind not in own]):
        problem = f"only the owner and admins may deliver to {', '.join(others)}"
        raise BadInputError(problem, param="deliver", code=NEEDS_APPROVER)
    return tuple(map(str, targets))


def _choice(kind: type[MissedPolicy | ApprovalPolicy], name: str, value: Any) -> Any:
    try:
        return kind(str(value))
    except ValueError:
        known = ", ".join(each.value for each in kind)
        raise BadInputError(f"{name} must be one of {known}", param=name, code="bad_job") from None


def _names(name: str, value: Any) -> tuple[str, ...]:
    texts = value.split(",") if isinstance(value, str) else list(value)
    names = tuple(dict.fromkeys(part for text in texts if (part := str(text).strip())))
    if len(names) > _MAX_LIST or any(len(each) > MAX_NAME for each in names):
        raise BadInputError(f"{name} takes at most {_MAX_LIST} names", param=name, code="bad_job")
    return names


def _number(name: str, value: Any) -> float:
    low, high = _LIMITS[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise BadInputError(f"{name} must be a number from {low:.0f} to {high:.0f}", param=name, code="bad_job")
    if name in _WHOLE and value != int(value):
        raise BadInputError(f"{name} must be a whole number", param=name, code="bad_job")
    return int(value) if name in _WHOLE else float(value)
