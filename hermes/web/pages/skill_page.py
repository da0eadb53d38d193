"""Skills: the list with changes that wait, and one skill with its text, its versions and what they did."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web
from loguru import logger

from hermes.adapters.http.problem import refusal
from hermes.domain.skill.skill import SkillError, UnknownSkillError
from hermes.services.learning.skill_operations import person
from hermes.web.page_kit import LOGIN, PageKit, number_in_path, see

_VERSIONS = 50  # on the page
_FRONTMATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


class SkillPage:
    def __init__(self, kit: PageKit) -> None:
        self._kit = kit

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/ui/skills", self.show),
            web.get("/ui/skills/{name}", self.one),
            web.post("/ui/skills/{name}/{number}/{decision:approve|reject|revert}", self.decide),
        ]

    async def show(self, request: web.Request) -> web.Response:
        found = await self._kit.parts.skills.operations.listed()
        return await self._kit.page(request, "skills.html", **found)

    async def one(self, request: web.Request) -> web.Response:
        operations, name = self._kit.parts.skills.operations, request.match_info["name"]
        with _refusing():
            skill = await operations.show(name)
            [effect] = (await operations.stats(name))["skills"] or [None]
            changes = (await operations.log(name))["changes"][:_VERSIONS]
        text = _FRONTMATTER.sub("", skill["body"], count=1)
        return await self._kit.page(request, "skill.html", skill=skill, text=text, effect=effect, changes=changes)

    async def decide(self, request: web.Request) -> web.Response:
        """Approve or reject a change that waits, or bring an earlier version back."""
        self._kit.check_operator(request)
        name, number, decision = (
            request.match_info["name"],
            number_in_path(request, "number"),
            request.match_info["decision"],
        )
        skills, who = self._kit.parts.skills, request[LOGIN].who
        origin = person(decision, who)
        with _refusing():
            if decision == "revert":
                await skills.operations.revert(name, number, origin)
            else:
                await (skills.editor.approve if decision == "approve" else skills.editor.reject)(name, number, origin)
        logger.info("skill {}: version {}: {} by {}", name, number, decision, who)
        return see(f"/ui/skills/{name}" if decision == "revert" else "/ui/skills")


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except SkillError as error:
        raise refusal(404 if isinstance(error, UnknownSkillError) else 409, error.code, str(error)) from error
