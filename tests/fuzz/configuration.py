"""Configuration of the fuzzer: the key, the known ids, and what counts as a finding."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.fuzz.seed import Ids

KINDS = {  # ids by the path that takes them; open questions and approvals have ids that no other operation uses up
    "/api/sessions/(?!.*/answer$)": "sessions",
    "/api/sessions/.*/answer$": "asking_sessions",
    "/v1/runs/(?!.*/approval$)": "runs",
    "/v1/runs/.*/approval$": "asking_runs",
    "/api/approvals/": "approvals",
    "/v1/responses/": "responses",
    "/api/processes/": "processes",
    "/v1/models/": "models",
    "/v1/files/": "files",
}
OF_PROVIDERS = (  # they need a provider
    "/v1/embeddings",
    "/v1/audio/speech",
    "/v1/audio/transcriptions",
    "/v1/images/generations",
)
# Answers to a request that its schema allows, if the operation declares them. 404: the id is unknown. 409: it is not
# possible in this state. 422: the body means nothing, for example the last message is empty.
_STATE = ("404", "409", "422")
# A part's name is in a header, where HTTP allows no control characters; the schema of a form cannot say that.
_FORMS = {"createFile": ("400",), "createTranscription": ("400",)}
# Answers to a request that its schema forbids. 431: its address or a header is too long.
_REJECTED = json.dumps(["400", "401", "403", "404", "405", "406", "409", "415", "422", "428", "429", "431", "5xx"])
_HEAD = """\
headers = {{ Authorization = "Bearer {key}" }}
request-timeout = 20
max-stream-events = 5

[generation]
allow-x00 = true
"""
_STREAMS = """\
[[operations]]
include-path = "/api/events"
max-stream-events = 1

[[operations]]
include-path = "/v1/runs/{id}/events"
request-timeout = 1
"""


def configuration(document: dict[str, Any], ids: Ids, key: str) -> str:
    """Return the file. Most cases take a known id, the others a generated one."""
    parts = [_HEAD.format(key=key)]
    parts += [f"[dictionaries.{kind}]\nvalues = {json.dumps(values)}\n" for kind, values in ids.items()]
    for path, kind in KINDS.items():
        if kind in ids:
            binding = f'{{ dictionary = "{kind}", probability = 0.8 }}'
            parts.append(
                f'[[operations]]\ninclude-path-regex = "^{path}"\nparameters = {{ "path.id" = {binding} }}\n'
            )
    return "\n".join([*parts, *_accepted(document), _STREAMS])


def _accepted(document: dict[str, Any]) -> Iterator[str]:
    for methods in document["paths"].values():
        for operation in methods.values():
            name = operation["operationId"]
            state = [each for each in _STATE if each in operation["responses"]]
            statuses = json.dumps(["2xx", *state, *_FORMS.get(name, ())])
            yield (
                f'[[operations]]\ninclude-operation-id = "{name}"\n'
                f"checks = {{ positive_data_acceptance = {{ expected-statuses = {statuses} }}, "
                f"negative_data_rejection = {{ expected-statuses = {_REJECTED} }} }}\n"
            )
