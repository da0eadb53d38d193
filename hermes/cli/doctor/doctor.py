"""`hermes doctor`: check the whole installation, and say how to repair what is wrong."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from hermes.cli.output import print_json, print_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from hermes.cli.doctor.finding import Check, CheckResult, Subject
    from hermes.cli.parser import Commands

_COLOURS = {"ok": "32", "warning": "33", "failed": "31", "skipped": "2"}


def add_commands(commands: Commands) -> None:
    doctor = commands.add(
        "doctor",
        _doctor,
        "Check versions, home, configuration, store, clock, disk, sandbox, model, chat platforms, daemon and "
        "service. Asks the model and the platforms. Exit code 1 if a check failed.",
        examples="  hermes doctor\n  hermes doctor --fix\n  hermes doctor --json | jq .ok",
        json=True,
    )
    doctor.add_argument(
        "--fix", action="store_true", help="repair permissions, missing directories and files of a daemon that ended"
    )


def _doctor(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.doctor.finding import Status

    findings = []
    for finding in run_checks(_subject(environ, fix=args.fix)):
        findings.append(finding)
        if not args.json:
            _print(finding)
    counts = {status.value: sum(each.status is status for each in findings) for status in Status}
    healthy = not counts[Status.FAILED]
    if args.json:
        print_json({"ok": healthy, "counts": counts, "checks": [asdict(each) for each in findings]})
    else:
        print(", ".join(f"{number} {name}" for name, number in counts.items()))
    return 0 if healthy else 1


def _subject(environ: Mapping[str, str], *, fix: bool) -> Subject:
    from hermes.cli.doctor.finding import Subject
    from hermes.cli.service_actions import private_variables
    from hermes.config.home import Home
    from hermes.config.loader import load_config
    from hermes.domain.errors import ConfigError

    home = Home.from_environ(environ)
    environ = {**private_variables(home), **environ}
    try:
        config = load_config(home, environ)
    except ConfigError:
        config = None
    return Subject(home=home, environ=environ, config=config, fix=fix)


def run_checks(subject: Subject) -> Iterator[CheckResult]:
    for check in _checks():
        yield from check(subject)


def _checks() -> tuple[Check, ...]:
    from hermes.cli.doctor import home_checks, live_checks, machine_checks

    return (
        machine_checks.check_versions,
        home_checks.check_permissions,
        home_checks.check_home,
        home_checks.check_leftovers,
        home_checks.check_config,
        home_checks.check_store,
        machine_checks.check_clock,
        machine_checks.check_disk,
        machine_checks.check_sandbox,
        live_checks.check_model,
        live_checks.check_platforms,
        live_checks.check_daemon,
        live_checks.check_service,
    )


def _print(finding: CheckResult) -> None:
    status = f"{finding.status:<8}"
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        status = f"\033[{_COLOURS[finding.status]}m{status}\033[0m"
    text = f"{finding.text}{' (repaired)' if finding.fixed else ''}"
    print_text(f"{status} {finding.id}: {text}", indent=" " * 9)
    if finding.remedy:
        print_text(f"         -> {finding.remedy}", indent="   ")
