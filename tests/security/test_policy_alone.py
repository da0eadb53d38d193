"""The approval policy without a sandbox: every known attack is asked about or denied, everyday work is not."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from hermes.domain.turn.tool_call import Gate, Verdict
from hermes.shell_policy.links import link_targets
from hermes.shell_policy.policy import decide
from tests.security.corpus import Attack, Effect, Everyday, Target, load, load_everyday

TARGET = Target(
    home="/home/ann",
    work="/home/ann/project",
    data="/home/ann/.local/share/hermes",
    canary="/home/ann/canary.txt",
    secret="/home/ann/.ssh/id_ed25519",
    port=34567,
)


def gate(
    line: str,
    target: Target = TARGET,
    cwd: str = "",
    targets: Callable[[str], tuple[str, ...]] = link_targets,
) -> Gate:
    return decide(
        line,
        cwd=cwd or target.work,
        home=target.home,
        hermes_home=target.data,
        work=target.work,
        targets=targets,
        deny=(),
        mode="manual",
        granted=(),
    )


def test_corpora_are_large_and_cover_every_effect() -> None:
    assert len({attack.line for attack in load()}) >= 300
    assert {attack.effect for attack in load()} == set(Effect)
    assert min(Counter(attack.kind for attack in load()).values()) >= 8
    assert len({each.line for each in load_everyday()}) >= 250


@pytest.mark.parametrize("kind", sorted({attack.kind for attack in load()}))
def test_no_attack_of_a_known_class_is_unasked(kind: str) -> None:
    attacks = [attack for attack in load() if attack.kind == kind]
    unasked = [attack.line for attack in attacks if gate(TARGET.fill(attack.line)).verdict is Verdict.ALLOW]
    assert unasked == []


@pytest.mark.parametrize("wrapping", ["bash -c '{}'", "( {} )", "true && {}", "if true; then {}; fi", "{} | cat"])
def test_no_simple_attack_is_unasked_when_wrapped(wrapping: str) -> None:
    lines = [
        TARGET.fill(each.line) for each in load() if not set(each.line) & set("'\n#&<(\\") and "pad" not in each.line
    ]
    assert len(lines) > 300
    unasked = [line for line in lines if gate(wrapping.replace("{}", line)).verdict is Verdict.ALLOW]
    assert unasked == []


def asked(lines: list[Everyday]) -> set[str]:
    return {each.line for each in lines if gate(each.line) != Gate()}


def test_only_the_accepted_exceptions_of_everyday_work_are_asked_about() -> None:
    assert asked(list(load_everyday())) == {each.line for each in load_everyday() if each.asked}


def test_no_exception_is_confined_to_the_working_directory() -> None:
    assert [each.line for each in load_everyday() if each.confined and each.asked] == []


def test_symbolic_links_are_followed_to_what_they_lead_to(tmp_path: Path) -> None:
    target = Target(
        home=str(tmp_path / "home"),
        work=str(tmp_path / "home/project"),
        data=str(tmp_path / "home/.local/share/hermes"),
        canary="",
        secret=str(tmp_path / "home/.ssh/id_ed25519"),
        port=1,
    )
    work = Path(target.work)
    work.mkdir(parents=True)
    Path(target.secret).parent.mkdir()
    Path(target.secret).write_text("key")
    (work / "key.txt").symlink_to(target.secret)
    (work / "keys").symlink_to(Path(target.secret).parent)
    (work / "out").symlink_to(target.home)
    (work / "plain").mkdir()
    for line in ("cat key.txt", "cat *.txt", "cat keys/id_ed25519", "cat keys/*", "cd keys && cat id_ed25519"):
        assert gate(line, target).verdict is Verdict.ASK, line
    for line in ("ls", "cat plain/x", "cat plain/*"):
        assert gate(line, target) == Gate(), line


def test_writes_through_a_link_out_of_the_working_directory_are_asked_about(home_with_link: Target) -> None:
    for line in ("echo x > out/y", "cp a out/", "touch out/y", "tar xf a.tar -C out", "cd out && touch y"):
        assert gate(line, home_with_link).verdict is Verdict.ASK, line


@pytest.fixture
def home_with_link(tmp_path: Path) -> Target:
    # Not below /tmp, which may be written: what a link leads to is elsewhere.
    work = tmp_path / "project"
    work.mkdir()
    (work / "out").symlink_to("/usr/share")
    return Target(home="/home/ann", work=str(work), data="/home/ann/.hermes", canary="", secret="", port=1)


def test_a_working_directory_reached_by_a_link_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "real/project").mkdir(parents=True)
    (tmp_path / "home").symlink_to(tmp_path / "real")
    target = Target(
        home=str(tmp_path / "home"), work=str(tmp_path / "home/project"), data="", canary="", secret="", port=1
    )
    assert gate("echo x > a.txt; touch b", target) == Gate()


def test_new_temporary_file_is_none_of_the_links_in_tmp() -> None:
    def links(path: str) -> tuple[str, ...]:
        return ("/srv/shared",) if fnmatchcase("/tmp/shared", path) else ()

    for line in ('F=$(mktemp); echo x > "$F"; cat "$F"', 'D=$(mktemp -d); echo x > "$D/y"', "cp a $(mktemp)"):
        assert gate(line, targets=links) == Gate(), line
    for line in ("echo x > /tmp/shared", "touch /tmp/*"):
        assert gate(line, targets=links).verdict is Verdict.ASK, line


def test_leaving_the_working_directory_does_not_move_it() -> None:
    assert gate("echo x > y", cwd="/home/ann/other").verdict is Verdict.ASK
    assert gate("make", cwd="/home/ann").verdict is Verdict.ASK


def test_gate_takes_a_few_milliseconds_for_everyday_lines() -> None:
    lines = [each.line for each in load_everyday()]
    slowest = max(lines, key=_cpu_s)
    assert _cpu_s(slowest) < 0.02, slowest  # several times what it takes, for a slow machine


def _cpu_s(line: str) -> float:
    times = []
    for _ in range(3):
        before = time.process_time()
        gate(line)
        times.append(time.process_time() - before)
    return min(times)


LONG = 120_000


@pytest.mark.parametrize(
    "line",
    [
        "python3 -c '" + "x" * LONG + "'",
        "sed '" + "s,a;s!b|" * (LONG // 8) + "' a.txt",
        "awk '" + "print x " * (LONG // 8) + "' a.txt",
        "perl -e '" + "open ( , " * (LONG // 9) + "'",
        "echo " + "a " * 2_000,
        "cat " + " ".join(f"f{n}" for n in range(2_400)),
        "# " + "x" * LONG + "\nls",
        "curl " + "@" * LONG,
        "git -c " + "a." * (LONG // 2) + "=b status",
        "tar " + "c" * LONG + " x",
        "x=" + "y" * 60_000 + "; echo $x$x$x$x",
        "cp " + "../" * (LONG // 3) + " x",
        "ls " + "~/" * (LONG // 2),
        "make " + "A=" * (LONG // 2),
        "FOO=" + "PYTHON" * (LONG // 6) + " ls",
        "PYTHONPATH=" + "a." * (LONG // 2) + "! ls",
        "NODE_OPTIONS='" + "--max-a=1 " * (LONG // 10) + "!' ls",
    ],
    ids=lambda line: line[:12],
)
def test_gate_is_bounded_for_huge_lines(line: str) -> None:
    assert _cpu_s(line) < 1.0


def test_attack_lines_fill_all_placeholders() -> None:
    def left(attack: Attack) -> bool:
        return any(f"{{{name}}}" in TARGET.fill(attack.line) for name in ("home", "work", "data", "canary", "secret"))

    assert [attack.line for attack in load() if left(attack)] == []


def test_process_ids_of_the_daemon_are_never_killed() -> None:
    for line in ("kill 4242", "kill -9 4242", "kill -- -4242", "kill -TERM 4242", "sh -c 'kill 4242'"):
        found = decide(line, cwd="/w", home="/home/ann", deny=(), mode="off", granted=(), daemon=(4242, 4241))
        assert found.verdict is Verdict.BLOCK, line
    assert (
        decide("kill 4243", cwd="/w", home="/home/ann", deny=(), mode="manual", granted=(), daemon=(4242,)) == Gate()
    )


def test_a_home_as_working_directory_holds_neither_hidden_files_nor_what_is_above_it() -> None:
    for line in (
        "echo x > .config/x",
        "touch ~/.x/y",
        "echo x > ../y",
        "tar xf a -C /",
        "cat .thunderbird/mail",
        "../x",
    ):
        assert gate(line, home_as_work(), cwd="/home/ann").verdict is Verdict.ASK, line
    for line in ("echo x > y", "touch docs/y", "ls -a", "cat notes.txt", "make -C project"):
        assert gate(line, home_as_work(), cwd="/home/ann") == Gate(), line


def home_as_work() -> Target:
    return Target(home="/home/ann", work="/home/ann", data="/home/ann/.hermes", canary="", secret="", port=1)
