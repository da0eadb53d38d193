"""Choice of a model: check it by one call, then write it into the configuration."""

from __future__ import annotations

import asyncio
import http.client
import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hermes.cli.output import one_line
from hermes.config.providers import PROVIDERS
from hermes.domain.errors import ConfigError, HermesError, ModelError
from hermes.domain.turn.turn_failure import FailureKind
from hermes.domain.values import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.config.home import Home
    from hermes.config.schema import Value
    from hermes.config.secret import Secret

_KEY_VARIABLE = "SETUP_MODEL_KEY"  # holds a typed key during the check
_LIST_TIMEOUT_S = 5.0
_DETECT_TIMEOUT_S = 0.5
_MAX_LIST = 4 << 20  # bytes
_WRONG = (FailureKind.AUTH, FailureKind.BAD_REQUEST, FailureKind.UNSUPPORTED)
_SETTINGS = ("provider", "name", "base_url", "api_key_env", "api_key_file", "protocol", "api_version")


class ModelCheckError(HermesError):
    """The model did not answer. The text is one sentence with the next step."""

    exit_code = 75


class WrongModelError(ModelCheckError):
    """The endpoint refused the model or its key. A retry does not help."""

    exit_code = 78


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenModel:
    provider: str
    name: str
    base_url: str = ""  # empty: that of the provider
    key: Secret | None = None  # to be stored in a private file; None: from the environment, or none is needed
    key_env: str | None = None  # variable with the key, if it is not the provider's own; empty: no key is needed
    remark: str = ""  # about its answer to the check

    @property
    def address(self) -> str:
        return self.base_url or PROVIDERS[self.provider].base_url


def check_model(home: Home, choice: ChosenModel, environ: Mapping[str, str]) -> ChosenModel:
    """Ask the model for one word. Return the choice that answered: with `/v1` added if the address has no path.

    Raises ModelCheckError, ConfigError.
    """
    try:
        remark = _ask_model(home, choice, environ)
    except ModelCheckError:
        if not (address := with_version(choice.base_url)):
            raise
        longer = replace(choice, base_url=address)
        try:
            remark = _ask_model(home, longer, environ)
        except ModelCheckError:
            pass
        else:
            return replace(longer, remark=remark)
        raise
    return replace(choice, remark=remark)


def with_version(address: str) -> str:
    """Return the address with `/v1`, which people often leave out; empty if it has a path or is empty."""
    return f"{address.rstrip('/')}/v1" if address and urlsplit(address).path in ("", "/") else ""


def _ask_model(home: Home, choice: ChosenModel, environ: Mapping[str, str]) -> str:
    """Ask for one word, exactly as the daemon would. Return a remark about an answer without text."""
    from hermes.app.factories.models import make_models
    from hermes.cli.doctor.live_checks import MODEL_TIMEOUT_S, ask_once
    from hermes.config.loader import check_text
    from hermes.config.revision import read_text

    if choice.key is not None:
        environ = {**environ, _KEY_VARIABLE: choice.key.reveal()}
    wanted = {**_wanted(choice, ""), **({"model.api_key_env": _KEY_VARIABLE} if choice.key is not None else {})}
    config = check_text(_edited(read_text(home), wanted), home, environ)
    try:
        return asyncio.run(ask_once(make_models(config, environ).chain[0])).remark
    except ModelError as error:
        kind = WrongModelError if error.failure.kind in _WRONG else ModelCheckError
        raise kind(one_line(str(error))) from error
    except TimeoutError:
        raise ModelCheckError(
            f"{choice.name} did not answer within {MODEL_TIMEOUT_S:g} s; try again, or choose another model"
        ) from None


def write_choice(home: Home, choice: ChosenModel, environ: Mapping[str, str]) -> None:
    """Store the key in a private file, then the settings. Other settings and comments stay."""
    from hermes.config.revision import revise, write_private

    key_file = home.data_dir / "model.key"
    if choice.key is not None:
        write_private(key_file, f"{choice.key.reveal()}\n", secret=True)
    path = str(key_file) if key_file.parent != home.config_file.parent else key_file.name
    wanted = _wanted(choice, path if choice.key is not None else "")
    revise(home, environ, lambda text: _edited(text, wanted))


def _wanted(choice: ChosenModel, key_file: str) -> dict[str, Value]:
    wanted: dict[str, Value] = {"model.provider": choice.provider, "model.name": choice.name}
    if choice.base_url and choice.base_url != PROVIDERS[choice.provider].base_url:
        wanted["model.base_url"] = choice.base_url
    if choice.key_env is not None:
        wanted["model.api_key_env"] = choice.key_env
    if key_file:
        wanted["model.api_key_file"] = key_file
    return wanted


def _edited(text: str, wanted: Mapping[str, Value]) -> str:
    """Return the text with this model. Settings of the earlier model that do not belong to it go."""
    from hermes.config.editor import with_settings, without_setting

    for key in _SETTINGS:
        if f"model.{key}" not in wanted:
            text = without_setting(text, f"model.{key}")
    return with_settings(text, wanted)


# ---------------------------------------------------------------- lists of models


def models_at(
    address: str, key: str = "", *, header: str = "", timeout_s: float = _LIST_TIMEOUT_S
) -> list[str] | None:
    """Return the models that an endpoint offers; None if it does not answer with a list."""
    headers = {header or "Authorization": key if header else f"Bearer {key}"} if key else {}
    if header == "x-api-key":
        headers["anthropic-version"] = "2023-06-01"
    request = urllib.request.Request(f"{address.rstrip('/')}/models", headers=headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as response:  # noqa: S310 - the owner's address
            listed = json.loads(response.read(_MAX_LIST))["data"]
            return [str(each["id"]) for each in listed]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None


def models_here(address: str) -> list[str] | None:
    """Return the models of a server on this machine. Fast: most machines have none."""
    return models_at(address, timeout_s=_DETECT_TIMEOUT_S)


def require_known(provider: str) -> None:
    if provider not in PROVIDERS:
        from hermes.config.file import did_you_mean

        hint = did_you_mean(provider, PROVIDERS) or f"; choose one of {', '.join(PROVIDERS)}"
        raise ConfigError(f"there is no provider {one_line(provider)!r}{hint}")
