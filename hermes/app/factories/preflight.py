"""Check whether a daemon can start with the current configuration. Creates nothing and connects to nothing.

`hermes config check`, the start, a restart and a reload all use it, so that they agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hermes.app.factories.models import make_models
from hermes.app.factories.platform import Check, assembly_of
from hermes.app.factories.sandbox import check_opened_paths
from hermes.config.home import Home
from hermes.config.loader import explain_config
from hermes.config.secret import check_api_key
from hermes.config.settings import Config
from hermes.domain.errors import ConfigError
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """Valid configuration."""

    config: Config
    sources: Mapping[str, str]  # origin of each setting that is not at its default


def preflight(home: Home, environ: Mapping[str, str]) -> Cleared:
    """Check the configuration. Raises ConfigError with every problem. Blocks: it reads files and imports packages."""
    config, sources = explain_config(home, environ)
    problems: list[str] = []
    missing: list[str] = []
    for check in _checks(home, config):
        try:
            check.look(config, environ)
        except ConfigError as error:
            where = next((f"{sources[name]}: " for name in check.names if name in sources), "")
            problems += [f"{where}{problem}" for problem in error.problems]
            missing += error.missing_variables
    if problems:
        raise ConfigError(*problems, missing_variables=tuple(missing))
    return Cleared(config=config, sources=sources)


def _checks(home: Home, config: Config) -> Iterator[Check]:
    yield Check(names=("model.api_key_file", "model.api_key_env", "model.provider"), look=make_models)
    yield Check(names=("api.key_file",), look=lambda config, environ: check_api_key(home, config, environ))
    if config.sandbox.mode != "off":
        yield Check(names=("sandbox.read_paths", "sandbox.write_paths"), look=check_opened_paths)
    enabled = [name for name, settings in config.platforms().items() if settings.enabled]
    if config.transcription.base_url and enabled:  # else it is not used
        names = ("transcription.api_key_env", "transcription.base_url")
        yield Check(names=names, look=lambda config, environ: config.transcription.api_key(environ))
    if config.web.search:
        keys = ("provider", "base_url", "api_key_env", "api_key_file")
        yield Check(
            names=tuple(f"web.search_{key}" for key in keys),
            look=lambda config, environ: config.web.search_key(environ),
        )
    if config.image_gen.base_url:
        of_picture = ("image_gen.api_key_env", "image_gen.base_url")
        yield Check(names=of_picture, look=lambda config, environ: config.image_gen.api_key(environ))
    for name in enabled:
        yield from assembly_of(name).checks
