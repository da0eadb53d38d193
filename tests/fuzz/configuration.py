"""Configuration of the fuzzer: the key, the known ids, and what counts as a finding."""

from __future__ import annotations

import json

from tests.fuzz.seed import Ids

KINDS = {  # ids by the path that takes them
    "/api/sessions/": "sessions",
    "/v1/runs/": "runs",
    "/api/approvals/": "approvals",
    "/v1/responses/": "responses",
    "/api/processes/": "processes",
    "/v1/models/": "models",
}
OF_PROVIDERS = ("/v1/embeddings", "/v1/audio/speech", "/v1/audio/transcriptions")  # they need a provider
_HEAD = """\
headers = {{ Authorization = "Bearer {key}" }}
request-timeout = 20
max-stream-events = 5

[generation]
allow-x00 = true

# 422: the body is well formed, but means nothing, which a schema cannot say. For example, the last message is empty.
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "403", "404", "409", "422", "429"]
"""


def configuration(ids: Ids, key: str) -> str:
    """Return the file. Most cases take a known id, the others a generated one."""
    parts = [_HEAD.format(key=key)]
    parts += [f"[dictionaries.{kind}]\nvalues = {json.dumps(values)}\n" for kind, values in ids.items()]
    for path, kind in KINDS.items():
        binding = f'{{ dictionary = "{kind}", probability = 0.8 }}'
        parts.append(f'[[operations]]\ninclude-path-regex = "^{path}"\nparameters = {{ "path.id" = {binding} }}\n')
    parts += [f'[[operations]]\ninclude-path = "{path}"\nenabled = false\n' for path in OF_PROVIDERS]
    return "\n".join(parts)
