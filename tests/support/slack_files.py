"""The files that a fake Slack keeps: those of people, and those that the bot brings.

Content lies behind an address of its own; only a token with the right scope opens it. Who has none gets the page on
which people log in, with the status of something that went well.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.slack_state import BOT_USER, Refusal, Shown

LOGIN_PAGE = b"<!DOCTYPE html><html><head><title>Slack</title></head><body>Sign in</body></html>"


@dataclass(slots=True)
class Kept:
    id: str
    team: str
    name: str
    media_type: str
    data: bytes = b""
    title: str = ""
    address: str = ""  # where it says its content is, if not with the fake itself

    def as_json(self, address: str) -> dict[str, Any]:
        about = {"id": self.id, "name": self.name, "title": self.title or self.name, "mimetype": self.media_type}
        return {**about, "size": len(self.data), "url_private_download": self.address or f"{address}/{self.id}"}


class Shelf:
    """Not thread-safe: the server guards it."""

    def __init__(self) -> None:
        self.kept: dict[str, Kept] = {}

    def add(self, team: str, name: str, data: bytes, media_type: str) -> Kept:
        file = Kept(id=f"F{len(self.kept) + 1:04}", team=team, name=name, media_type=media_type, data=data)
        self.kept[file.id] = file
        return file

    # ------------------------------------------------------------ what the bot does

    def info(self, team: str, about: dict[str, Any], address: str) -> dict[str, Any]:
        return {"file": self._found(team, str(about.get("file"))).as_json(address)}

    def upload_url(self, team: str, about: dict[str, Any], address: str) -> dict[str, Any]:
        if not int(about["length"]) or not about.get("filename"):
            raise Refusal("invalid_arguments")
        file = self.add(team, str(about["filename"]), b"", "application/octet-stream")
        return {"file_id": file.id, "upload_url": f"{address}/{file.id}?upload={about['length']}"}

    def complete(
        self, team: str, about: dict[str, Any], show: Callable[[str, str, str, str], Shown]
    ) -> dict[str, Any]:
        files = [self._found(team, each["id"]) for each in json.loads(about["files"])]
        if not all(each.data for each in files):
            raise Refusal("file_not_found")
        for file, given in zip(files, json.loads(about["files"]), strict=True):
            file.title = given.get("title") or file.name
        channel, thread = str(about.get("channel_id") or ""), str(about.get("thread_ts") or "")
        shown = show(team, channel, thread, str(about.get("initial_comment") or ""))
        assert shown.by == BOT_USER
        shown.files = [{"id": each.id, "name": each.name, "title": each.title} for each in files]
        return {"files": [{"id": each.id, "title": each.title} for each in files]}

    def _found(self, team: str, name: str) -> Kept:
        file = self.kept.get(name)
        if file is None or file.team != team:
            raise Refusal("file_not_found")
        return file
