"""Loader of the configuration: the only place that reads its file and environment variables.

The environment overrides the file, the file overrides the defaults. All problems are reported together, each with its
place. The result is frozen and complete. It holds no secrets, only the places to read them from.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hermes.config.file import (
    NO_KEY_HERE,
    FoundValue,
    did_you_mean,
    expected,
    parse_number,
    read_config_file,
    read_config_text,
)
from hermes.config.mcp.mcp_servers import SECTION as MCP_SERVERS
from hermes.config.mcp.mcp_servers import read_all
from hermes.config.model_settings import ModelConfig
from hermes.config.providers import PROVIDER_NAMES, plugin_of_provider
from hermes.config.schema import RETIRED, Value
from hermes.config.secret import Secret, ensure_api_key
from hermes.config.settings import (
    SECTIONS,
    SETTINGS,
    ApiConfig,
    Config,
    LogConfig,
    SessionsConfig,
    Setting,
    ShutdownConfig,
    StorageConfig,
    TurnsConfig,
)
from hermes.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.config.home import Home

__all__ = [
    "ApiConfig",
    "Config",
    "LogConfig",
    "ModelConfig",
    "Secret",
    "SessionsConfig",
    "ShutdownConfig",
    "StorageConfig",
    "TurnsConfig",
    "check_text",
    "ensure_api_key",
    "explain_config",
    "load_config",
    "parse_text",
    "problems_of",
    "retired_warnings",
]

_PREFIX = "HERMES_"
_NOT_SETTINGS = frozenset({"HERMES_HOME", "HERMES_API_KEY"})
_TEST_PREFIX = "HERMES_TEST_"
_BY_VARIABLE = {setting.variable: setting for setting in SETTINGS.values()}
_RETIRED_VARIABLES = {f"{_PREFIX}{name.replace('.', '_')}".upper(): name for name in RETIRED}


def load_config(home: Home, environ: Mapping[str, str]) -> Config:
    """Return the configuration. Raises ConfigError with all problems."""
    return explain_config(home, environ)[0]


def explain_config(home: Home, environ: Mapping[str, str]) -> tuple[Config, Mapping[str, str]]:
    """Return the configuration, and the source of each setting that is not a default, retired ones included."""
    return _explain(*read_config_file(home.config_file), home, environ)


def check_text(text: str, home: Home, environ: Mapping[str, str]) -> Config:
    """Return the configuration that this text of the file would give. Raises ConfigError with all problems."""
    return _explain(*read_config_text(text.encode(), home.config_file), home, environ)[0]


def problems_of(text: str, home: Home, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return all problems of this text, and contradictions between its valid settings."""
    found, problems = read_config_text(text.encode(), home.config_file)
    from_environ, environ_problems = _read_environ(environ)
    found = found | from_environ
    config = _build(found, home)
    return (*problems, *environ_problems, *_unknown_variables(environ, config), *_contradictions(config, found))


def _explain(
    found: dict[str, FoundValue], problems: list[str], home: Home, environ: Mapping[str, str]
) -> tuple[Config, Mapping[str, str]]:
    from_environ, environ_problems = _read_environ(environ)
    found = found | from_environ
    config = _build(found, home)
    problems = problems + environ_problems + _unknown_variables(environ, config)
    # Cross-checks need valid settings.
    if problems := problems or _contradictions(config, found):
        raise ConfigError(*problems)
    return config, {name: each.where for name, each in found.items()}


def retired_warnings(sources: Mapping[str, str]) -> list[str]:
    """One line for each retired setting that is still set."""
    return [
        f"{sources[name]}: {name} is no longer a setting and is ignored; remove it"
        for name in sorted(RETIRED & sources.keys())
    ]


def _build(found: Mapping[str, FoundValue], home: Home) -> Config:
    sections: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for name, each in found.items():
        if name in RETIRED or name == MCP_SERVERS:
            continue
        setting = SETTINGS[name]
        value = _absolute(str(each.value), home) if setting.rule.path else each.value
        sections[setting.section][setting.key] = value
    servers = found.get(MCP_SERVERS)
    return Config(
        **{section: SECTIONS[section](**values) for section, values in sections.items()},
        mcp_servers=read_all(servers.value) if servers is not None and isinstance(servers.value, tuple) else (),
    )


def _absolute(path: str, home: Home) -> str:
    return str(home.config_file.parent / os.path.expanduser(path)) if path else ""  # noqa: PTH111 - never raises


def _read_environ(environ: Mapping[str, str]) -> tuple[dict[str, FoundValue], list[str]]:
    found: dict[str, FoundValue] = {}
    problems: list[str] = []
    for variable, setting in _BY_VARIABLE.items():
        if variable not in environ or variable in _NOT_SETTINGS:
            continue
        try:
            value = setting.check(parse_text(setting, environ[variable]))
        except ValueError as error:
            problems.append(f"environment variable {variable}: {error}")
        else:
            found[setting.name] = FoundValue(value=value, where=f"environment variable {variable}")
    for variable, name in _RETIRED_VARIABLES.items():
        if variable in environ:
            found[name] = FoundValue(value="", where=f"environment variable {variable}")
    return found, problems


def parse_text(setting: Setting, text: str) -> Value:
    """Return the value that a variable or an argument of the command line means. Lists have commas or are YAML."""
    kind = type(setting.default)
    if kind is str:
        return text
    if kind is tuple and text.lstrip().startswith("["):
        return _yaml_list(text)
    if kind is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if kind is bool:
        if text.lower() not in {"true", "1", "false", "0"}:
            raise ValueError(f"expected {expected(setting)}, found {text[:40]!r}")
        return text.lower() in {"true", "1"}
    return parse_number(setting, text)


def _yaml_list(text: str) -> tuple[str, ...]:
    import yaml  # noqa: PLC0415 - slow

    try:
        found = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - makes texts only
    except yaml.YAMLError:
        found = None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise ValueError(f"expected a list like [a, b], found {text[:40]!r}")
    return tuple(found)


def _unknown_variables(environ: Mapping[str, str], config: Config) -> list[str]:
    """Return problems of mistyped variables: names that start with (nearly) one of our sections.

    Other variables may start with HERMES_ as well: for a service called hermes, Kubernetes sets
    HERMES_SERVICE_HOST and HERMES_PORT_8642_TCP in every pod.
    """
    mine = {*_BY_VARIABLE, *_RETIRED_VARIABLES, *_NOT_SETTINGS, *config.model.key_variables}
    problems = []
    for variable in sorted(environ):
        section, _, key = variable.removeprefix(_PREFIX).partition("_")
        if not variable.startswith(_PREFIX) or variable.startswith(_TEST_PREFIX) or variable in mine or not key:
            continue
        if variable == "HERMES_MODEL_API_KEY":
            problems.append(f"environment variable {variable}: {NO_KEY_HERE}")
        elif did_you_mean(section.lower(), SECTIONS):
            problems.append(f"unknown environment variable {variable}{did_you_mean(variable, _BY_VARIABLE)}")
    return problems


def _contradictions(config: Config, found: Mapping[str, FoundValue]) -> list[str]:
    problems = []
    if config.shutdown.drain_s > config.shutdown.timeout_s:
        where = _where(found, "shutdown.drain_s", "shutdown.timeout_s")
        problems.append(
            f"{where}: shutdown.drain_s ({config.shutdown.drain_s:g}) must not be greater than "
            f"shutdown.timeout_s ({config.shutdown.timeout_s:g})"
        )
    model = config.model
    problems += _disabled_provider(config, found)
    if model.entry is not None and not model.name:
        where = _where(found, "model.name", "model.provider")
        problems.append(f"{where}: model.name must be set when model.provider is {model.provider}")
    if model.entry is not None and not (model.base_url or model.entry.base_url):
        where = _where(found, "model.base_url", "model.provider")
        problems.append(f"{where}: model.base_url must be set when model.provider is {model.provider}")
    return problems


def _disabled_provider(config: Config, found: Mapping[str, FoundValue]) -> list[str]:
    """Return a problem if the provider belongs to a plugin that is not enabled."""
    name = config.model.provider
    if name in PROVIDER_NAMES:
        return []
    plugins = plugin_of_provider(name) or ()
    if set(plugins) & set(config.plugins.enabled):
        return []
    where, add = _where(found, "model.provider"), " or ".join(plugins) or "the plugin"
    return [f"{where}: model.provider: {name} is the provider of a plugin; add {add} to plugins.enabled"]


def _where(found: Mapping[str, FoundValue], *names: str) -> str:
    return next(found[name].where for name in names if name in found)
