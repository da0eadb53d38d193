"""Next steps after a restore: what the backup does not contain and a person has to do. Pure."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import TYPE_CHECKING

from hermes.domain.values import dataclass
from hermes.upkeep.backup_manifest import LeftOutReason
from hermes.upkeep.seal import KEY_FILE

if TYPE_CHECKING:
    from hermes.upkeep.restore import Restored

API_KEY = "api.key"
_LOSSES = frozenset(
    {
        LeftOutReason.UNKNOWN_NAME,
        LeftOutReason.LINK_OUTSIDE,
        LeftOutReason.NO_PERMISSION,
        LeftOutReason.PATH_TOO_LONG,
        LeftOutReason.TOO_DEEP,
        LeftOutReason.READ_ERROR,
    }
)


class StepCode(StrEnum):
    """Steps, in the order in which to do them."""

    REPLACE_FILES = "replace_files"  # files that could not be backed up
    REPLACE_SECRETS = "replace_secrets"  # secret files that the old home had and this one lacks
    KEEP_BACKUP_KEY = "keep_backup_key"  # the next backup makes a new key
    PAIR_AGAIN = "pair_again"  # an untrusted backup lost pairings, grants and home channels
    TRUST_AGAIN = "trust_again"
    CHECK_AND_START = "check_and_start"
    NEW_API_KEY = "new_api_key"
    RESUME_SESSIONS = "resume_sessions"  # sessions of an untrusted backup are suspended


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    code: StepCode
    paths: tuple[str, ...] = ()  # relative to the home


def next_steps(restored: Restored, present: Collection[str], *, new_key: bool) -> tuple[NextStep, ...]:
    """`present`: the names in the home after the restore. `new_key`: the next start makes a new API key."""
    left_out = restored.manifest.left_out if restored.manifest else ()
    missing = {each.path: each.reason for each in left_out if each.path not in present}
    secrets = _with(LeftOutReason.SECRET, missing, without=(API_KEY, KEY_FILE))
    trust = _with(LeftOutReason.TRUST, missing)
    lost = tuple(path for path, reason in missing.items() if reason in _LOSSES)
    wanted = {
        StepCode.REPLACE_FILES: bool(lost),
        StepCode.REPLACE_SECRETS: bool(secrets),
        StepCode.KEEP_BACKUP_KEY: KEY_FILE not in present,
        StepCode.PAIR_AGAIN: restored.untrusted,
        StepCode.TRUST_AGAIN: bool(trust),
        StepCode.CHECK_AND_START: True,
        StepCode.NEW_API_KEY: new_key,
        StepCode.RESUME_SESSIONS: restored.untrusted,
    }
    paths = {StepCode.REPLACE_FILES: lost, StepCode.REPLACE_SECRETS: secrets, StepCode.TRUST_AGAIN: trust}
    return tuple(NextStep(code=code, paths=paths.get(code, ())) for code in StepCode if wanted[code])


def _with(
    wanted: LeftOutReason, missing: dict[str, LeftOutReason], *, without: tuple[str, ...] = ()
) -> tuple[str, ...]:
    return tuple(path for path, reason in missing.items() if reason is wanted and path not in without)
