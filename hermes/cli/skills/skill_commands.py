"""`hermes skills`: list, install, update and remove skills, their history, and what they achieve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.cli.output import one_line, print_json, print_text
from hermes.cli.parser import Commands, add_file, whole
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from hermes.cli.parser import ArgumentParser, Run

_SOURCE = "folder, archive (tar, zip), git repository or URL"


def add_commands(commands: Commands) -> None:
    group = commands.add(
        "skills",
        _asking("list"),
        "Manage skills: instructions for certain tasks that the agent loads when needed.",
        examples="  hermes skills list\n  hermes skills install ./letters\n"
        "  hermes skills install https://github.com/anthropics/skills --path skills/pdf\n  hermes skills log letters",
        json=True,
    )
    actions = Commands(group, required=False)
    actions.add("list", _asking("list"), "List all skills, archived ones, and changes that wait for you.", json=True)
    _named(actions, "show", "Show a skill: its instructions, files and state.")
    _add_install(actions)
    _named(actions, "remove", "Remove a skill. Its versions stay, and `revert` brings it back.")
    _add_publish(actions)
    audit = actions.add("audit", _asking("audit"), "Scan skills again, and compare installed ones.", json=True)
    audit.add_argument("name", nargs="?", default="", metavar="NAME", help="one skill (default: all)")
    stats = actions.add("stats", _asking("stats"), "Show what each version of a skill achieved.", json=True)
    stats.add_argument("name", nargs="?", default="", metavar="NAME", help="one skill (default: all)")
    actions.add("report", _asking("report"), "Show stale skills and skills that overlap.", json=True)
    actions.add(
        "consolidate",
        _asking("consolidate"),
        "Let a model merge skills of the agent that overlap. Every version stays. Needs a running daemon.",
        json=True,
    )
    _named(actions, "log", "Show the history of a skill.")
    for verb, about, default in (
        ("diff", "Show what a change did to a skill.", 0),
        ("revert", "Make an earlier version the current one.", 0),
        ("approve", "Approve a change that the agent proposes.", None),
        ("reject", "Reject a change that the agent proposes.", None),
    ):
        parser = _named(actions, verb, about)
        number: dict[str, Any] = {"nargs": "?", "default": 0} if default == 0 else {}
        help_text = "number of the change, from `hermes skills log`" + (" (default: the last one)" if number else "")
        parser.add_argument("number", type=whole, metavar="N", help=help_text, **number)
    _named(actions, "enable", "Enable a skill again.")
    _named(actions, "disable", "Disable a skill: the agent does not see it.")
    _named(actions, "pin", "Keep a skill from being archived.")
    _named(actions, "unpin", "Let a skill be archived when it is not used.")


def _named(actions: Commands, verb: str, about: str) -> ArgumentParser:
    parser = actions.add(verb, _asking(verb), about, json=True)
    parser.add_argument("name", metavar="NAME", help="name of the skill")
    return parser


def _add_install(actions: Commands) -> None:
    install = actions.add(
        "install", _install, "Install a skill, after a scan. Findings are shown, and may need a yes.", json=True
    )
    add_file(install, "source", metavar="SOURCE", help=_SOURCE)
    install.add_argument("--category", default="", metavar="NAME", help="category to install it in")
    install.add_argument("--path", default="", metavar="PATH", help="place of the skill inside the source")
    update = actions.add("update", _update, "Fetch an installed skill from its source again.", json=True)
    update.add_argument("name", metavar="NAME", help="name of the skill")
    for parser in (install, update):
        parser.add_argument("--yes", "-y", action="store_true", help="accept findings that need caution")
        parser.add_argument("--force", action="store_true", help="install it in spite of dangerous findings")


def _add_publish(actions: Commands) -> None:
    publish = actions.add("publish", _publish, "Write a clean archive of a skill, to be shared.", json=True)
    publish.add_argument("name", metavar="NAME", help="name of the skill")
    add_file(
        publish, "--output", metavar="FILE", help="archive to write, .tar.gz or .zip (default: NAME.tar.gz here)"
    )


def _asking(verb: str) -> Run:
    def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
        from hermes.cli.skills.skill_access import access
        from hermes.cli.skills.skill_text import text_of

        given = {name: getattr(args, name) for name in ("name", "number") if getattr(args, name, None)}
        answer = access(environ)(verb, **given)
        if args.json:
            print_json(answer)
        else:
            for line in text_of(verb, answer):
                print_text(line)
        return 0

    return run


# ------------------------------------------------------------ installation


def _install(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.skills.skill_access import access
    from hermes.cli.skills.skill_source import source_of

    source = source_of(args.source, args.path)
    return _fetched(args, environ, access(environ), source.fields(), category=args.category, update=False)


def _update(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.skills.skill_access import access

    ask = access(environ)
    row = ask("show", name=args.name)
    if not row["origin"]:
        raise HermesError(f"{one_line(args.name)} was not installed: it has no source")
    return _fetched(args, environ, ask, row["origin"], category=row["category"], update=True)


def _fetched(
    args: argparse.Namespace,
    environ: Mapping[str, str],
    ask: Callable[..., dict[str, Any]],
    source: Mapping[str, str],
    *,
    category: str,
    update: bool,
) -> int:
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from hermes.cli.skills.skill_source import SkillSource, fetch
    from hermes.config.home import Home
    from hermes.config.loader import load_config

    private = load_config(Home.from_environ(environ), environ).web.allow_private_urls
    with TemporaryDirectory(prefix="hermes-skill-") as work:
        _, folder = fetch(SkillSource(**source), Path(work), private=private)
        wish: dict[str, Any] = {
            "folder": str(folder),
            "source": dict(source),
            "category": category,
            "update": update,
            "agreed": args.yes,
            "forced": args.force,
        }
        answer = ask("install", **wish)
        if answer["permission"] == "ask" and not args.json and _agrees(answer):
            answer = ask("install", **{**wish, "agreed": True})
    return _told(args, answer, update=update)


def _agrees(answer: Mapping[str, Any]) -> bool:
    import sys

    from hermes.cli.answered import confirms
    from hermes.cli.skills.skill_text import findings

    if not sys.stdin.isatty():
        return False
    for line in findings(answer):
        print_text(line)
    return confirms(f"Install {answer['name']} all the same?")


def _told(args: argparse.Namespace, answer: Mapping[str, Any], *, update: bool) -> int:
    from hermes.cli.skills.skill_text import findings

    if args.json and answer["installed"]:
        print_json(answer)
    elif answer["installed"]:
        print_text(
            f"{'Updated' if update else 'Installed'} {answer['place']}: {answer['verdict']}, {answer['tier']}."
        )
    else:
        found = "; ".join(findings(answer))
        way = "--yes accepts them" if answer["permission"] == "ask" else "--force installs it all the same"
        raise HermesError(f"{answer['name']} was not installed, because of what the scan found; {way}: {found}")
    return 0


def _publish(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from pathlib import Path

    from hermes.cli.skills.skill_access import access
    from hermes.domain.skill.skill_scan import ScanVerdict, scan
    from hermes.skills.archive import write_archive
    from hermes.skills.skill_tree import read_tree

    found = access(environ)("files", name=args.name)
    name = Path(found["folder"]).name
    tree = read_tree(Path(found["folder"]), strict=True)
    report = scan({path: file.data for path, file in tree.items()})
    secrets = [each for each in report.findings if each.rule.value == "secret"]
    if any(each.verdict is ScanVerdict.DANGEROUS for each in secrets):
        raise HermesError(f"{name} was not published: {secrets[0].path} {secrets[0].reason}")
    target = Path(args.output or f"{name}.tar.gz").absolute()
    try:
        write_archive(target, name, tree)
    except FileExistsError:
        raise HermesError(f"{target} exists already; name another file with --output") from None
    answer = {"name": name, "archive": str(target), "verdict": report.verdict.value}
    if args.json:
        print_json(answer)
    else:
        print_text(f"Wrote {target} ({report.verdict.value}).")
        print_text("To share it, put it on a web server, or put its folder into a git repository.")
        print_text("Others install it with `hermes skills install`.")
    return 0
