"""Files that people share can be fetched, with the token for nobody but Slack; files that are sent arrive once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.adapters.slack.adapter import SlackAdapter
from hermes.domain.errors import DeliveryError, PlatformError, UnsendableFileError
from hermes.domain.outbox_message import OutboxMessage
from hermes.ports.chat import Attachment, FileSource
from tests.adapters.edge import FakeEdge, listening
from tests.adapters.slack.outgoing import outgoing
from tests.support.slack_files import LOGIN_PAGE
from tests.support.slack_server import Fault, SlackServer
from tests.support.slack_state import BOT_USER, TEAM
from tests.support.waiting import until

PNG = ("cat.png", b"\x89PNG picture", "image/png")


async def shared(adapter: SlackAdapter, server: SlackServer) -> tuple[Attachment, ...]:
    edge = FakeEdge()
    async with listening(adapter, edge):
        await until(lambda: server.unacknowledged == 0)
    [inbound] = edge.taken
    return inbound.attachments


async def fetched(adapter: SlackAdapter, attachment: Attachment) -> bytes:
    return b"".join([piece async for piece in adapter.fetch(attachment)])


# ------------------------------------------------------------ in


async def test_files_of_a_message_are_fetched_with_the_workspaces_token(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    assert isinstance(adapter, FileSource)
    long = bytes(range(256)) * 4000
    server.share("D1", "UANN", PNG, ("a.pdf", long, "application/pdf"), text="look")
    picture, document = await shared(adapter, server)
    assert picture == Attachment(
        kind="image", file_id=f"{TEAM}.F0001", name="cat.png", media_type="image/png", size_bytes=12
    )
    assert (document.kind, document.size_bytes) == ("file", len(long))
    assert [await fetched(adapter, each) for each in (picture, document)] == [PNG[1], long]


async def test_file_without_text_is_taken_in_private_chats(server: SlackServer, adapter: SlackAdapter) -> None:
    edge = FakeEdge()
    server.share("D1", "UANN", PNG)
    server.share("C1", "UANN", PNG)
    server.share("C1", "UANN", PNG, text=f"<@{BOT_USER}> what is this?")
    async with listening(adapter, edge):
        await until(lambda: server.unacknowledged == 0)
    assert sorted((each.text, len(each.attachments)) for each in edge.taken) == [("", 1), ("what is this?", 1)]


async def test_of_a_file_with_nothing_but_an_id_slack_is_asked(server: SlackServer, adapter: SlackAdapter) -> None:
    server.share("D1", "UANN", PNG, bare=True)
    [picture] = await shared(adapter, server)
    assert (picture.kind, picture.name, picture.size_bytes) == ("image", "cat.png", 12)
    server.share("D1", "UANN", PNG, bare=True)
    server.fail("files.info", Fault(error="internal_error"))
    [unknown] = await shared(adapter, server)
    assert (unknown.kind, unknown.name) == ("file", "")
    assert await fetched(adapter, unknown) == PNG[1]


async def test_without_the_scope_it_is_said_which_one_is_missing(server: SlackServer, adapter: SlackAdapter) -> None:
    server.share("D1", "UANN", PNG)
    [picture] = await shared(adapter, server)
    server.fail("download", Fault(status=403), Fault(status=302), Fault(page=LOGIN_PAGE))
    for _ in range(3):
        with pytest.raises(PlatformError, match="files:read"):
            await fetched(adapter, picture)
    server.scopes.discard("files:read")
    with pytest.raises(PlatformError, match="files:read"):
        await fetched(adapter, picture)


async def test_a_page_that_somebody_sent_is_no_login_page(server: SlackServer, adapter: SlackAdapter) -> None:
    server.share("D1", "UANN", ("a.html", b"<html>mine", "text/html"))
    [page] = await shared(adapter, server)
    assert await fetched(adapter, page) == b"<html>mine"


@pytest.mark.parametrize(
    ("method", "fault", "problem"),
    [
        ("files.info", Fault(error="file_deleted"), "no longer exists"),
        ("files.info", Fault.bad_gateway(), "failed"),
        ("download", Fault(status=500), "HTTP 500"),
    ],
)
async def test_what_keeps_us_from_a_file_is_said(
    method: str, fault: Fault, problem: str, server: SlackServer, adapter: SlackAdapter
) -> None:
    server.share("D1", "UANN", PNG)
    [picture] = await shared(adapter, server)
    server.fail(method, fault)
    with pytest.raises(PlatformError, match=problem):
        await fetched(adapter, picture)


async def test_when_slack_wants_us_to_wait_a_file_comes_later(server: SlackServer, adapter: SlackAdapter) -> None:
    server.share("D1", "UANN", PNG)
    [picture] = await shared(adapter, server)
    server.fail("files.info", Fault.flood(0))
    assert await fetched(adapter, picture) == PNG[1]


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/F1",
        "https://slack.com.evil.example/F1",
        "http://files.slack.com/F1",
        "http://127.0.0.1:9/F1",
        "file:///etc/passwd",
        "nothing",
    ],
)
async def test_token_is_sent_only_to_slack(address: str, server: SlackServer, adapter: SlackAdapter) -> None:
    server.share("D1", "UANN", PNG, address=address)
    [picture] = await shared(adapter, server)
    with pytest.raises(PlatformError, match="is not on Slack"):
        await fetched(adapter, picture)
    assert server.count("download") == 0


# ------------------------------------------------------------ out


@pytest.fixture
def report(tmp_path: Path) -> str:
    (tmp_path / "report €.pdf").write_bytes(b"%PDF")
    return str(tmp_path / "report €.pdf")


def owing(path: str, *, thread: str = "", message: str = "") -> OutboxMessage:
    return replace(outgoing("", chat=f"{TEAM}.C1", thread=thread, message=message), files=(path,))


async def test_a_file_goes_to_the_thread_of_the_answer(
    server: SlackServer, adapter: SlackAdapter, report: str
) -> None:
    asked = server.say("C1", "UANN", "hello")
    sent = await adapter.platform.send_file(owing(report, thread=asked), report, "(a repeat)")
    [file] = server.files("C1")
    assert (file.id, file.name, file.data) == (sent, "report €.pdf", b"%PDF")
    shown = server.history("C1")[-1]
    assert (shown.thread, shown.text) == (asked, "(a repeat)")
    assert [call.about["token"] for call in server.calls if call.method == "upload"] == [""]


@pytest.mark.parametrize("in_thread", [True, False])
async def test_a_file_whose_answer_was_lost_is_found(
    in_thread: bool, server: SlackServer, adapter: SlackAdapter, report: str
) -> None:
    root = server.say("C1", "UANN", "hello")
    await adapter.platform.send_file(owing(report, thread=root), report, "")  # an earlier one of that name
    asked = server.say("C1", "UANN", "once more", thread=root if in_thread else "")
    one = owing(report, thread=root if in_thread else "", message=asked)
    assert await adapter.platform.find(one, 0) is None
    server.fail("files.completeUploadExternal", Fault(lost=True))
    with pytest.raises(DeliveryError) as caught:
        await adapter.platform.send_file(one, report, "")
    assert caught.value.arrived_perhaps
    assert await adapter.platform.find(one, 0) == server.files("C1")[-1].id


async def test_another_file_of_the_same_name_is_not_taken_for_it(
    server: SlackServer, adapter: SlackAdapter, tmp_path: Path
) -> None:
    asked = server.say("C1", "UANN", "twice")
    one, two = tmp_path / "1" / "r.txt", tmp_path / "2" / "r.txt"
    for path in (one, two):
        await asyncio.to_thread(path.parent.mkdir)
        await asyncio.to_thread(path.write_text, path.parent.name)
    await adapter.platform.send_file(replace(owing(str(one), message=asked), id="file:1"), str(one), "")
    second = replace(owing(str(two), message=asked), id="file:2")
    server.fail("files.completeUploadExternal", Fault.bad_gateway())
    with pytest.raises(DeliveryError) as caught:
        await adapter.platform.send_file(second, str(two), "")
    assert caught.value.arrived_perhaps
    assert await adapter.platform.find(second, 0) is None
    longer = tmp_path / "r.txt"
    await asyncio.to_thread(longer.write_text, "of another length")
    third = replace(owing(str(longer), message=asked), id="file:3")  # before a restart, that is
    assert await adapter.platform.find(third, 0) is None


@pytest.mark.parametrize(
    ("method", "fault"),
    [
        ("files.getUploadURLExternal", Fault.flood(30)),
        ("files.getUploadURLExternal", Fault(lost=True)),
        ("upload", Fault(status=503)),
        ("files.completeUploadExternal", Fault.flood(30)),
        ("files.completeUploadExternal", Fault(error="invalid_auth")),
    ],
)
async def test_file_that_was_not_shown_can_be_sent_again(
    method: str, fault: Fault, server: SlackServer, adapter: SlackAdapter, report: str
) -> None:
    server.say("C1", "UANN", "hello")
    server.fail(method, fault)
    with pytest.raises(DeliveryError) as caught:
        await adapter.platform.send_file(owing(report), report, "")
    problem = caught.value
    assert not isinstance(problem, UnsendableFileError)
    assert (problem.arrived_perhaps, problem.gone, problem.retry_after_s) == (False, False, fault.retry_after)
    assert server.files("C1") == []


async def test_file_refused_by_slack_is_unsendable(server: SlackServer, adapter: SlackAdapter, report: str) -> None:
    server.say("C1", "UANN", "hello")
    server.fail("files.completeUploadExternal", Fault(error="file_uploads_disabled"), Fault(error="not_in_channel"))
    for problem in ("file_uploads_disabled", "/invite it"):
        with pytest.raises(UnsendableFileError, match=problem):
            await adapter.platform.send_file(owing(report), report, "")
    server.scopes.discard("files:write")
    with pytest.raises(UnsendableFileError, match="lacks the scope files:write"):
        await adapter.platform.send_file(owing(report), report, "")


async def test_missing_empty_or_large_file_is_unsendable(
    server: SlackServer, adapter: SlackAdapter, tmp_path: Path
) -> None:
    await asyncio.to_thread((tmp_path / "empty").touch)
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate((50 << 20) + 1)
    for name, problem in (("gone", "no longer exists"), ("empty", "empty"), ("huge", "50 MB")):
        with pytest.raises(UnsendableFileError, match=problem):
            await adapter.platform.send_file(owing(str(tmp_path / name)), str(tmp_path / name), "")
    assert server.count("files.getUploadURLExternal") == 0
