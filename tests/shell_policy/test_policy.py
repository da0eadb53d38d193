from __future__ import annotations

import time

import pytest

from hermes.domain.turn.tool_call import Gate, Verdict
from hermes.shell_policy.policy import decide, path_gate
from hermes.shell_policy.protected_path import OwnAddress
from tests.shell_policy.test_corpus import CWD, HERMES_HOME, HOME, gate


def test_a_question_names_the_command_the_reason_and_what_a_grant_would_cover() -> None:
    found = gate("ls && rm -r build; git push -f")
    assert found.verdict is Verdict.ASK
    assert found.rules == ("recursive-delete", "git-force-push")
    assert "`rm -r build` deletes a directory tree" in found.reason
    assert "`git push -f`" in found.reason


def test_a_grant_counts_only_if_it_covers_every_rule() -> None:
    line = "rm -r build; git push -f"
    assert gate(line, granted={"recursive-delete"}).verdict is Verdict.ASK
    assert gate(line, granted={"recursive-delete", "git-force-push"}) == Gate()


def test_the_reason_is_about_what_is_not_granted_yet() -> None:
    found = gate("rm -r build; git push -f", granted={"recursive-delete"})
    assert "git push" in found.reason
    assert "rm -r" not in found.reason


def test_without_approvals_dangers_run_and_catastrophes_do_not() -> None:
    assert gate("rm -r build", mode="off") == Gate()
    assert gate("$UNKNOWN x", mode="off") == Gate()
    assert gate("rm -rf /", mode="off").verdict is Verdict.BLOCK


@pytest.mark.parametrize(
    "command",
    [
        "npm publish",
        "npm  publish",
        "ls; npm publish",
        "/usr/bin/npm publish",
        "n''pm publish",
        "env A=b npm publish --x",
        "sh -c 'npm publish'",
    ],
)
def test_a_deny_glob_wins_over_mode_and_grants(command: str) -> None:
    found = gate(command, deny=["npm publish*"], mode="off", granted={"remote-change"})
    assert found.verdict is Verdict.BLOCK
    assert "npm publish*" in found.reason


@pytest.mark.parametrize(
    ("command", "glob"),
    [
        ("git -C . push", "git push*"),
        ("git -c x=y push origin main", "git push*"),
        ("git --no-pager push", "git push*"),
        ("git --git-dir=.git --work-tree . push", "git push*"),
        ("git -c alias.q=push q", "git push*"),
        ("git -calias.q=push q", "git push*"),
        ("git config alias.q push; git q origin", "git push*"),
        ("git -c alias.q='!git push' q", "git push*"),
        ("$G push", "git push*"),
        ("git $V origin", "git push*"),
        ("g?t push", "git push*"),
        ("$X", "git push*"),
        ('eval "$X"', "git push*"),
        ("cur? x", "curl*"),
        ("/usr/bin/cur[l] x", "curl*"),
        ("c$X x", "curl *"),
        ("taskset 1 curl x", "curl*"),
        ("taskset -c 0 curl x", "curl*"),
        ("choom -n 0 curl x", "curl*"),
        ("choom -n 0 -- curl x", "curl*"),
        ("somewrapper --x git push", "git push*"),
        ("npm --prefix x publish", "npm publish*"),
        ("""python3 -c 'import os; os.system("git push")'""", "git push*"),
        ("""python3 -c 'import subprocess; subprocess.run(["git", "push"])'""", "git push*"),
        ("""awk 'BEGIN { system("git push") }'""", "git push*"),
        ("sed '1e git push' x", "git push*"),
        ("perl -e 'exec qw(git push)'", "git push*"),
        ("echo 'import os; os.system(\"curl x\")' | python3", "curl*"),
        ("somewrapper --run 'git push'", "git push*"),
        ("find . -exec git push ;", "git push*"),
    ],
)
def test_a_deny_glob_matches_however_a_command_is_spelled(command: str, glob: str) -> None:
    found = gate(command, deny=[glob], mode="off")
    assert found.verdict is Verdict.BLOCK
    assert "denied" in found.reason


@pytest.mark.parametrize(
    "command",
    [
        "git commit -m 'git push is next'",
        "git status",
        "git -C sub log --grep push",
        "git stash push",
        "echo git push",
        "grep -rn 'git push' docs",
        "python3 -c 'print(1)'",
        "apt list curl wget",
        "ls $X",
    ],
)
def test_a_deny_glob_leaves_other_commands_alone(command: str) -> None:
    assert gate(command, deny=["git push*", "curl *"], mode="off") == Gate()


def test_a_deny_glob_is_also_looked_for_in_a_line_that_does_not_parse() -> None:
    assert gate("true; npm publish '", deny=["npm publish*"], mode="off").verdict is Verdict.BLOCK


def test_a_line_that_does_not_parse_says_so() -> None:
    found = gate("echo 'x")
    assert found.rules == ("unparsable-line",)
    assert "a quote has no end" in found.reason


def test_a_name_that_is_only_known_later_is_asked_about() -> None:
    assert gate("$CMD --version").rules == ("unresolved-command",)


@pytest.mark.parametrize(
    ("path", "writing", "verdict"),
    [
        ("a.txt", True, Verdict.ALLOW),
        ("/tmp/x", True, Verdict.ALLOW),
        ("/etc/hosts", False, Verdict.ALLOW),
        ("~/.bashrc", False, Verdict.ALLOW),
        (".env.example", True, Verdict.ALLOW),
        ("/etc/hosts", True, Verdict.ASK),
        ("../../../etc/hosts", True, Verdict.ASK),
        ("/usr/local/bin/x", True, Verdict.ASK),
        ("~/.bashrc", True, Verdict.ASK),
        ("~/.ssh/authorized_keys", True, Verdict.ASK),
        ("~/.ssh/id_rsa", True, Verdict.ASK),
        ("~/.ssh/id_rsa", False, Verdict.ASK),
        ("../.netrc", False, Verdict.ASK),
        ("~/.pgpass", False, Verdict.ASK),
        ("~/.aws/credentials", False, Verdict.ASK),
        (".env", False, Verdict.ASK),
        (".git/hooks/pre-commit", True, Verdict.ASK),
        ("/dev/sda", True, Verdict.BLOCK),
        ("/proc/1/environ", False, Verdict.BLOCK),
        ("/proc/self/environ", False, Verdict.BLOCK),
        ("/proc/thread-self/environ", False, Verdict.BLOCK),
        ("/proc/1/task/1/environ", False, Verdict.BLOCK),
        ("/proc/1/task/1/mem", False, Verdict.BLOCK),
        ("/proc/self/fd/7", False, Verdict.BLOCK),
        (f"/proc/self/root{HERMES_HOME}/api.key", False, Verdict.BLOCK),
        ("/proc/self/status", False, Verdict.ALLOW),
        (f"{HERMES_HOME}/api.key", False, Verdict.BLOCK),
        ("../.local/share/hermes/./api.key", False, Verdict.BLOCK),
        (f"{HERMES_HOME}/store/data.mdb", False, Verdict.BLOCK),
        (f"{HERMES_HOME}/logs/hermes.log", False, Verdict.BLOCK),
        (f"{HERMES_HOME}/telegram.token", False, Verdict.BLOCK),
        (f"{HERMES_HOME}/slack.token", False, Verdict.BLOCK),
        (f"{HERMES_HOME}/service.env", False, Verdict.BLOCK),
        (f"{HERMES_HOME}/admin.token", False, Verdict.BLOCK),
        (f"{HERMES_HOME}/config.yaml", False, Verdict.BLOCK),
        (f"{HERMES_HOME}/index/segment", False, Verdict.BLOCK),
        (f"{HERMES_HOME}/whatever-comes-next", False, Verdict.BLOCK),
        ("~/.config/hermes/service.env", False, Verdict.BLOCK),
        (f"{HERMES_HOME}/media", False, Verdict.BLOCK),
        (f"{HERMES_HOME}/media/{'0a' * 8}/{'0a' * 32}.png", False, Verdict.ALLOW),
        (f"{HERMES_HOME}/media/{'0a' * 8}/{'0a' * 32}.png", True, Verdict.BLOCK),
        (f"{HERMES_HOME}/work/s1/shell.json", False, Verdict.BLOCK),
        (f"{HERMES_HOME}/work/s1/outputs/call.txt", False, Verdict.ALLOW),
        (f"{HERMES_HOME}/work/s1/outputs/call.txt", True, Verdict.BLOCK),
        (f"{HERMES_HOME}/work/s1/files/notes.txt", True, Verdict.ASK),  # not the directory that it works in
        (f"{HERMES_HOME}/work/s1/files/../../../api.key", False, Verdict.BLOCK),
        (f"{HERMES_HOME}/config.yaml", True, Verdict.BLOCK),
        (f"{HERMES_HOME}/trusted_prompts.json", True, Verdict.BLOCK),
        ("AGENTS.md", True, Verdict.ASK),
        ("agents.md", True, Verdict.ASK),
        ("sub/.hermes.md", True, Verdict.ASK),
        ("CLAUDE.md", True, Verdict.ASK),
        (".cursorrules", True, Verdict.ASK),
        ("AGENTS.md", False, Verdict.ALLOW),
        ("MY-AGENTS.md", True, Verdict.ALLOW),
    ],
)
def test_a_path_is_judged_by_what_it_is(path: str, *, writing: bool, verdict: Verdict) -> None:
    found = path_gate(path, writing=writing, home=HOME, hermes_home=HERMES_HOME, cwd=CWD)
    assert found.verdict is verdict
    assert bool(found.rules) == (verdict is Verdict.ASK)


@pytest.mark.parametrize("path", ["/etc/hermes/service.env", "/srv/keys/model", "/etc/hermes"])
def test_files_that_settings_name_are_secret(path: str) -> None:
    secrets = ("/etc/hermes", "/srv/keys/model")
    found = path_gate(path, writing=False, home=HOME, hermes_home=HERMES_HOME, cwd=CWD, secrets=secrets)
    assert found.verdict is Verdict.BLOCK
    command = decide(
        f"cat {path}", cwd=CWD, home=HOME, hermes_home=HERMES_HOME, deny=(), mode="off", granted=(), secrets=secrets
    )
    assert command.verdict is Verdict.BLOCK


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("cat notes.txt", Verdict.ALLOW),
        ("cat ../outputs/call.txt", Verdict.ALLOW),
        ("cat ../shell.json", Verdict.BLOCK),
        ("cat ../../other/files/notes.txt", Verdict.BLOCK),
        ("cat ../../other/outputs/call.txt", Verdict.BLOCK),
        ("cat ../../*/outputs/*", Verdict.BLOCK),
        ("strings ../../../index/*", Verdict.BLOCK),
        ("cat ../../../telegram.token", Verdict.BLOCK),
        ("cp -r ../../../media .", Verdict.BLOCK),
    ],
)
def test_command_in_the_conversations_own_directory(command: str, verdict: Verdict) -> None:
    own = f"{HERMES_HOME}/work/s1/files"
    found = decide(command, cwd=own, work=own, home=HOME, hermes_home=HERMES_HOME, deny=(), mode="off", granted=())
    assert found.verdict is verdict


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("echo x > notes.txt; cat notes.txt; rm notes.txt", Verdict.ALLOW),
        ("cat ../outputs/call.txt", Verdict.ALLOW),
        ("cat ../../files/notes.txt", Verdict.BLOCK),  # of the others in the same conversation
        ("cat ../../outputs/call.txt", Verdict.BLOCK),
        ("cat ../../../other/guest/files/notes.txt", Verdict.BLOCK),
        ("cat ../shell.json", Verdict.BLOCK),
    ],
)
def test_command_in_a_guests_own_directory(command: str, verdict: Verdict) -> None:
    own = f"{HERMES_HOME}/work/s1/guest/files"
    found = decide(command, cwd=own, work=own, home=HOME, hermes_home=HERMES_HOME, deny=(), mode="off", granted=())
    assert found.verdict is verdict


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("curl http://localhost:9000/v1/models", Verdict.BLOCK),
        ("curl http://hermes.lan:9000/v1/models", Verdict.BLOCK),
        ("curl http://127.0.0.1:9000/health", Verdict.ALLOW),
        ("curl http://example.com:9000/", Verdict.ALLOW),
        ("python3 -c 'import x; x.get(\"http://127.0.0.1:9000/api\")'", Verdict.BLOCK),
        ("exec 3<>/dev/tcp/localhost/9000", Verdict.BLOCK),
        ("fuser -k 9000/tcp", Verdict.BLOCK),
        ("kill-port 9000", Verdict.BLOCK),
        ("kill $(lsof -t -i :9000)", Verdict.BLOCK),
        ("curl http://localhost:8642/v1/models", Verdict.ALLOW),
        ("kill-port 8642", Verdict.ALLOW),
    ],
)
def test_own_port_is_the_one_that_the_daemon_listens_on(command: str, verdict: Verdict) -> None:
    own = OwnAddress(ports=frozenset({9000}), hosts=("hermes.lan",))
    found = decide(command, cwd=CWD, home=HOME, hermes_home=HERMES_HOME, deny=(), mode="off", granted=(), own=own)
    assert found.verdict is verdict


def test_ten_kilobytes_are_decided_in_a_few_milliseconds() -> None:
    script = "\n".join(
        f"cp src/{n}.py out/{n}.py && grep -rn 'pattern {n}' src/{n} > log{n}.txt # {'x' * 90}" for n in range(65)
    )
    here_document = "cat > x.py <<'END'\n" + "print('hello')\n" * 650 + "END\npython x.py"
    for line in (script, here_document):
        assert 9_000 < len(line) < 11_000
        best = min(_cpu_s(line) for _ in range(10))
        assert gate(line) == Gate()
        assert best < 0.06  # several times what it takes, for a slow machine


def _cpu_s(line: str) -> float:
    before = time.process_time()
    gate(line)
    return time.process_time() - before


@pytest.mark.parametrize(
    "command", ["rm -rf *", "rm -rf .", "rm -rf ..", "rm -rf ./*", "cd ..; rm -rf *", "cd ../.. && rm -rf ."]
)
def test_an_unknown_directory_may_be_the_home(command: str) -> None:
    found = decide(command, cwd="", home=HOME, hermes_home=HERMES_HOME, deny=(), mode="off", granted=())
    assert found.verdict is Verdict.BLOCK


@pytest.mark.parametrize(
    "command", ["ls", "cat a.txt", "cd src && make", "rm a.txt", "cp -r src dst", "grep -rn foo src"]
)
def test_an_unknown_directory_is_no_danger_to_everyday_commands(command: str) -> None:
    found = decide(command, cwd="", home=HOME, hermes_home=HERMES_HOME, deny=(), mode="manual", granted=())
    assert found == Gate()
