"""Implementation of the commands of `hermes service`, one function per command."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.app.factories.preflight import preflight
from hermes.app.host.service_unit import MARK, NAME, Installation, make_unit
from hermes.cli.answered import show
from hermes.cli.output import one_line, print_table, print_text
from hermes.cli.systemd import ServiceError, Systemd
from hermes.config.home import Home, is_free
from hermes.config.loader import load_config
from hermes.domain.errors import AlreadyRunningError, ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping


_SYSTEM_HOME = "/var/lib/hermes"
_NOT_ACTIVE = 3  # exit code of systemctl for an inactive unit
_PRIVATE = "service.env"  # environment file of the service, beside the configuration


# ---------------------------------------------------------------- install


def install(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    systemd = Systemd(system=args.system, environ=environ)
    home = _home(environ, system=args.system)
    unit = _unit(home, environ, system=args.system, user=args.run_as)
    if args.print:
        print(unit, end="")
        for hint in _missing_settings(home, environ):
            print_text(f"hermes: {hint}", file=sys.stderr)
        return 0
    systemd.require()
    if args.system:
        _require_user(args.run_as)
    existed = _write(systemd.unit_file, unit)
    systemd.do("daemon-reload")
    systemd.do("enable", NAME)
    print_text(f"{'Updated' if existed else 'Installed'} {systemd.unit_file}; the service starts at boot.")
    for hint in _hints(systemd, home, environ, running=systemd.properties().get("ActiveState") == "active"):
        print_text(f"  {hint}", indent="  ")
    return 0


def _home(environ: Mapping[str, str], *, system: bool) -> Home:
    if system and not environ.get("HERMES_HOME"):
        return Home.from_environ({"HERMES_HOME": _SYSTEM_HOME})
    return Home.from_environ(environ)


def _unit(home: Home, environ: Mapping[str, str], *, system: bool, user: str) -> str:
    private = home.config_file.parent / _PRIVATE
    config = load_config(home, private_variables(home))  # the environment of the service, not of this shell
    given = environ.get("HERMES_HOME")
    installation = Installation(
        command=(sys.executable, "-P", "-m", "hermes.cli.main", "daemon"),
        environment_file=private,
        hermes_home=home.data_dir if given or system else None,
        user=user if system else "",
        state_directory=Path(_SYSTEM_HOME).name if system and str(home.data_dir) == _SYSTEM_HOME else "",
    )
    return make_unit(config, installation)


def private_variables(home: Home) -> dict[str, str]:
    """Return the variables of the service's environment file."""
    return _variables(home.config_file.parent / _PRIVATE)


def _variables(file: Path) -> dict[str, str]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # it is optional
        return {}
    pairs = (line.strip().partition("=") for line in lines if not line.lstrip().startswith(("#", ";")))
    return {name.strip(): value.strip().strip("'\"") for name, found, value in pairs if found}


def _require_user(user: str) -> None:
    import pwd

    try:
        pwd.getpwnam(user)
    except KeyError:
        raise ServiceError(
            f"there is no user {user!r} to run the service as: name another with --run-as, or create it with "
            f"`useradd --system --create-home --shell /bin/bash {user}`"
        ) from None


def _write(path: Path, unit: str) -> bool:
    """Write the unit. Return whether it existed. A unit that Hermes did not write is never replaced."""
    try:
        before = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        if before and not before.startswith(MARK):
            raise ServiceError(f"{path} was not written by Hermes; move it away first")
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.new")
        draft.write_text(unit, encoding="utf-8")
        draft.replace(path)
    except PermissionError as error:
        raise ServiceError(f"{path} cannot be written: a system service needs root (sudo)") from error
    except OSError as error:
        raise ServiceError(f"{path} cannot be written: {error.strerror}") from error
    return bool(before)


def _hints(systemd: Systemd, home: Home, environ: Mapping[str, str], *, running: bool) -> Iterator[str]:
    verb, system = "restart" if running else "start", " --system" if systemd.system else ""
    yield f"Next: hermes service {verb}{system}"
    yield from _missing_settings(home, environ)
    if not systemd.system and not systemd.lingers():
        yield "It stops when you log out. To keep it running and start it at boot: loginctl enable-linger"


def _missing_settings(home: Home, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield what the service lacks: keys, and variables of this shell. A unit is world-readable and holds no keys."""
    private = home.config_file.parent / _PRIVATE
    given = private_variables(home)
    if not private.exists():
        yield f"Put keys that it needs (OPENAI_API_KEY=...) into {private}, with chmod 600."
    elif private.stat().st_mode & 0o077:
        yield f"{private} may hold keys and is readable by other users; run `chmod 600 {private}`"
    mine = (name for name in environ if name.startswith("HERMES_") and name != "HERMES_HOME")
    if lost := sorted(name for name in mine if environ[name] != given.get(name)):
        yield f"It does not see {', '.join(lost)} of this shell: set them in {private} or in the configuration."
    try:
        preflight(home, given)
    except ConfigError as error:
        for problem in error.problems:
            yield f"With the variables in {private} it does not start: {problem}"


# ---------------------------------------------------------------- installed service


def uninstall(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    systemd = _installed(args, environ)
    systemd.do("disable", "--now", NAME)
    try:
        systemd.unit_file.unlink()
    except OSError as error:
        raise ServiceError(f"{systemd.unit_file} cannot be removed: {error.strerror}") from error
    systemd.do("daemon-reload")
    data = _home(environ, system=args.system).data_dir
    print_text(f"The service is removed; everything in {data} is kept.")
    return 0


def start(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    systemd = _installed(args, environ)
    home = _home(environ, system=args.system)
    if systemd.properties().get("ActiveState") != "active" and not is_free(home):
        raise AlreadyRunningError(f"another daemon than the service runs on {home.data_dir}: run `hermes stop` first")
    return _act(systemd, "start", "The service is running and ready.")


def stop(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    return _act(_installed(args, environ), "stop", "The service has stopped.")


def restart(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    return _act(_installed(args, environ), "restart", "The service has restarted and is ready.")


def _installed(args: argparse.Namespace, environ: Mapping[str, str]) -> Systemd:
    systemd = Systemd(system=args.system, environ=environ)
    systemd.require()
    if not systemd.unit_file.exists():
        raise ServiceError(f"there is no {systemd.unit_file}: run `hermes service install` first")
    return systemd


def _act(systemd: Systemd, verb: str, done: str) -> int:
    try:
        systemd.do(verb, NAME)
    except ServiceError as error:
        raise ServiceError(f"{error} (see `{systemd.journal}`)") from None
    print_text(done)
    return 0


# ---------------------------------------------------------------- status


def status(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    systemd = Systemd(system=args.system, environ=environ)
    systemd.require()
    found = systemd.properties()
    report = {
        "unit": str(systemd.unit_file),
        "level": systemd.level,
        "installed": systemd.unit_file.exists(),
        "up_to_date": is_up_to_date(systemd, environ),
        "enabled": found.get("UnitFileState") == "enabled",
        "active": found.get("ActiveState", "unknown"),
        "state": found.get("SubState", "unknown"),
        "pid": int(found.get("MainPID") or 0) or None,
        "since": found.get("ActiveEnterTimestamp") or None,
        "restarts": int(found.get("NRestarts") or 0),
        "result": found.get("Result") or None,
        "exit_code": int(found.get("ExecMainStatus") or 0),
        "says": found.get("StatusText") or None,
    }
    show(args, report, lambda: _print_status(report, systemd))
    return 0 if report["active"] == "active" else _NOT_ACTIVE


def is_up_to_date(systemd: Systemd, environ: Mapping[str, str]) -> bool:
    """Return whether the unit is what an install would write now. Settings may have changed since."""
    try:
        present = systemd.unit_file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    user = next((line.partition("=")[2] for line in present.splitlines() if line.startswith("User=")), "")
    home = _home(environ, system=systemd.system)
    with suppress(ConfigError):  # the settings are not valid
        return present == _unit(home, environ, system=systemd.system, user=user)
    return False


def _print_status(report: Mapping[str, object], systemd: Systemd) -> None:
    if not report["installed"]:
        print_text("The service is not installed; run `hermes service install`.")
        return
    row = [NAME, systemd.level, report["state"], "yes" if report["enabled"] else "no", report["pid"] or "-",
           report["restarts"], report["since"] or "-"]  # fmt: skip
    columns = ["SERVICE", "LEVEL", "STATE", "AT BOOT", "PID", "RESTARTS", "SINCE"]
    print_table(columns, [[str(each) for each in row]], drop=("RESTARTS", "PID", "LEVEL"))
    if report["says"]:
        print_text(f"Status text: {one_line(str(report['says']))}")
    if report["active"] == "failed":
        print_text(f"It failed with {report['result']}, exit code {report['exit_code']}; see `{systemd.journal}`.")
    if not report["up_to_date"]:
        print_text("The unit does not match the current settings; `hermes service install` updates it.")
    if os.geteuid() and not systemd.system and not systemd.lingers():
        print_text("It stops when you log out; `loginctl enable-linger` keeps it running.")
