"""Dangers of git: what throws work away, rewrites history, or runs the program that an option names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.shell_policy.finding import Case, Finding
from hermes.shell_policy.rules.program_rules import git_words


def git_rules(case: Case) -> Iterator[Finding]:  # noqa: C901, PLR0912 - one case a verb
    if case.name != "git":
        return
    words = git_words(case.arguments)
    verb, rest = (words[0], words[1:]) if words else ("", ())
    if any(re.match(r"(?:ext|fd)::|protocol\.\w+\.allow|protocol\.allow", each) for each in case.arguments):
        yield Finding(rule="code-injection", why="lets an address run a program")
    if any(re.match(r"-O.|--open\S*|--upload-p\S*|--receive-p\S*", each) for each in words) or (
        verb == "clone" and any(re.match(r"-u", each) for each in rest)
    ):
        yield Finding(rule="code-injection", why="runs the program that an option names")
    match verb:
        case "reset" if {"--hard", "--merge", "--keep"} & set(rest) or any(each.startswith("--h") for each in rest):
            yield Finding(rule="git-reset-hard", why="throws uncommitted work away")
        case "push" if any(
            re.match(r"--force|--mirror|--delete|--prune|--forc|-[a-zA-Z]*[fd][a-zA-Z]*$|\+|:[\w/]", each)
            for each in rest
        ):
            yield Finding(rule="git-force-push", why="rewrites or deletes what others have")
        case "clean" if any(re.match(r"-[a-zA-Z]*[fxXdi]|--force", each) for each in rest) and not case.has(
            "-n", "--dry-run"
        ):
            yield Finding(rule="git-clean", why="deletes untracked files")
        case "branch" if any(
            re.match(r"-[a-zA-Z]*D|--delete|-[a-zA-Z]*d|-[a-zA-Z]*f|--force|-M", each) for each in rest
        ):
            yield Finding(rule="git-branch-delete", why="deletes or moves a branch")
        case "filter-branch" | "filter-repo" | "fast-import" | "replace" | "update-ref" | "prune" | "gc" if (
            verb != "gc" or any("prune" in each for each in rest)
        ):
            yield Finding(rule="git-rewrite", why="rewrites history")
        case "checkout" | "restore" | "switch" if _git_discards(verb, rest):
            yield Finding(rule="git-discard", why="throws uncommitted changes away")
        case "stash" if {"drop", "clear"} & set(rest):
            yield Finding(rule="git-discard", why="throws stashed work away")
        case "reflog" if {"expire", "delete"} & set(rest):
            yield Finding(rule="git-rewrite", why="deletes what would bring lost work back")
        case "tag" if {"-d", "--delete", "-f", "--force"} & set(rest):
            yield Finding(rule="git-branch-delete", why="deletes or moves a tag")
        case "worktree" | "submodule" | "remote" if {"remove", "deinit", "prune", "rm"} & set(rest):
            yield Finding(rule="git-branch-delete", why="removes a worktree, submodule or remote")
        case "rebase" if any(re.match(r"--exec|-x|-i|--interactive", each) for each in rest):
            yield Finding(rule="git-rewrite", why="rewrites history")
        case "rm" if any(re.match(r"-[a-zA-Z]*[rf]", each) for each in rest):
            yield Finding(rule="recursive-delete", why="deletes tracked files")
        case "config" if (
            any(
                re.match(
                    r"(?:alias|core\.(?:hookspath|fsmonitor|pager|editor|sshcommand)|credential|filter|diff|pager|url)\.?",
                    each,
                    re.IGNORECASE,
                )
                for each in rest
            )
            and len([each for each in rest if not each.startswith("-")]) > 1
        ):
            yield Finding(rule="git-config", why="changes what git runs or trusts")


def _git_discards(verb: str, rest: tuple[str, ...]) -> bool:
    if any(re.match(r"-[a-zA-Z]*f$|--force|--discard-changes", each) for each in rest):
        return True
    if verb == "restore":
        return "--staged" not in rest or "--worktree" in rest
    return verb == "checkout" and ("--" in rest or "." in rest)
