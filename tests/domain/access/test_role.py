"""Roles: their order, and what is assumed where none is stored."""

from __future__ import annotations

import pytest

from hermes.domain.access.role import OWNER_SURFACES, Role, assumed, lowest
from hermes.domain.source import Source


def test_each_role_includes_those_below_it() -> None:
    ranked = [Role.GUEST, Role.USER, Role.ADMIN, Role.OWNER]
    for high, role in enumerate(ranked):
        assert [role.includes(other) for other in ranked] == [low <= high for low in range(4)]


def test_lowest_role() -> None:
    assert lowest(Role.ADMIN, Role.GUEST, Role.USER) is Role.GUEST
    assert lowest(Role.OWNER) is Role.OWNER


@pytest.mark.parametrize("platform", ["telegram", "slack", "recovered", "", "api2"])
def test_a_stored_source_without_role_has_the_least_one(platform: str) -> None:
    assert Source(platform=platform, user="x").standing is Role.GUEST


@pytest.mark.parametrize("platform", OWNER_SURFACES)
def test_owner_surfaces_without_role_are_the_owners(platform: str) -> None:
    assert assumed(platform) is Role.OWNER
    assert Source(platform=platform, role=Role.USER).standing is Role.USER, "a stored role counts"
