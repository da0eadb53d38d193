"""How strangers are let in: codes, their limits and locks, as pure functions and through the edge."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace

import pytest

from hermes.adapters.chat.secret_masking import SecretMaskingPlatform
from hermes.domain.access.role import Role
from hermes.domain.errors import BadInputError
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.source import Place
from hermes.services import pairing_code
from hermes.services.pairing import FACT, GAP
from hermes.services.pairing_code import PairingBook, PairingOutcome, Request
from tests.adapters.chat.edge import Edge, edge
from tests.support.chat_platform import ToyPlatform

NOW = 1000.0
GOOD = "ABCD2345"


def request(user: str, at: float = NOW, platform: str = "toy") -> Request:
    return Request(place=Place(platform=platform, chat=user), user=user, name=f"Mr {user}", at=at)


def quick(code: str, salt: str) -> str:
    return f"{salt}/{code}"


def asked(*people: str) -> PairingBook:
    book = PairingBook()
    for user in people:
        book, _ = pairing_code.ask(book, request(user))
    return book


def issued(book: PairingBook, user: str, code: str = GOOD) -> PairingBook:
    waiting = next(each for each in book.pending if each.user == user)
    return pairing_code.issue(book, waiting, "salt", quick(code, "salt"))


def test_a_code_has_eight_characters_and_none_that_look_alike() -> None:
    codes = {pairing_code.make_code(secrets.choice) for _ in range(200)}
    assert len(codes) == 200
    assert all(len(code) == 8 for code in codes)
    assert not set("".join(codes)) & set("0O1I")
    assert len(pairing_code.ALPHABET) == len(set(pairing_code.ALPHABET)) == 32


def test_the_hash_of_a_code_depends_on_its_salt_and_does_not_hold_it() -> None:
    assert pairing_code.hash_of(GOOD, "a") == pairing_code.hash_of(GOOD, "a") != pairing_code.hash_of(GOOD, "b")
    assert GOOD not in pairing_code.hash_of(GOOD, "a")


def test_list_of_requests_is_bounded_on_each_platform() -> None:
    book = asked(*map(str, range(pairing_code.MAX_PENDING)))
    assert pairing_code.ask(book, request("d"))[1] is PairingOutcome.FULL
    assert pairing_code.ask(book, request("0"))[1] is PairingOutcome.KNOWN
    assert pairing_code.ask(book, request("d", platform="other"))[1] is PairingOutcome.NEW
    later, verdict = pairing_code.ask(book, request("d", at=NOW + pairing_code.VALID_S))
    assert verdict is PairingOutcome.NEW
    assert [each.user for each in later.pending] == ["d"]


def test_oldest_request_gives_way_in_a_full_list_once_it_has_waited() -> None:
    book = PairingBook()
    for number in range(pairing_code.MAX_PENDING):
        book, _ = pairing_code.ask(book, request(str(number), at=NOW + number))
    assert pairing_code.ask(book, request("d", at=NOW + pairing_code.KEPT_S - 1))[1] is PairingOutcome.FULL
    after, verdict = pairing_code.ask(book, request("d", at=NOW + pairing_code.KEPT_S))
    assert verdict is PairingOutcome.NEW
    assert [each.user for each in after.pending] == [*map(str, range(1, pairing_code.MAX_PENDING)), "d"]


def test_strangers_who_ask_again_and_again_do_not_keep_others_out() -> None:
    """They fill the list whenever they can, and somebody else comes once."""
    book, hours = PairingBook(), 12
    for minute in range(hours * 60):
        for number in range(20):
            book, _ = pairing_code.ask(book, request(f"spam{number}", at=NOW + minute * 60))
    book, verdict = pairing_code.ask(book, request("friend", at=NOW + hours * 3600))
    assert verdict is PairingOutcome.NEW


def test_one_person_can_ask_a_few_times_a_day() -> None:
    book = PairingBook()
    for number in range(pairing_code.MAX_REQUESTS):
        book, verdict = pairing_code.ask(book, request("a", at=NOW + number * pairing_code.VALID_S))
        assert verdict is PairingOutcome.NEW
    assert pairing_code.ask(book, request("a", at=NOW + 20 * 3600))[1] is PairingOutcome.TOO_OFTEN
    assert pairing_code.ask(book, request("a", at=NOW + 27 * 3600))[1] is PairingOutcome.NEW


def test_book_of_an_earlier_version_can_be_read() -> None:
    stored = json.loads(pairing_code.encode(asked("a")))
    del stored["past"]
    assert [each.user for each in pairing_code.decode(json.dumps(stored).encode()).pending] == ["a"]


def test_pairing_code_is_accepted_in_any_spelling() -> None:
    book = issued(asked("a", "b"), "b")
    after, found = pairing_code.approve(book, "toy", " abcd-2345 ", NOW + 10, quick)
    assert isinstance(found, Request)
    assert found.user == "b"
    assert pairing_code.role_of(after, "toy", "b") is Role.GUEST
    assert pairing_code.role_of(after, "toy", "a") is None
    assert pairing_code.role_of(after, "other", "b") is None
    assert [each.user for each in after.pending] == ["a"]


@pytest.mark.parametrize(
    ("platform", "code", "at"),
    [
        ("other", GOOD, NOW),
        ("toy", "AAAAAAAA", NOW),
        ("toy", "", NOW),
        ("toy", GOOD, NOW + pairing_code.VALID_S),
    ],
)
def test_wrong_misplaced_or_expired_code_is_refused(platform: str, code: str, at: float) -> None:
    after, problem = pairing_code.approve(issued(asked("a"), "a"), platform, code, at, quick)
    assert isinstance(problem, str)
    assert after.approved == ()
    assert after.wrong == 1


def test_a_request_whose_code_was_not_sent_yet_cannot_be_approved() -> None:
    assert isinstance(pairing_code.approve(asked("a"), "toy", "", NOW, lambda *_: "")[1], str)


def test_five_wrong_codes_lock_approving_for_an_hour() -> None:
    book = issued(asked("a"), "a")
    for _ in range(5):
        assert book.locked_until == 0
        book, problem = pairing_code.approve(book, "toy", "AAAAAAAA", NOW, quick)
    assert "locked for 60 minutes" in str(problem)
    assert "toy.allowed_users" in str(problem)  # the way out
    assert "locked" in str(pairing_code.approve(book, "toy", GOOD, NOW + pairing_code.LOCKED_S - 1, quick)[1])
    book = issued(replace(book, pending=(request("a", at=NOW + pairing_code.LOCKED_S),)), "a")
    assert isinstance(pairing_code.approve(book, "toy", GOOD, NOW + pairing_code.LOCKED_S, quick)[1], Request)


def test_a_right_code_clears_the_wrong_ones() -> None:
    book = issued(asked("a"), "a")
    for left in ("4 tries are left", "3 tries are left", "2 tries are left", "1 try is left"):
        book, problem = pairing_code.approve(book, "toy", "AAAAAAAA", NOW, quick)
        assert str(problem).endswith(left)
    assert pairing_code.approve(book, "toy", GOOD, NOW, quick)[0].wrong == 0


def test_the_book_is_the_same_after_it_was_stored() -> None:
    book, _ = pairing_code.approve(issued(asked("a", "b"), "a"), "toy", GOOD, NOW, quick)
    assert pairing_code.decode(pairing_code.encode(book)) == book
    assert pairing_code.decode(None) == PairingBook()
    assert pairing_code.revoke(book, "toy", "a").approved == ()


# ---------------------------------------------------------------- through the edge


async def sent_code(here: Edge, user: str) -> str:
    """As delivery does: the code is known only to the message that is sent."""
    platform = ToyPlatform()
    [outgoing] = [each for each in here.outgoing if each.place.chat == user and GAP in each.text]
    await SecretMaskingPlatform(platform, gap=GAP, fill=here.pairing.fill).send(outgoing, outgoing.text)
    [text] = platform.texts(user)
    return text.split("approve toy ")[1].split()[0]


async def test_unknown_user_gets_one_code_and_talks_after_approval() -> None:
    async with edge() as here:
        await here.says("eve", "hello")
        await here.says("eve", "hello?")
        assert len(here.told("eve")) == 1
        code = await sent_code(here, "eve")
        assert code.encode() not in (await here.here.desk.fact(FACT) or b"")
        here.restart()
        await here.pairing.approve("toy", code)
        assert here.told("eve")[-1].startswith("You can talk to me now. I have not read your earlier messages")
        first = await here.says("eve", "hello")
        assert await here.session(first) is not None
        here.restart()
        assert await here.pairing.role("toy", "eve") is Role.GUEST

        await here.pairing.revoke("toy", "eve")
        session = await here.session(first)
        assert session is not None
        turns = (await here.here.session(session)).queue
        await here.says("eve", "and again")
        assert (await here.here.session(session)).queue == turns
        with pytest.raises(BadInputError, match="is not paired"):
            await here.pairing.revoke("toy", "mallory")


async def test_wrong_codes_lock_approving_also_over_a_restart() -> None:
    async with edge() as here:
        await here.says("eve", "hello")
        code = await sent_code(here, "eve")
        for _ in range(5):
            with pytest.raises(BadInputError):
                await here.pairing.approve("toy", "AAAAAAAA")
        here.restart()
        with pytest.raises(BadInputError, match="locked"):
            await here.pairing.approve("toy", code)


async def test_one_stranger_too_many_is_put_off_at_most_once_an_hour() -> None:
    async with edge() as here:
        for user in (*(f"u{number}" for number in range(pairing_code.MAX_PENDING)), "late", "late"):
            await here.says(user, "hello")
        assert here.told("late") == [here.told("late")[0]]
        assert "try again later" in here.told("late")[0]
        here.here.now += pairing_code.KEPT_S
        await here.says("late", "hello")
        assert GAP in here.told("late")[1]  # the oldest request has given way


async def test_a_stranger_who_asks_too_often_gets_no_answer() -> None:
    async with edge() as here:
        for _ in range(pairing_code.MAX_REQUESTS + 2):
            await here.says("eve", "hello")
            here.here.now += pairing_code.VALID_S
        assert len(here.told("eve")) == pairing_code.MAX_REQUESTS


async def test_strangers_in_groups_and_their_presses_are_ignored() -> None:
    async with edge() as here:
        await here.says("eve", "hello", "group")
        await here.says("eve", "hello", "group", thread="t")
        await here.says("eve", "once", answers="token")
        assert here.outgoing == []
        assert (await here.pairing.book()).pending == ()


async def test_ignored_strangers_get_no_code() -> None:
    async with edge(pair=False) as here:
        await here.says("eve", "hello")
        assert here.outgoing == []


async def test_late_code_is_replaced_by_a_notice() -> None:
    async with edge() as here:
        await here.says("eve", "hello")
        [outgoing] = here.outgoing
        here.here.now += pairing_code.VALID_S
        platform = ToyPlatform()
        discreet = SecretMaskingPlatform(platform, gap=GAP, fill=here.pairing.fill)
        message = await discreet.send(outgoing, outgoing.text)
        assert "has expired" in platform.texts("eve")[0]
        await discreet.edit(outgoing, message, outgoing.text)
        assert platform.edits == []
        plain = OutboxMessage(id="a", kind=OutboxKind.REPLY, place=outgoing.place, text="x", at=1.0)
        await discreet.edit(plain, await discreet.send(plain, "x"), "y")
        assert platform.texts("eve")[1:] == ["y"]


def test_somebody_who_was_let_in_before_there_were_roles_is_a_guest() -> None:
    old = (
        b'{"pending":[],"approved":[{"platform":"toy","user":"a","name":"A","at":1.0}],"wrong":0,"locked_until":0.0}'
    )
    assert pairing_code.role_of(pairing_code.decode(old), "toy", "a") is Role.GUEST


async def test_a_paired_person_is_a_guest_until_the_owner_makes_them_a_user() -> None:
    async with edge() as here:
        await here.says("eve", "hello")
        approved = await here.pairing.approve("toy", await sent_code(here, "eve"))
        assert approved.role is Role.GUEST
        assert (await here.pairing.set_role("toy", "eve", Role.USER)).role is Role.USER
        here.restart()
        assert await here.pairing.role("toy", "eve") is Role.USER
        with pytest.raises(BadInputError, match="is not paired"):
            await here.pairing.set_role("toy", "mallory", Role.USER)


async def test_a_code_can_be_approved_for_a_user() -> None:
    async with edge() as here:
        await here.says("eve", "hello")
        assert (await here.pairing.approve("toy", await sent_code(here, "eve"), Role.USER)).role is Role.USER
