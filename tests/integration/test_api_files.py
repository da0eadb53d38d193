"""Files and pictures between API clients and the real daemon."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.daemon_process import Answer, DaemonProcess
from tests.support.pictures import PNG
from tests.support.scripted_model import ScriptedModel, answered, calling

pytestmark = pytest.mark.timeout(120)
DATA_URL = "data:image/png;base64," + base64.b64encode(PNG).decode()
BOUNDARY = "----form"


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        model.on_request = lambda body: answered("ok")
        yield model


@pytest.fixture
def daemon(model: ScriptedModel) -> Iterator[DaemonProcess]:
    with DaemonProcess(config=model.config, environ={"HERMES_MODEL_VISION": "always"}) as daemon:
        yield daemon


def upload(daemon: DaemonProcess, name: str, data: bytes, kind: str = "text/plain", **headers: str) -> Answer:
    form = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n'
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        f"Content-Type: {kind}\r\n\r\n"
    ).encode()
    body = form + data + f"\r\n--{BOUNDARY}--\r\n".encode()
    kind = f"multipart/form-data; boundary={BOUNDARY}"
    return daemon.request("POST", "/v1/files", body, Content_Type=kind, **headers)


def say(daemon: DaemonProcess, *parts: Any, session: str = "") -> Answer:
    content = [{"type": "text", "text": "Look."}, *parts]
    body = {"model": "hermes", "messages": [{"role": "user", "content": content}]}
    return daemon.request(
        "POST", "/v1/chat/completions", body, **({"X_Hermes_Session_Id": session} if session else {})
    )


def last_content(model: ScriptedModel) -> Any:
    return [each["content"] for each in model.requests[-1]["messages"] if each["role"] == "user"][-1]


def upload_with_purpose_last(daemon: DaemonProcess, purpose: str) -> Answer:
    body = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhello\r\n'
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n{purpose}\r\n--{BOUNDARY}--\r\n'
    )
    return daemon.request(
        "POST", "/v1/files", body.encode(), Content_Type=f"multipart/form-data; boundary={BOUNDARY}"
    )


def test_purpose_after_the_file_counts_and_an_unknown_one_stores_no_file(daemon: DaemonProcess) -> None:
    assert upload_with_purpose_last(daemon, "vision").json()["purpose"] == "vision"
    refused = upload_with_purpose_last(daemon, "null")
    assert (refused.status, refused.json()["error"]["param"]) == (400, "purpose")
    assert len(daemon.request("GET", "/v1/files").json()["data"]) == 1


def test_file_is_uploaded_listed_read_and_deleted(daemon: DaemonProcess) -> None:
    made = upload(daemon, "note é.txt", b"hello").json()
    assert (made["object"], made["bytes"], made["filename"], made["purpose"]) == (
        "file",
        5,
        "note é.txt",
        "user_data",
    )
    path = f"/v1/files/{made['id']}"
    assert daemon.request("GET", path).json() == made
    assert daemon.request("GET", "/v1/files").json()["data"] == [made]
    content = daemon.request("GET", f"{path}/content")
    assert (content.body, content.headers["Content-Type"]) == (b"hello", "text/plain")
    assert "attachment" in content.headers["Content-Disposition"]
    token = daemon.request("POST", "/api/tokens", {"scope": "files"}).json()["token"]
    assert daemon.request("GET", f"{path}/content?token={token}", Authorization="").body == b"hello"
    assert daemon.request("DELETE", path).json()["deleted"]
    assert daemon.request("GET", path).status == 404
    assert daemon.request("GET", "/v1/files").json()["data"] == []


def test_openai_client_uploads_and_uses_a_file(daemon: DaemonProcess, model: ScriptedModel) -> None:
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{daemon.address}/v1", api_key=daemon.key) as client:
        file = client.files.create(file=("cat.png", PNG), purpose="vision")
        image = {"type": "input_image", "file_id": file.id}
        ask = {"role": "user", "content": [{"type": "input_text", "text": "Look."}, image]}
        assert client.responses.create(model="hermes", input=[ask]).output_text == "ok"
        assert client.files.content(file.id).read() == PNG
    assert last_content(model)[1]["image_url"]["url"] == DATA_URL


def test_files_belong_to_the_key_that_uploaded_them(daemon: DaemonProcess, model: ScriptedModel) -> None:
    made = upload(daemon, "secret.txt", b"the owner's words").json()
    key = next(word for word in daemon.hermes("keys", "create", "ci").stdout.split() if word.startswith("hk_"))
    ci = {"Authorization": f"Bearer {key}"}
    assert daemon.request("GET", f"/v1/files/{made['id']}", **ci).status == 404
    assert daemon.request("GET", f"/v1/files/{made['id']}/content", **ci).status == 404
    assert daemon.request("GET", "/v1/files", **ci).json()["data"] == []
    part = {"type": "file", "file": {"file_id": made["id"]}}
    body = {"model": "hermes", "messages": [{"role": "user", "content": [{"type": "text", "text": "Look."}, part]}]}
    assert daemon.request("POST", "/v1/chat/completions", body, **ci).status == 200
    assert "the owner's words" not in str(model.requests[-1])


def test_large_and_malformed_uploads_are_refused() -> None:
    with DaemonProcess(config="media: {max_file_mb: 1}\n") as daemon:
        assert upload(daemon, "large.bin", b"x" * (1 << 20 | 1)).status == 413
        kind = f"multipart/form-data; boundary={BOUNDARY}"
        assert daemon.request("POST", "/v1/files", b"nonsense", Content_Type=kind).status == 400
        assert daemon.request("POST", "/v1/files", {}).status == 415
        assert daemon.request("GET", "/v1/files").json()["data"] == []


def test_picture_reaches_a_model_that_sees(daemon: DaemonProcess, model: ScriptedModel) -> None:
    for part in (
        {"type": "image_url", "image_url": {"url": DATA_URL}},
        {"type": "image_url", "image_url": DATA_URL},
    ):
        assert say(daemon, part).text == "ok"
        words, picture = last_content(model)
        assert picture["image_url"]["url"] == DATA_URL
        assert "[picture: image/png" in words["text"]


def test_model_that_cannot_see_gets_a_note(model: ScriptedModel) -> None:
    with DaemonProcess(config=model.config, environ={"HERMES_MODEL_VISION": "never"}) as daemon:
        assert say(daemon, {"type": "image_url", "image_url": {"url": DATA_URL}}).text == "ok"
    assert last_content(model).startswith("Look.\n[picture: image/png")


def test_picture_that_cannot_be_used_is_a_note_and_no_error(daemon: DaemonProcess, model: ScriptedModel) -> None:
    for url in (
        "http://127.0.0.1:1/secret.png",
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "hermes-media:0123456789abcdef/" + "0" * 64 + ".png",
        "data:image/png;base64,???",
        "",
    ):
        assert say(daemon, {"type": "image_url", "image_url": {"url": url}}).text == "ok"
        assert "[picture: cannot be used, because" in last_content(model)
        assert "hermes-media" not in str(model.requests[-1])


def test_picture_in_a_history_does_not_end_the_chat(daemon: DaemonProcess, model: ScriptedModel) -> None:
    picture = {"type": "image_url", "image_url": {"url": DATA_URL}}
    asked = {"role": "user", "content": [{"type": "text", "text": "Look."}, picture]}
    first = daemon.request("POST", "/v1/chat/completions", {"model": "hermes", "messages": [asked]})
    messages = [asked, {"role": "assistant", "content": first.text}, {"role": "user", "content": "and now?"}]
    second = daemon.request("POST", "/v1/chat/completions", {"model": "hermes", "messages": messages})
    assert second.text == "ok"
    assert second.session == first.session
    assert DATA_URL in str(model.requests[-1])


def test_text_of_a_document_is_part_of_the_message(daemon: DaemonProcess, model: ScriptedModel) -> None:
    data = "data:text/csv;base64," + base64.b64encode(b"name,age\nann,7\n").decode()
    assert say(daemon, {"type": "file", "file": {"filename": "people.csv", "file_data": data}}).text == "ok"
    content = last_content(model)
    assert "people.csv" in content
    assert "ann,7" in content
    binary = "data:application/octet-stream;base64," + base64.b64encode(b"\0\1\2\3" * 50).decode()
    assert say(daemon, {"type": "file", "file": {"filename": "x.bin", "file_data": binary}}).text == "ok"
    assert "[file: cannot be used, because" in last_content(model)


def test_run_takes_a_picture(daemon: DaemonProcess, model: ScriptedModel) -> None:
    content = [{"type": "input_text", "text": "Look."}, {"type": "input_image", "image_url": DATA_URL}]
    run = daemon.request("POST", "/v1/runs", {"input": [{"role": "user", "content": content}]})
    assert run.status == 202, json.dumps(run.json())
    daemon.request("GET", f"/v1/runs/{run.json()['run_id']}/events")
    assert last_content(model)[1]["image_url"]["url"] == DATA_URL


def test_file_of_the_agent_can_be_downloaded(daemon: DaemonProcess, model: ScriptedModel) -> None:
    replies = [
        calling(10, ("write_file", {"path": "report.txt", "content": "42"})),
        calling(10, ("send_file", {"path": "report.txt"})),
        answered("ok"),
    ]
    model.on_request = lambda body: replies.pop(0)
    assert say(daemon, session="reporting").text == "ok"
    result = json.loads(model.requests[-1]["messages"][-1]["content"])
    content = daemon.request("GET", f"/v1/files/{result['file_id']}/content")
    assert (content.body, result["name"]) == (b"42", "report.txt")
    (listed,) = daemon.request("GET", "/v1/files").json()["data"]
    assert (listed["filename"], listed["purpose"]) == ("report.txt", "assistants_output")
