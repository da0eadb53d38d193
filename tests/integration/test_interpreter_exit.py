"""Exit of an interpreter that has used the request types of the API."""

from __future__ import annotations

import subprocess
import sys

_USE_EVERY_TYPE = """
import importlib, pkgutil
import msgspec
import hermes.adapters.admin, hermes.adapters.openai_api

for package in (hermes.adapters.admin, hermes.adapters.openai_api):  # routes are imported when they are first used
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)

def below(cls):
    for each in cls.__subclasses__():
        yield each
        yield from below(each)

decoders = [msgspec.json.Decoder(each) for each in below(msgspec.Struct)]
assert len(decoders) > 50
"""
_RUNS = 8  # without the freeze about one run in four crashes


def test_interpreter_ends_without_a_crash() -> None:
    for _ in range(_RUNS):
        assert subprocess.run((sys.executable, "-c", _USE_EVERY_TYPE), check=False).returncode == 0
