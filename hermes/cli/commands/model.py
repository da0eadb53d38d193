"""`hermes model`: show, list, check and choose models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.cli.output import one_line, print_json, print_table, print_text
from hermes.cli.parser import Commands

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.config.home import Home
    from hermes.config.model_settings import ModelConfig
    from hermes.domain.provider import ModelFacts, Provider
    from hermes.domain.turn.usage import Price


def add_commands(commands: Commands) -> None:
    model = commands.add(
        "model",
        _pick,
        "Show, list, check or choose the model. Without an action, on a terminal: choose one from the live list.",
        examples="  hermes model list openrouter\n  hermes model set anthropic:claude-sonnet-4-5",
        json=True,
    )
    actions = Commands(model, required=False)
    actions.add("show", _show, "Show the configured model with its window and prices.", json=True)
    actions.add("providers", _providers, "List the providers with their addresses and key variables.", json=True)
    listing = actions.add("list", _list, "List the models of the endpoint, with window and prices.", json=True)
    listing.add_argument("provider", nargs="?", default="", help="provider (default: the configured one)")
    listing.add_argument("--known", action="store_true", help="list only what is known without asking the endpoint")
    checking = actions.add("check", _check, "Ask the model for one word. Exit code 1 if it fails.", json=True)
    checking.add_argument(
        "model", nargs="?", default="", metavar="[PROVIDER:]MODEL", help="default: the configured one"
    )
    setting = actions.add("set", _set, "Check a model with one call and write it to the configuration.", json=True)
    setting.add_argument("model", metavar="[PROVIDER:]MODEL", help="model, with its provider if that changes")
    setting.add_argument("--no-check", action="store_true", help="write it without a call")


def _load(environ: Mapping[str, str]) -> ModelConfig:
    from hermes.config.home import Home
    from hermes.config.loader import load_config

    return load_config(Home.from_environ(environ), environ).model


def _chosen(text: str, environ: Mapping[str, str]) -> ModelConfig:
    from hermes.agent.models.model_set import ModelChoice
    from hermes.app.factories.models import choice_of, with_choice
    from hermes.config.providers import LOCAL, OFFLINE
    from hermes.domain.errors import ConfigError

    model = _load(environ)
    if not text:
        return model
    if text in (OFFLINE, LOCAL):  # built in, each with one model
        return with_choice(model, ModelChoice(provider=text, model=""))
    chosen = with_choice(model, choice_of(text, model))
    if chosen.provider == OFFLINE and chosen.name not in ("", OFFLINE):  # it would answer under any name
        raise ConfigError(
            f"{one_line(text)} names no known provider, and the offline one has no other models: add the provider, "
            "as in openai:gpt-5; `hermes model providers` lists them"
        )
    return chosen


# ---------------------------------------------------------------- pick


def _pick(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Show the model. On a terminal, also offer others."""
    import argparse
    import sys

    from hermes.cli.commands.model_picker import pick
    from hermes.cli.commands.reload import reload_running
    from hermes.config.home import Home

    code = _show(args, environ)
    if getattr(args, "json", False) or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return code
    chosen = pick(_load(environ).provider, environ, lambda provider: _live(provider, environ), _row)
    if not chosen:
        return code
    if code := _set(argparse.Namespace(model=chosen, no_check=False, json=False, quiet=True), environ):
        return code
    _, told = reload_running(Home.from_environ(environ))
    if told:
        print_text(told)
    return 0


def _live(provider: str, environ: Mapping[str, str]) -> list[tuple[str, ModelFacts]]:
    """Ask the provider's endpoint for its models."""
    import asyncio

    from hermes.agent.models.model_set import ModelChoice
    from hermes.app.factories.models import live_models, with_choice

    model = _load(environ)
    chosen = with_choice(model, ModelChoice(provider=provider, model=model.name))
    return [(each.name, each.facts) for each in asyncio.run(live_models(chosen, environ))]


def _row(listed: tuple[str, ModelFacts]) -> tuple[str, str, str]:
    name, facts = listed
    return one_line(name), f"{facts.context_window:,}" if facts.context_window else "-", _dollars(facts.price)


# ---------------------------------------------------------------- show and list


def _show(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    model = _load(environ)
    entry = model.entry
    facts = {
        "provider": model.provider,
        "model": model.name or model.provider,
        "protocol": str(entry.protocol if entry and model.protocol == "auto" else model.protocol),
        "base_url": model.base_url or (entry.base_url if entry else ""),
        "key_variables": list(model.key_variables),
        "missing_variables": [name for name in model.key_variables if not environ.get(name, "").strip()],
        "context_window": model.window,
        "price": _prices(model.price()),
        "fallbacks": list(model.fallbacks),
        "aliases": list(model.aliases),
    }
    if getattr(args, "json", False):
        print_json(facts)
        return 0
    for name, value in facts.items():
        text = ", ".join(value) if isinstance(value, list) else _dollars(model.price()) if name == "price" else value
        print_text(f"{name.replace('_', ' '):<18} {text or '-'}")
    return 0


def _providers(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.providers import PROVIDERS

    rows = [
        {
            "provider": each.name,
            "service": each.title,
            "key_variable": each.key_variable,
            "key_set": _has_key(each, environ),
            "protocol": str(each.protocol),
            "base_url": each.base_url,
        }
        for each in PROVIDERS.values()
    ]
    if getattr(args, "json", False):
        print_json({"providers": rows})
        return 0
    known = {True: "set", False: "not set", None: "not needed"}
    print_table(
        ("provider", "service", "key variable", "key", "address"),
        [
            (each.name, each.title, each.key_variable, known[_has_key(each, environ)], each.base_url)
            for each in PROVIDERS.values()
        ],
        drop=("address", "service"),
    )
    return 0


def _has_key(provider: Provider, environ: Mapping[str, str]) -> bool | None:
    """Return whether the provider's key is set; None if it needs none."""
    return bool(environ.get(provider.key_variable, "").strip()) if provider.key_variable else None


def _list(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.providers import PROVIDERS
    from hermes.domain.errors import ConfigError

    provider = args.provider or _load(environ).provider
    if provider not in PROVIDERS:
        raise ConfigError(f"the provider {provider} has no list of models; `hermes model providers` lists providers")
    found = list(PROVIDERS[provider].models) if args.known else _live(provider, environ)
    if getattr(args, "json", False):
        print_json({"provider": provider, "models": [{"model": name, **_described(facts)} for name, facts in found]})
        return 0
    if not found:
        print_text(f"No model of {provider} is known{' without asking; omit --known' if args.known else ''}.")
        return 0
    heads = ("model", "window", "input / cached / output, $ per million tokens")
    print_table(heads, list(map(_row, found)), numbers=("window",))
    return 0


def _described(facts: ModelFacts) -> dict[str, Any]:
    return {
        "context_window": facts.context_window or None,
        "max_output": facts.max_output or None,
        "price": _prices(facts.price),
        "vision": facts.vision,
        "reasoning": facts.reasoning,
    }


def _prices(price: Price | None) -> dict[str, float | None] | None:
    if price is None or not (price.input or price.output):
        return None
    return {"input": price.input, "cached_input": price.cached_input, "output": price.output}


def _dollars(price: Price | None) -> str:
    if price is None or not (price.input or price.output):
        return "-"
    cached = "-" if price.cached_input is None else f"{price.cached_input:g}"
    return f"{price.input:g} / {cached} / {price.output:g}"


# ---------------------------------------------------------------- check and set


def _check(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    return _checked(args, _chosen(args.model, environ), environ)


def _checked(args: argparse.Namespace, model: ModelConfig, environ: Mapping[str, str]) -> int:
    """Make one call and report it."""
    import asyncio
    import time

    from hermes.app.factories.models import make_models
    from hermes.cli.doctor.live_checks import MODEL_TIMEOUT_S, AnswerKind, ask_once
    from hermes.config.settings import Config
    from hermes.domain.errors import ModelError

    began, problem, text, remark = time.monotonic(), "", "", ""
    try:
        answer = asyncio.run(ask_once(make_models(Config(model=model), environ).chain[0]))
        text, remark = answer.text, answer.remark
        problem = remark if answer.kind is AnswerKind.EMPTY else ""
    except ModelError as error:
        problem = str(error)
    except TimeoutError:
        problem = f"it did not answer within {MODEL_TIMEOUT_S:g} s"
    took_s = round(time.monotonic() - began, 2)
    name = f"{model.provider}:{model.name}" if model.name else model.provider
    if getattr(args, "json", False):
        told = {"problem": problem or None, "remark": remark or None}
        print_json({"ok": not problem, "model": name, "answer": text, **told, "took_s": took_s})
    elif problem:
        print_text(f"{name} does not work: {one_line(problem).removesuffix('.')}.")
    elif remark:
        print_text(f"{name} answered in {took_s:g} s. {remark}")
    else:
        print_text(f"{name} answered in {took_s:g} s: {one_line(text)[:80]}")
    return 1 if problem else 0


def _set(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home
    from hermes.config.revision import set_settings

    before, model = _load(environ), _chosen(args.model, environ)
    if not args.no_check and (code := _checked(args, model, environ)):
        _hint_at_provider(args)
        return code
    changes = {"model.provider": model.provider, "model.name": model.name}
    if model.provider != before.provider:  # settings of the other endpoint do not apply
        changes |= {
            "model.base_url": "",
            "model.api_key_env": "auto",
            "model.api_key_file": "",
            "model.protocol": "auto",
            "model.api_version": "",
        }
    home = Home.from_environ(environ)
    set_settings(home, changes, environ)
    if not getattr(args, "json", False):
        print_text(f"The model is {':'.join(filter(None, (model.provider, model.name)))}.")
        if not getattr(args, "quiet", False) and _is_pending(home):
            print_text("The running daemon has the old one: `hermes reload` applies the new one.")
    return 0


def _hint_at_provider(args: argparse.Namespace) -> None:
    """Say that the part before the colon is no provider, if so: names of models may contain colons."""
    from hermes.config.providers import PROVIDER_NAMES

    prefix, colon, _ = args.model.partition(":")
    if colon and prefix not in PROVIDER_NAMES and not getattr(args, "json", False):
        print_text(f"{one_line(prefix)} is not a provider; `hermes model providers` lists them.")


def _is_pending(home: Home) -> bool:
    """Return whether the running daemon has other settings of the model than the file, as far as it can tell."""
    from hermes.cli.commands.reload import pending_changes
    from hermes.config.home import is_free
    from hermes.domain.errors import ConfigError

    if is_free(home):
        return False
    try:
        found = pending_changes(home)
    except ConfigError:
        return True
    return found is None or any(name.startswith("model.") for name in found["applied"])
