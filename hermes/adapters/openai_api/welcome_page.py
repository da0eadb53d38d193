"""Page at the API's address, for a person who opens it in a browser. It needs no key and reveals nothing."""

from __future__ import annotations

_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Hermes</title></head>
<body>
<h1>Hermes {version} runs here</h1>
<p>This address is its API for programs. To talk to Hermes, run <code>hermes chat</code> in a terminal.</p>
<table>
<tr><td><code>hermes chat</code></td><td>start a conversation</td></tr>
<tr><td><code>hermes setup</code></td><td>choose a model, connect Telegram or Slack</td></tr>
<tr><td><code>hermes status</code></td><td>state of the daemon</td></tr>
<tr><td><code>hermes doctor</code></td><td>find problems, with remedies</td></tr>
</table>
<h2>For programs</h2>
<ul>
<li>Base URL for OpenAI clients: this address with <code>/v1</code></li>
<li>Key: <code>Authorization: Bearer KEY</code>; the key is in <code>api.key</code> of Hermes' home</li>
<li><a href="/openapi.json">Description of all routes (OpenAPI)</a>, <a href="/health">health</a></li>
</ul>
</body>
</html>
"""


def welcome_page(version: str) -> str:
    return _PAGE.format(version=version)
