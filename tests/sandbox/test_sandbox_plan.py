"""Plan of a sandbox: visible, writable and hidden paths."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.domain.process.sandbox_launch import ToolUser
from hermes.sandbox.box import make_box
from hermes.sandbox.sandbox_options import options
from hermes.sandbox.sandbox_plan import (
    HOME,
    BadWorkdirError,
    HostMachine,
    SandboxIdentity,
    SandboxPlan,
    SandboxRules,
    SessionPaths,
    git_entries,
    make_plan,
    toolchain_variables,
)

PERSON = "/home/ann"
DATA, CONFIG = f"{PERSON}/.local/share/hermes", f"{PERSON}/.config/hermes"
FOLDER = f"{DATA}/work/s1"
MACHINE = HostMachine(
    directories=frozenset({DATA, CONFIG, "/opt", "/bin", "/lib", f"{PERSON}/.pyenv", f"{PERSON}/.local/bin"}),
    links={"/bin": "usr/bin", "/lib": "usr/lib"},
    home=PERSON,
    unreadable=("/etc/shadow",),
)
RULES = SandboxRules(secret_paths=(DATA, CONFIG, "/opt/keys/model.key"))


def a_place(work: str = f"{FOLDER}/files", *, git: bool = False) -> SessionPaths:
    return SessionPaths(
        work=work,
        tmp=f"{FOLDER}/tmp",
        home=f"{FOLDER}/home",
        readable=(f"{FOLDER}/outputs",),
        git=frozenset(git_entries()) if git else frozenset(),
    )


def a_plan(work: str = f"{FOLDER}/files", *, git: bool = False) -> SandboxPlan:
    return make_plan(MACHINE, RULES, a_place(work, git=git))


SEGMENT = st.sampled_from(
    ["work", "src", ".ssh", "hermes", ".local", "share", "ann", "home", "projects", "store", "s1"]
)
PATHS = st.lists(SEGMENT, min_size=1, max_size=6).map(lambda parts: "/" + "/".join(parts))


@given(work=PATHS, path=PATHS)
def test_hermes_and_the_home_are_never_visible(work: str, path: str) -> None:
    try:
        plan = a_plan(work)
    except BadWorkdirError:
        return
    inside = PurePosixPath(path)
    if inside.is_relative_to(work):
        return
    for secret in (PERSON, DATA, CONFIG):
        if inside.is_relative_to(secret):
            toolchain = any(inside.is_relative_to(f"{PERSON}/{name}") for name in (".pyenv", ".local/bin"))
            own = any(inside.is_relative_to(f"{FOLDER}/{name}") for name in ("outputs",))
            assert toolchain or own or not plan.sees(path)


@pytest.mark.parametrize("opened", [PERSON, f"{PERSON}/.local", DATA, "/home"])
def test_what_the_owner_opens_shows_no_secret_of_hermes(opened: str) -> None:
    for rules in (
        SandboxRules(read_paths=(opened,), secret_paths=(DATA,)),
        SandboxRules(write_paths=(opened,), secret_paths=(DATA,)),
    ):
        plan = make_plan(MACHINE, rules, a_place())
        assert not plan.sees(f"{DATA}/api.key")
        assert not plan.sees(f"{DATA}/work/s2/files/theirs.txt")
        assert plan.may_write(f"{FOLDER}/files/a.txt")
        chosen = options(plan)
        assert chosen.index("--tmpfs") < chosen.index(f"{FOLDER}/files")
        assert chosen.index(f"{FOLDER}/files") < chosen.index("--remount-ro")


@pytest.mark.parametrize(
    "work",
    ["/", "/home", PERSON, f"{PERSON}/.local", DATA, CONFIG, f"{DATA}/store", f"{DATA}/work/s2/files", "relative"],
)
def test_directory_that_would_show_too_much_is_refused(work: str) -> None:
    with pytest.raises(BadWorkdirError):
        a_plan(work)


def test_only_work_tmp_and_home_are_written() -> None:
    plan = a_plan(f"{PERSON}/project")
    assert plan.may_write(f"{PERSON}/project/a.py")
    assert plan.may_write("/tmp/x")
    assert plan.may_write(f"{HOME}/.cache/pip")
    for path in (
        "/usr/bin/x",
        "/etc/passwd",
        f"{PERSON}/.bashrc",
        f"{FOLDER}/outputs/a.txt",
        f"{PERSON}/.pyenv/x",
        "/",
    ):
        assert not plan.may_write(path), path


def test_a_secret_below_a_mount_is_masked() -> None:
    plan = a_plan()
    assert plan.sees("/opt/tool")
    assert not plan.sees("/opt/keys/model.key")
    assert "/opt/keys/model.key" in plan.masked_files


def test_own_directory_in_the_data_directory_stays_visible() -> None:
    plan = a_plan()
    assert plan.may_write(f"{FOLDER}/files/a.txt")
    assert plan.sees(f"{FOLDER}/outputs/long.txt")
    assert not plan.sees(f"{FOLDER}/shell.json")
    assert not plan.sees(f"{DATA}/work/s2/files/theirs.txt")


def test_git_is_pinned_and_what_git_runs_is_read_only() -> None:
    plan = a_plan(f"{PERSON}/project", git=True)
    targets = [mount.target for mount in plan.own]
    assert targets.index(f"{PERSON}/project") < targets.index(f"{PERSON}/project/.git")
    assert targets.index(f"{PERSON}/project/.git") < targets.index(f"{PERSON}/project/.git/hooks")
    assert plan.may_write(f"{PERSON}/project/.git/index")
    assert not plan.may_write(f"{PERSON}/project/.git/hooks/pre-commit")
    assert not plan.may_write(f"{PERSON}/project/.git/config")


def test_git_config_can_be_opened() -> None:
    rules = SandboxRules(git_config_writable=True)
    plan = make_plan(MACHINE, rules, a_place(f"{PERSON}/project", git=True))
    assert plan.may_write(f"{PERSON}/project/.git/config")
    assert not plan.may_write(f"{PERSON}/project/.git/hooks/x")


def test_paths_inside_lead_to_the_conversations_directories() -> None:
    plan = a_plan()
    assert plan.outside("/tmp/a/b") == f"{FOLDER}/tmp/a/b"
    assert plan.outside(f"{HOME}") == f"{FOLDER}/home"
    assert plan.outside("/root/.ssh") is None


def test_version_managers_get_their_directories() -> None:
    assert toolchain_variables(MACHINE) == {"PYENV_ROOT": f"{PERSON}/.pyenv"}


def test_root_without_capabilities_cannot_change_the_kernels_settings() -> None:
    plan = make_plan(MACHINE, RULES, a_place(), identity=SandboxIdentity.ROOT)
    chosen = options(plan)
    assert chosen[chosen.index("--cap-drop") + 1] == "ALL"
    at = chosen.index("/proc/sys")
    assert chosen[at - 1 : at + 2] == ["--ro-bind", "/proc/sys", "/proc/sys"]
    assert "/etc/shadow" in plan.masked_files


def test_a_terminal_keeps_its_session() -> None:
    assert "--new-session" in options(a_plan())
    assert "--new-session" not in options(a_plan(), terminal=True)


def test_another_user_reaches_sources_through_a_stage() -> None:
    plan = make_plan(MACHINE, RULES, a_place(), identity=SandboxIdentity.DROPPED)
    user = ToolUser(uid=65534, gid=65534)
    box = make_box(plan, bwrap="/usr/bin/bwrap", seccomp=b"", user=user, staged=(f"{DATA}/work",))
    assert box.prefix[0] == "unshare"
    assert f"{DATA}/work /mnt/0 none bind 0 0" in box.prefix
    sources = box.options
    assert "/mnt/0/s1/files" in sources
    assert f"{FOLDER}/files" in sources, "the target keeps its name"
    plain = make_box(plan, bwrap="/usr/bin/bwrap", seccomp=b"", user=user)
    assert plain.prefix[0] == "setpriv"


def test_paths_opened_below_tmp_are_visible_without_their_secrets() -> None:
    rules = SandboxRules(read_paths=("/tmp/shared",), secret_paths=("/tmp/shared/key", "/tmp/hermes"))
    plan = make_plan(MACHINE, rules, a_place())
    assert plan.outside("/tmp/shared/a") == "/tmp/shared/a"
    assert not plan.sees("/tmp/shared/key")
    assert plan.masked_files == ("/tmp/shared/key",)


def test_closed_directory_is_masked_where_the_secret_in_it_cannot_be() -> None:
    machine = replace(MACHINE, closed=frozenset({"/srv/closed", "/srv/closed/hermes"}))
    rules = SandboxRules(write_paths=("/srv",), secret_paths=("/srv/closed/hermes/data", "/srv/closed"))
    dropped = make_plan(machine, rules, a_place(), identity=SandboxIdentity.DROPPED)
    assert dropped.masked_directories == ("/srv/closed",)
    below = make_plan(
        machine, replace(rules, write_paths=("/srv/closed/hermes",)), a_place(), identity=SandboxIdentity.DROPPED
    )
    assert below.masked_files == ("/srv/closed/hermes/data",)
    same = make_plan(machine, rules, a_place())
    assert set(same.masked_files) == {"/srv/closed/hermes/data", "/srv/closed"}
