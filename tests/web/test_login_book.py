"""Codes, logins and form tokens of the dashboard."""

from __future__ import annotations

from hermes.web.login_book import CODE_S, IDLE_S, LONGEST_S, MAX_CODES, MAX_LOGINS, LoginBook


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_code_is_valid_once() -> None:
    book = LoginBook(Time())
    code = book.create_code()
    assert not book.use_code(code[:-1])
    assert book.is_code(code)
    assert book.use_code(code)
    assert not book.is_code(code)
    assert not book.use_code(code)


def test_code_expires() -> None:
    clock = Time()
    book = LoginBook(clock)
    early, late = book.create_code(), book.create_code()
    clock.now += CODE_S - 1
    assert book.use_code(early)
    clock.now += 1
    assert not book.use_code(late)


def test_only_the_newest_codes_are_kept() -> None:
    book = LoginBook(Time())
    codes = [book.create_code() for _ in range(MAX_CODES + 1)]
    assert [book.use_code(code) for code in codes] == [False, *[True] * MAX_CODES]


def test_login_ends_when_idle_and_after_its_longest_time() -> None:
    clock = Time()
    book = LoginBook(clock)
    cookie = book.open(is_operator=True)
    login = book.find(cookie)
    assert login is not None
    clock.now += IDLE_S - 1
    assert book.find(cookie) is login
    clock.now += IDLE_S
    assert book.find(cookie) is None
    assert login.ended.is_set()
    cookie, began = book.open(is_operator=False), clock.now
    while clock.now + IDLE_S / 2 < began + LONGEST_S:
        clock.now += IDLE_S / 2
        assert book.find(cookie)
    clock.now += IDLE_S / 2
    assert book.find(cookie) is None


def test_longest_unused_login_makes_room() -> None:
    clock = Time()
    book = LoginBook(clock)
    first, second = book.open(is_operator=True), book.open(is_operator=True)
    clock.now += 1
    assert book.find(first)
    others = [book.open(is_operator=True) for _ in range(MAX_LOGINS - 1)]
    assert book.find(second) is None
    assert book.find(first)
    assert all(map(book.find, others))


def test_form_token_belongs_to_its_cookie() -> None:
    book = LoginBook(Time())
    assert book.is_form_token("a", book.form_token("a"))
    assert not book.is_form_token("b", book.form_token("a"))
    assert not LoginBook(Time()).is_form_token("a", book.form_token("a"))
