"""Dangers of git: commands that discard work, rewrite history, or run a program named by an option."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from hermes.shell_policy.finding import Case, Finding
from hermes.shell_policy.rules.program_rules import git_words

_Test: TypeAlias = Callable[[tuple[str, ...]], bool]  # takes the words after the verb


def _any_matches(pattern: str) -> _Test:
    compiled = re.compile(pattern)
    return lambda rest: any(map(compiled.match, rest))


def _any_of(*words: str) -> _Test:
    return lambda rest: not set(words).isdisjoint(rest)


def _always(_rest: tuple[str, ...]) -> bool:
    return True


def _discards(rest: tuple[str, ...]) -> bool:
    return any(re.match(r"-[a-zA-Z]*f$|--force|--discard-changes", each) for each in rest)


def _checkout_discards(rest: tuple[str, ...]) -> bool:
    return _discards(rest) or "--" in rest or "." in rest


def _restore_discards(rest: tuple[str, ...]) -> bool:
    return _discards(rest) or "--staged" not in rest or "--worktree" in rest


def _resets_hard(rest: tuple[str, ...]) -> bool:
    return bool({"--merge", "--keep"} & set(rest)) or any(each.startswith("--h") for each in rest)


def _configures_program(rest: tuple[str, ...]) -> bool:
    named = r"(?:alias|core\.(?:hookspath|fsmonitor|pager|editor|sshcommand)|credential|filter|diff|pager|url)\.?"
    values = [each for each in rest if not each.startswith("-")]
    return len(values) > 1 and any(re.match(named, each, re.IGNORECASE) for each in rest)


# The verb, when it is dangerous, the rule, and the finding.
_VERBS: dict[str, tuple[_Test, str, str]] = {
    "reset": (_resets_hard, "git-reset-hard", "discards uncommitted work"),
    "push": (
        _any_matches(r"--force|--mirror|--delete|--prune|--forc|-[a-zA-Z]*[fd][a-zA-Z]*$|\+|:[\w/]"),
        "git-force-push",
        "rewrites or deletes commits that others have",
    ),
    "clean": (_any_matches(r"-[a-zA-Z]*[fxXdi]|--force"), "git-clean", "deletes untracked files"),
    "branch": (
        _any_matches(r"-[a-zA-Z]*D|--delete|-[a-zA-Z]*d|-[a-zA-Z]*f|--force|-M"),
        "git-branch-delete",
        "deletes or moves a branch",
    ),
    **dict.fromkeys(
        ("filter-branch", "filter-repo", "fast-import", "replace", "update-ref", "prune"),
        (_always, "git-rewrite", "rewrites history"),
    ),
    "gc": (lambda rest: any("prune" in each for each in rest), "git-rewrite", "rewrites history"),
    "checkout": (_checkout_discards, "git-discard", "discards uncommitted changes"),
    "restore": (_restore_discards, "git-discard", "discards uncommitted changes"),
    "switch": (_discards, "git-discard", "discards uncommitted changes"),
    "stash": (_any_of("drop", "clear"), "git-discard", "discards stashed work"),
    "reflog": (_any_of("expire", "delete"), "git-rewrite", "deletes the record needed to recover lost work"),
    "tag": (_any_of("-d", "--delete", "-f", "--force"), "git-branch-delete", "deletes or moves a tag"),
    **dict.fromkeys(
        ("worktree", "submodule", "remote"),
        (
            _any_of("remove", "deinit", "prune", "rm"),
            "git-branch-delete",
            "removes a worktree, submodule or remote",
        ),
    ),
    "rebase": (_any_matches(r"--exec|-x|-i|--interactive"), "git-rewrite", "rewrites history"),
    "rm": (_any_matches(r"-[a-zA-Z]*[rf]"), "recursive-delete", "deletes tracked files"),
    "config": (_configures_program, "git-config", "changes which programs git runs or trusts"),
}


def git_rules(case: Case) -> Iterator[Finding]:
    if case.name != "git":
        return
    words = git_words(case.arguments)
    verb, rest = (words[0], words[1:]) if words else ("", ())
    if any(re.match(r"(?:ext|fd)::|protocol\.\w+\.allow|protocol\.allow", each) for each in case.arguments):
        yield Finding(rule="code-injection", why="lets a repository address run a program")
    if any(re.match(r"-O.|--open\S*|--upload-p\S*|--receive-p\S*", each) for each in words) or (
        verb == "clone" and any(re.match(r"-u", each) for each in rest)
    ):
        yield Finding(rule="code-injection", why="runs a program named by an option")
    if verb not in _VERBS or (verb == "clean" and case.has("-n", "--dry-run")):
        return
    is_dangerous, rule, why = _VERBS[verb]
    if is_dangerous(rest):
        yield Finding(rule=rule, why=why)
