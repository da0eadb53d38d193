"""Policy of skills: what may be installed, and what the agent may write by itself. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from hermes.domain.change import ChangeAuthor
from hermes.domain.skill.skill_scan import ScanReport, ScanVerdict


class TrustTier(StrEnum):
    """Trust in the source of an installed skill."""

    BUILTIN = "builtin"  # part of Hermes
    TRUSTED = "trusted"  # from a source listed in skills.trusted_sources
    LOCAL = "local"  # from a folder or archive of this machine
    COMMUNITY = "community"  # from anywhere else


class Permission(StrEnum):
    ALLOWED = "allowed"
    ASK = "ask"  # a person has to agree
    REFUSED = "refused"  # a person has to insist


def tier_of(source: str, *, is_remote: bool, trusted: Sequence[str]) -> TrustTier:
    """Return the tier of a source. `trusted` are addresses that sources may begin with."""
    if not is_remote:
        return TrustTier.LOCAL
    if any(source == each or source.startswith(each.rstrip("/") + "/") for each in trusted):
        return TrustTier.TRUSTED
    return TrustTier.COMMUNITY


def may_install(report: ScanReport, tier: TrustTier) -> Permission:
    """A dangerous skill is refused whatever its source. One with caution needs a yes unless its source is trusted."""
    match report.verdict:
        case ScanVerdict.DANGEROUS:
            return Permission.REFUSED
        case ScanVerdict.CAUTION if tier not in (TrustTier.BUILTIN, TrustTier.TRUSTED):
            return Permission.ASK
    return Permission.ALLOWED


def may_write(new: ScanReport, old: ScanReport, author: ChangeAuthor, *, approval: bool) -> Permission:
    """The agent writes no dangerous text, and needs a yes for a new finding, or for everything if `approval`."""
    if author is ChangeAuthor.PERSON:
        return Permission.ALLOWED
    known = {(each.rule, each.path, each.reason) for each in old.findings}
    fresh = [each for each in new.findings if (each.rule, each.path, each.reason) not in known]
    if any(each.verdict is ScanVerdict.DANGEROUS for each in fresh):
        return Permission.REFUSED
    return Permission.ASK if approval or fresh else Permission.ALLOWED
