"""`hermes setup` without a platform: model, tools, chat platforms and service, step by step or unattended.

Every answer is checked before it is written. What is set up already stays, unless the person says otherwise.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import confirms, typed
from hermes.cli.output import one_line, print_json, print_text
from hermes.domain.errors import ConfigError, HermesError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from hermes.cli.setup.detection import DetectedModel
    from hermes.cli.setup.model_choice import ChosenModel
    from hermes.config.home import Home
    from hermes.config.settings import Config

_TRIES = 3
_LISTED = 30  # models
_OFFLINE = "offline"


def run_wizard(args: argparse.Namespace, environ: Mapping[str, str], set_up_platform: Callable[[str], int]) -> int:
    from hermes.cli.commands.reload import reload_running
    from hermes.config.home import Home, prepare
    from hermes.config.loader import load_config

    home = Home.from_environ(environ)
    config = load_config(home, environ)
    prepare(home)
    if args.non_interactive or not sys.stdin.isatty():
        return _run_unattended(args, environ, home, config)
    print_text("Hermes setup. Press Enter for the answer in brackets, Ctrl-C to stop; finished steps stay.\n")
    _ask_for_model(home, config, environ)
    _ask_for_tools(home, environ)
    _ask_for_platforms(config, set_up_platform)
    _ask_for_service(environ)
    _, told = reload_running(home)
    if told:
        print_text(f"\n{told}")
    print_text("\nReady. `hermes chat` starts a conversation, `hermes doctor` checks everything.")
    return 0


# ---------------------------------------------------------------- unattended


def _run_unattended(args: argparse.Namespace, environ: Mapping[str, str], home: Home, config: Config) -> int:
    from hermes.cli.commands.reload import reload_running
    from hermes.cli.setup.model_choice import check_model, write_choice

    asked = bool(args.provider or args.model or args.base_url)
    configured = config.model.provider != _OFFLINE
    kept = configured and not args.force
    if kept and asked:
        raise ConfigError(
            f"the model is set up already ({config.model.provider}, {config.model.name}); nothing was changed; "
            "--force replaces it"
        )
    choice = None if kept else _chosen_by_options(args, environ)
    if choice is not None:
        choice = check_model(home, choice, environ)
        write_choice(home, choice, environ)
    provider, name = (choice.provider, choice.name) if choice else (config.model.provider, config.model.name)
    facts: dict[str, Any] = {"config": str(home.config_file), "provider": provider, "model": name, "kept": kept}
    facts["daemon_reloaded"], told = (None, "") if kept else reload_running(home)
    if args.json:
        print_json(facts)
    else:
        state = "The model stays" if kept else "The model answered and is set up"
        print_text(f"{state}: {provider}, {name}. Next: `hermes chat`.")
        if choice is not None and choice.remark:
            print_text(choice.remark)
        if told:
            print_text(told)
    return 0


def _chosen_by_options(args: argparse.Namespace, environ: Mapping[str, str]) -> ChosenModel:
    """Return the model of the options, completed by what is found here. Raises ConfigError with the next step."""
    from hermes.cli.setup.model_choice import ChosenModel, require_known

    if args.provider:
        require_known(args.provider)
    _check_options(args)
    provider = args.provider or ("custom" if args.base_url else "")
    found = [each for each in _detected(environ) if provider in ("", each.provider)]
    if not provider and not found:
        raise ConfigError(
            "no model was found: set a provider's key such as OPENAI_API_KEY, start Ollama, or name one with "
            "--provider and --model"
        )
    detected = found[0] if found else None
    name = args.model or (detected.name if detected else "")
    if not name:
        offered = _offered(provider, args.base_url, "", environ)[:_LISTED] if provider else ()
        listed = f"; it offers {one_line(', '.join(offered))}" if offered else ""
        raise ConfigError(f"name a model of {provider or 'the provider'} with --model{listed}")
    return ChosenModel(
        provider=provider or (detected.provider if detected else ""),
        name=name,
        base_url=args.base_url or (detected.base_url if detected else ""),
        key=_given_key(args) or (detected.key if detected else None),
        key_env=args.api_key_env,
    )


def _check_options(args: argparse.Namespace) -> None:
    """Check the options by the rules of their settings. Raises ConfigError that names the option."""
    from hermes.config.providers import PROVIDERS
    from hermes.config.settings import SETTINGS

    options = (("base_url", args.base_url), ("name", args.model), ("api_key_env", args.api_key_env or ""))
    for key, value in options:
        complaint = SETTINGS[f"model.{key}"].rule.complaint
        if complaint is not None and (problem := complaint(value)):
            option = "model" if key == "name" else key.replace("_", "-")
            raise ConfigError(f"--{option}: {problem}")
    if args.provider and not (PROVIDERS[args.provider].base_url or args.base_url):
        raise ConfigError(f"{args.provider} needs --base-url URL")


def _given_key(args: argparse.Namespace) -> Any:
    from hermes.config.secret import read_secret_file

    return read_secret_file(Path(args.api_key_file), "--api-key-file") if args.api_key_file else None


def _detected(environ: Mapping[str, str]) -> list[DetectedModel]:
    from hermes.cli.setup.detection import detect
    from hermes.cli.setup.model_choice import models_here

    return detect(environ, Path(environ.get("HOME") or "/nonexistent"), models_here)


# ---------------------------------------------------------------- model


def _ask_for_model(home: Home, config: Config, environ: Mapping[str, str]) -> None:
    from hermes.cli.setup.model_choice import check_model, write_choice

    if config.model.provider != _OFFLINE and not confirms(
        f"1. Model: {config.model.provider}, {config.model.name} is set up. Replace it?"
    ):
        return
    found = _detected(environ)
    print_text("1. Model" if found else "1. Model. Found no key and no local server.")
    for number, each in enumerate(found, 1):
        print_text(f"   {number}  {each.provider} {each.name} ({each.found})")
    for _ in range(_TRIES):
        try:
            if (choice := _typed_choice(found, environ)) is None:
                break
            print_text(f"Asking {one_line(choice.name)} ...")
            choice = check_model(home, choice, environ)
            write_choice(home, choice, environ)
        except HermesError as error:
            print_text(f"{error}. Nothing was changed; choose again.")
            continue
        print_text(
            f"{choice.remark or 'It answered.'} {choice.provider}, {choice.name} is set up in {home.config_file}."
        )
        return
    print_text("The model is not set up; `hermes setup` tries again at any time.")


def _typed_choice(found: list[DetectedModel], environ: Mapping[str, str]) -> ChosenModel | None:
    from hermes.cli.setup.model_choice import ChosenModel, require_known
    from hermes.config.providers import PROVIDERS

    default = "1" if found else "skip"
    what = "Number, provider" if found else "Provider"
    typed = _typed(f"   {what} ({', '.join(list(PROVIDERS)[:4])}, ...) or skip [{default}]: ") or default
    if typed == "skip":
        return None
    if typed.isdecimal() and 0 < int(typed) <= len(found):
        each = found[int(typed) - 1]
        name = _typed_model(each.offered, each.name)
        return ChosenModel(provider=each.provider, name=name, base_url=each.base_url, key=each.key)
    require_known(typed)
    provider = PROVIDERS[typed]
    base_url = "" if provider.base_url else _typed("   Address, such as http://127.0.0.1:8000/v1: ")
    key = _typed_key(provider.key_variable, environ)
    return ChosenModel(
        provider=typed,
        name=_typed_model(_offered(typed, base_url, key.reveal() if key else "", environ), ""),
        base_url=base_url,
        key=key,
    )


def _offered(provider: str, base_url: str, key: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    from hermes.cli.setup.model_choice import models_at, with_version
    from hermes.config.providers import PROVIDERS

    entry = PROVIDERS[provider]
    key = key or environ.get(entry.key_variable, "")
    listed = models_at(base_url or entry.base_url, key, header=entry.key_header)
    if listed is None and (longer := with_version(base_url)):
        listed = models_at(longer, key, header=entry.key_header)
    return tuple(listed or (name for name, _ in entry.models))


def _typed_key(variable: str, environ: Mapping[str, str]) -> Any:
    """Ask for a key, unless the environment has it. It is stored in a private file."""
    from hermes.config.secret import usable

    if variable and environ.get(variable, "").strip():
        print_text(f"   The key comes from {variable}. A service does not see this shell's variables.")
        return None
    typed = _typed(f"   Key{f' ({variable})' if variable else ', if it needs one'} (hidden): ", secret=True)
    return usable(typed, "the key") if typed else None


def _typed_model(offered: tuple[str, ...], default: str) -> str:
    for number, name in enumerate(offered[:_LISTED], 1):
        print_text(f"   {number:>3}  {one_line(name)}")
    default = default or (offered[0] if offered else "")
    typed = _typed(f"   Model, by number or name{f' [{default}]' if default else ''}: ") or default
    if typed.isdecimal() and 0 < int(typed) <= len(offered[:_LISTED]):
        return offered[int(typed) - 1]
    if not typed:
        raise ConfigError("no model was named")
    return typed


def _typed(prompt: str, *, secret: bool = False) -> str:
    return typed(prompt, secret=secret) or ""


# ---------------------------------------------------------------- tools, platforms, service


def _ask_for_tools(home: Home, environ: Mapping[str, str]) -> None:
    from hermes.config.loader import load_config
    from hermes.config.revision import set_settings
    from hermes.config.tool_choice import disabling
    from hermes.config.toolset import TOOLSETS

    config = load_config(home, environ).tools
    off = f"; off: {', '.join(config.disabled)}" if config.disabled else ""
    print_text(f"\n2. Tools: {', '.join(TOOLSETS)}{off}")
    for _ in range(_TRIES):
        words = _typed("   Names to turn off, separated by commas [none]: ").replace(",", " ").split()
        try:
            for word in words:
                set_settings(home, disabling(load_config(home, environ).tools, word, ""), environ)
        except HermesError as error:
            print_text(f"{error}. Try again.")
            continue
        return


def _ask_for_platforms(config: Config, set_up_platform: Callable[[str], int]) -> None:
    print_text("\n3. Chat platforms")
    for name, settings in config.platforms().items():
        title = name.capitalize()
        if settings.enabled:
            print_text(f"   {title} is set up already.")
        elif confirms(f"   Set up {title}?"):
            try:
                set_up_platform(name)
            except HermesError as error:
                print_text(f"{error}. `hermes setup {name}` tries again at any time.")


def _ask_for_service(environ: Mapping[str, str]) -> None:
    import argparse

    from hermes.cli.service_actions import install, start
    from hermes.cli.systemd import ServiceError, Systemd

    systemd = Systemd(system=False, environ=environ)
    print_text("\n4. Service")
    with suppress(ServiceError):
        systemd.require()
        if systemd.unit_file.exists():
            print_text("   The service is installed already.")
        elif confirms("   Run Hermes as a service of your user?"):
            options = argparse.Namespace(system=False, run_as="", print=False)
            try:
                install(options, environ)
                start(options, environ)
            except HermesError as error:
                print_text(f"{error}. `hermes service install` tries again at any time.")
        return
    print_text("   This machine has no systemd for your user; `hermes daemon` runs Hermes in a terminal.")
