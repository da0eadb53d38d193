"""Interactive choice of a model: a provider, then a model from its live list, by number, name or a part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.answered import typed
from hermes.cli.output import one_line, print_table, print_text
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes.domain.provider import ModelFacts

Listed = tuple[str, "ModelFacts"]
LISTED = 30  # models at a time


def pick(
    configured: str,
    environ: Mapping[str, str],
    listed: Callable[[str], Sequence[Listed]],
    row: Callable[[Listed], tuple[str, str, str]],
) -> str:
    """Return PROVIDER:MODEL; empty if the person keeps the configured model. `listed` asks an endpoint."""
    provider = _provider(configured, environ)
    if not provider:
        return ""
    try:
        found = list(listed(provider))
    except HermesError as error:
        print_text(f"The models of {provider} could not be listed: {one_line(str(error))}.")
        found = []
    name = _model(found, row)
    return f"{provider}:{name}" if name else ""


def _provider(configured: str, environ: Mapping[str, str]) -> str:
    """Ask for one of the providers that can be used: the configured one, those with a key and local servers."""
    from hermes.config.providers import PROVIDERS

    usable = [
        each.name
        for each in PROVIDERS.values()
        if each.name == configured
        or (each.base_url and (not each.key_variable or environ.get(each.key_variable, "").strip()))
    ]
    print_text("\nProviders with a key, and servers of this machine (`hermes model providers` lists all):")
    for number, name in enumerate(usable, 1):
        print_text(f"  {number:>3}  {name:<12} {PROVIDERS[name].title}{' (in use)' if name == configured else ''}")
    while answer := typed("Provider, by number or name (Enter keeps the model): "):
        if answer.isdecimal() and 0 < int(answer) <= len(usable):
            return usable[int(answer) - 1]
        if answer in PROVIDERS:
            return answer
        print_text(f"There is no provider {one_line(answer)}.")
    return ""


def _model(found: Sequence[Listed], row: Callable[[Listed], tuple[str, str, str]]) -> str:
    """Ask for a model. A text that no model has for its name narrows the list."""
    names = {name for name, _ in found}
    shown = list(found)
    while True:
        if shown:
            rows = [(str(number), *row(each)) for number, each in enumerate(shown[:LISTED], 1)]
            print_table(("", "model", "window", "input / cached / output, $"), rows, numbers=("", "window"))
        if len(shown) > LISTED:
            print_text(f"… and {len(shown) - LISTED} more; type a part of the name to narrow the list.")
        answer = typed("Model, by number, name or a part of it (Enter keeps the model): ")
        if not answer or answer in names or not found:
            return answer or ""
        if answer.isdecimal() and 0 < int(answer) <= len(shown[:LISTED]):
            return shown[int(answer) - 1][0]
        narrowed = [each for each in found if answer.lower() in each[0].lower()]
        if not narrowed:
            print_text(f"No model has {one_line(answer)} in its name.")
        shown = narrowed or list(found)
