"""Pages of the dashboard against the real daemon: what they show, and what their forms do."""

from __future__ import annotations

import base64
import json
import re
import shlex
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.waiting import eventually
from tests.web.visitor import Visitor

pytestmark = pytest.mark.timeout(120)
ATTACK = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"
DANGEROUS = json.dumps({"command": "rm -rf /tmp/nothing-here-at-all"})


def question_of(visitor: Visitor, session: str) -> str:
    """The id of the session's open question."""
    page = eventually(lambda: "/ui/approvals/ask_" in (text := visitor.get(f"/ui/sessions/{session}").text) and text)
    return str(re.findall(r"/ui/approvals/(ask_[0-9a-f]+)", page)[0])


def ask_for_approval(daemon: DaemonProcess) -> str:
    return str(daemon.request("POST", "/v1/runs", {"input": f"!tool terminal {DANGEROUS}"}).json()["session_id"])


@pytest.mark.parametrize(
    ("path", "heading"),
    [
        ("/", "Overview"),
        ("/ui/actors", "Live map"),
        ("/ui/sessions", "Sessions"),
        ("/ui/approvals", "Approvals and questions"),
        ("/ui/processes", "Background processes"),
        ("/ui/jobs", "Schedules"),
        ("/ui/memory", "Memory"),
        ("/ui/skills", "Skills"),
        ("/ui/outbox", "Outbox"),
        ("/ui/trace", "Trace of a message"),
        ("/ui/settings", "Settings in force"),
        ("/ui/logs", "Logs"),
    ],
)
def test_page_has_its_heading_and_marks_its_place(visitor: Visitor, path: str, heading: str) -> None:
    page = visitor.get(path)
    assert page.status == 200
    assert page.headers["Content-Type"].startswith("text/html")
    assert re.findall(r"<h1>(.*?)</h1>", page.text) == [heading]
    assert f'<a href="{path}" aria-current="page">' in page.text
    assert " style=" not in page.text  # the policy would drop it
    assert not re.search(r"<script(?![^>]* src=\"/ui/assets/)", page.text)


def test_text_of_a_session_stays_text_on_every_page(daemon: DaemonProcess, visitor: Visitor) -> None:
    session = daemon.ask(f"!echo {ATTACK}").session
    visitor.get("/ui/sessions")
    assert visitor.post(f"/ui/sessions/{session}/rename", title=ATTACK).status == 303
    paths = [
        f"/ui/sessions/{session}",
        f"/ui/sessions/{session}/timeline",
        "/ui/sessions",
        f"/ui/sessions?q={quote(ATTACK)}",
        f"/ui/sessions?title={quote(ATTACK)}",
        f"/ui/trace?id={session}",
        f"/ui/trace?id={quote(ATTACK)}",
        f"/ui/logs?q={quote(ATTACK)}",
        f"/ui/settings?q={quote(ATTACK)}",
        f"/ui/sessions/{quote(ATTACK)}",
        f"/ui/{quote(ATTACK)}",
        f"/ui/login?code={quote(ATTACK)}&next={quote(ATTACK)}",
    ]
    seen = 0
    for path in paths:
        text = visitor.get(path).text
        assert "<script>alert" not in text, path
        assert "<img src=x" not in text, path
        seen += "&lt;script&gt;alert" in text
    assert seen >= 6  # else the attack was not shown at all
    shown = json.loads(visitor.get(f"/ui/sessions/{session}/messages").text)
    assert "<script>alert" not in shown["conversation"] + shown["state"] + shown["question"]


def test_markdown_is_shown_without_pictures_and_dangerous_links(daemon: DaemonProcess, visitor: Visitor) -> None:
    said = "!echo **bold** [web](https://a.example) [bad](javascript:alert(1)) ![p](https://b.example/p.png)"
    page = visitor.get(f"/ui/sessions/{daemon.ask(said).session}")
    assert "<strong>bold</strong>" in page.text
    assert 'href="https://a.example"' in page.text
    assert 'href="javascript' not in page.text
    assert 'src="https' not in page.text


def test_tool_call_is_shown_with_arguments_and_result(daemon: DaemonProcess, visitor: Visitor) -> None:
    session = daemon.ask(f"!tool terminal {json.dumps({'command': 'echo from-the-tool'})}").session
    page = visitor.get(f"/ui/sessions/{session}").text
    call = re.search(r'<details class="call".*?</details>', page, re.DOTALL)
    assert call is not None
    assert "terminal" in call[0]
    assert call[0].count("from-the-tool") >= 2  # in the arguments and in the result


def test_conversation_is_written_and_paged(daemon: DaemonProcess, visitor: Visitor) -> None:
    begun = visitor.post("/ui/sessions")
    place = str(begun.headers["Location"])
    assert begun.status == 303
    for number in range(35):
        daemon.ask(f"!echo number-{number}", session=place.rpartition("/")[2])
    page = visitor.get(place)
    assert "number-34" in page.text
    assert "number-0</p>" not in page.text
    earlier = re.search(r'href="(\S+\?before=\d+)">Earlier', page.text)
    assert earlier is not None
    assert "number-0</p>" in visitor.get(earlier[1]).text


def test_session_without_a_title_has_its_first_message_as_its_name(daemon: DaemonProcess, visitor: Visitor) -> None:
    session = daemon.ask("Plant the   apple tree\ntomorrow").session
    link = f'<a href="/ui/sessions/{session}">Plant the apple tree tomorrow</a>'
    assert link in visitor.get("/ui/sessions").text
    assert link in visitor.get(f"/ui/sessions/{session}/timeline").text


def test_command_acts_and_its_reply_is_returned_to_the_script(daemon: DaemonProcess, visitor: Visitor) -> None:
    session = daemon.ask("!echo first").session
    path = f"/ui/sessions/{session}/messages"
    visitor.get(f"/ui/sessions/{session}")
    said = json.loads(visitor.post(path, text="/title Apple tree", accept="*/*").text)
    assert (said["ok"], said["place"]) == (True, f"/ui/sessions/{session}")
    assert "<h1>Apple tree</h1>" in visitor.get(f"/ui/sessions/{session}").text
    unknown = json.loads(visitor.post(path, text="/titel", accept="*/*").text)
    assert (unknown["ok"], "/title" in unknown["text"]) == (False, True)
    assert visitor.post(path, text="/title Pear tree").status == 303  # without scripts


def test_command_is_a_message_for_a_login_by_key(daemon: DaemonProcess) -> None:
    visitor = Visitor(daemon.address)
    visitor.log_in_by_key((daemon.home / "api.key").read_text().strip())
    session = daemon.ask("!echo first").session
    visitor.get(f"/ui/sessions/{session}")
    sent = visitor.post(f"/ui/sessions/{session}/messages", text="/yolo on", accept="*/*")
    assert (sent.status, sent.headers["Location"]) == (303, f"/ui/sessions/{session}#end")


def test_picture_of_a_message_is_shown_to_logged_in_people_only(
    daemon: DaemonProcess, visitor: Visitor, stranger: Visitor
) -> None:
    picture = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
    )
    url = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]
    asked = {"input": [{"role": "user", "content": parts}]}
    session = daemon.request("POST", "/v1/runs", asked).json()["session_id"]
    page = visitor.get(f"/ui/sessions/{session}").text
    [name] = re.findall(r'<img src="(/ui/media/[^"]+)"', page)
    shown = visitor.get(name)
    assert (shown.status, shown.headers["Content-Type"], shown.body) == (200, "image/png", picture)
    assert stranger.get(name).status == 303
    for wrong in (name.replace(".png", ".txt"), "/ui/media/..%2f..%2fapi.key", f"/ui/media/{'0' * 64}.png"):
        assert visitor.get(wrong).status == 404


def test_subagents_lead_to_their_conversations_and_back(daemon: DaemonProcess, visitor: Visitor) -> None:
    call = json.dumps({"goal": "!slow 600"})
    session = daemon.request("POST", "/v1/runs", {"input": f"!tool delegate_task {call}"}).json()["session_id"]
    path = f"/api/sessions/{session}/agents"
    [agent] = eventually(lambda: [x for x in daemon.request("GET", path).json()["agents"] if x["phase"] == "running"])
    assert (agent["parent"], agent["purpose"], agent["task"]) == (session, "delegate", "!slow 600")
    assert f'href="/ui/sessions/{agent["id"]}">!slow 600</a>' in visitor.get(f"/ui/sessions/{session}").text
    assert (
        f'Delegate of <a id="g-parent" href="/ui/sessions/{session}">'
        in visitor.get(f"/ui/sessions/{agent['id']}").text
    )
    assert visitor.post(f"/ui/sessions/{session}/stop").status == 303
    eventually(lambda: not daemon.request("GET", path).json()["agents"])
    assert f'href="/ui/sessions/{agent["id"]}">' in visitor.get(f"/ui/sessions/{session}").text


def test_job_is_created_run_paused_and_deleted(daemon: DaemonProcess, visitor: Visitor) -> None:
    visitor.get("/ui/jobs")
    made = visitor.post("/ui/jobs", schedule="0 8 * * 1-5", name="news", deliver="", prompt=f"!echo {ATTACK}")
    place = str(made.headers["Location"])
    assert made.status == 303
    assert f'<a href="{place}">news</a>' in visitor.get("/ui/jobs").text
    assert visitor.post(f"{place}/run").status == 303
    page = eventually(lambda: "Run 1" in (text := visitor.get(place).text) and ">conversation</a>" in text and text)
    assert "<script>alert" not in page
    assert visitor.post(f"{place}/pause").status == 303
    eventually(lambda: '<span class="badge paused">paused</span>' in visitor.get(place).text)
    wrong = visitor.post("/ui/jobs", schedule="now and then", name="", deliver="", prompt="x")
    assert wrong.status == 422
    assert visitor.post(f"{place}/remove").status == 303
    assert visitor.get(place).status == 404


def test_memory_and_its_limits_are_shown(daemon: DaemonProcess, visitor: Visitor) -> None:
    call = json.dumps({"action": "add", "target": "memory", "content": f"Backups are in /srv. {ATTACK}"})
    daemon.ask(f"!tool memory {call}")
    page = visitor.get("/ui/memory").text
    assert "Backups are in /srv. &lt;script&gt;" in page
    assert "of 2,200 characters" in page


def test_skill_is_shown_with_its_versions(daemon: DaemonProcess, visitor: Visitor) -> None:
    text = "---\nname: tidy-up\ndescription: Tidy a folder\n---\n# How\n\nSort by **age**.\n"
    daemon.ask(f"!tool skill_manage {json.dumps({'action': 'create', 'name': 'tidy-up', 'content': text})}")
    assert '<a href="/ui/skills/tidy-up">tidy-up</a>' in visitor.get("/ui/skills").text
    page = visitor.get("/ui/skills/tidy-up").text
    assert "<strong>age</strong>" in page
    assert "name: tidy-up" not in page
    assert "<strong>1</strong> create by" in page
    assert visitor.get("/ui/skills/unknown-skill").status == 404


def test_reply_is_a_message_of_the_owner(daemon: DaemonProcess, visitor: Visitor) -> None:
    session = daemon.ask("!echo first").session
    visitor.get(f"/ui/sessions/{session}")
    sent = visitor.post(f"/ui/sessions/{session}/messages", text="!echo over the page", busy="")
    assert (sent.status, sent.headers["Location"]) == (303, f"/ui/sessions/{session}#end")
    eventually(lambda: visitor.get(f"/ui/sessions/{session}").text.count("over the page") >= 2)
    assert "dashboard" in visitor.get(f"/ui/sessions/{session}").text
    assert visitor.post(f"/ui/sessions/{session}/messages", text=" ").status == 400
    assert visitor.post("/ui/sessions/unknown/messages", text="x").status == 404


def test_reply_takes_an_attachment(daemon: DaemonProcess, visitor: Visitor) -> None:
    session = daemon.ask("!echo first").session
    visitor.get(f"/ui/sessions/{session}")
    headers = {
        "Content-Type": "multipart/form-data; boundary=x",
        "Accept": "*/*",
        "X-Hermes-Form-Token": visitor.form_token,
    }
    body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="notes.txt"\r\n\r\nin-the-file\r\n--x--\r\n'
    file = json.loads(visitor.send("POST", "/ui/files", headers, body).text)["id"]
    assert visitor.post(f"/ui/sessions/{session}/messages", text="see", file=file).status == 303
    eventually(lambda: "in-the-file" in visitor.get(f"/ui/sessions/{session}").text)


def test_session_is_renamed_branched_suspended_and_resumed(daemon: DaemonProcess, visitor: Visitor) -> None:
    session = daemon.ask("!echo first").session
    place = f"/ui/sessions/{session}"
    visitor.get(place)
    visitor.post(f"{place}/rename", title="My work")
    assert "<h1>My work</h1>" in visitor.get(place).text
    branch = str(visitor.post(f"{place}/branch").headers["Location"])
    assert branch != place
    assert session in visitor.get(branch).text  # its lineage
    visitor.post(f"{place}/suspend")
    page = visitor.get(place).text
    assert "requested in the dashboard" in page
    assert 'name="text"' not in page  # it takes no messages
    visitor.post(f"{place}/resume")
    assert 'name="text"' in visitor.get(place).text


def test_answer_in_progress_is_shown_to_a_page_that_comes_late(daemon: DaemonProcess, visitor: Visitor) -> None:
    session = str(daemon.request("POST", "/v1/runs", {"input": "!slow 8"}).json()["session_id"])
    shown: list[str] = []

    def has_ended() -> bool:
        found = json.loads(visitor.get(f"/ui/sessions/{session}/messages").text)
        shown.append(found["writing"])
        return bool(found["phase"] == "idle")

    eventually(has_ended)
    assert any(shown)
    assert shown[-1] == ""


def test_timeline_shows_what_happened(daemon: DaemonProcess, visitor: Visitor) -> None:
    session = daemon.ask("!echo first").session
    kinds = re.findall(r"<strong>(.*?)</strong>", visitor.get(f"/ui/sessions/{session}/timeline").text)
    wanted = ["session started", "message received", "turn started", "turn finished"]
    assert [each for each in kinds if each in wanted] == wanted


def test_list_is_filtered_and_paged(daemon: DaemonProcess, visitor: Visitor) -> None:
    for number in range(52):
        daemon.request("POST", "/api/sessions", {"title": f"Page test {number}"})
    first = visitor.get("/ui/sessions?title=page+test&platform=api&phase=idle&days=7")
    following = re.search(r'<a rel="next" href="([^"]+)"', first.text)
    assert following is not None
    second = visitor.get(following[1].replace("&amp;", "&"))
    found = [re.findall(r"Page test (\d+)", each.text) for each in (first, second)]
    assert [len(each) for each in found] == [50, 2]
    assert len({*found[0], *found[1]}) == 52
    assert visitor.get("/ui/sessions?phase=sleeping").status == 400
    assert visitor.get("/ui/sessions?cursor=nonsense").status == 422


def test_search_marks_what_it_found(daemon: DaemonProcess, visitor: Visitor) -> None:
    session = daemon.ask("!echo a xylophone plays").session
    page = visitor.get("/ui/sessions?q=xylophone")
    assert "<mark>xylophone</mark>" in page.text
    assert session in page.text


def test_approval_is_given_and_recorded(daemon: DaemonProcess, visitor: Visitor) -> None:
    session = ask_for_approval(daemon)
    question = question_of(visitor, session)
    assert "rm -rf" in visitor.get("/ui/approvals").text
    assert "Waiting for you" in visitor.get("/").text
    assert visitor.post(f"/ui/approvals/{question}", answer="deny").status == 303
    eventually(lambda: session not in visitor.get("/ui/approvals").text)
    assert visitor.post(f"/ui/approvals/{question}", answer="once").status == 404
    assert "deny by api:dashboard" in visitor.get(f"/ui/sessions/{session}/timeline").text


def test_question_of_the_model_is_answered(daemon: DaemonProcess, visitor: Visitor) -> None:
    call = json.dumps({"question": "Which colour?", "choices": ["red", "blue"]})
    session = str(daemon.request("POST", "/v1/runs", {"input": f"!tool clarify {call}"}).json()["session_id"])
    question = question_of(visitor, session)
    assert 'value="blue"' in visitor.get("/ui/approvals").text
    assert visitor.post(f"/ui/approvals/{question}", answer="green, rather").status == 303
    eventually(lambda: "green, rather" in visitor.get(f"/ui/sessions/{session}").text)


def test_process_is_shown_and_killed(daemon: DaemonProcess, visitor: Visitor) -> None:
    script = "import time; print('<b>it-runs</b>', flush=True); time.sleep(600)"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(script)}"
    call = json.dumps({"command": command, "background": True})
    session = ask(daemon, f"!tool terminal {call}", visitor)
    process = str(eventually(lambda: re.findall(r"/ui/processes/(proc_\w+)", visitor.get("/ui/processes").text))[0])
    eventually(lambda: "&lt;b&gt;it-runs&lt;/b&gt;" in visitor.get(f"/ui/processes/{process}").text)
    assert process in visitor.get(f"/ui/sessions/{session}").text
    assert visitor.post(f"/ui/processes/{process}/kill").status == 303
    eventually(lambda: ">ended<" in visitor.get(f"/ui/processes/{process}").text)
    assert visitor.get("/ui/processes/unknown").status == 404


def ask(daemon: DaemonProcess, text: str, visitor: Visitor) -> str:
    """Let a tool run, with an approval if it needs one."""
    run = daemon.request("POST", "/v1/runs", {"input": text}).json()
    session = str(run["session_id"])

    def has_ended() -> bool:
        page = visitor.get(f"/ui/sessions/{session}").text
        for question in re.findall(r"/ui/approvals/(ask_[0-9a-f]+)", page):
            visitor.post(f"/ui/approvals/{question}", answer="once")
        return bool(daemon.request("GET", f"/v1/runs/{run['run_id']}").json()["status"] == "completed")

    eventually(has_ended)
    return session


def test_trace_is_a_waterfall(daemon: DaemonProcess, visitor: Visitor) -> None:
    session = daemon.ask("!echo traced").session
    page = visitor.get(f"/ui/trace?id={session}").text
    bars = [(float(x), float(width)) for x, width in re.findall(r'<rect x="([\d.]+)" width="([\d.]+)"', page)]
    assert len(bars) >= 2
    assert all(x >= 0 and width > 0 and x + width <= 100.01 for x, width in bars)
    assert "there is no session" in visitor.get("/ui/trace?id=nothing").text


def test_live_setting_is_saved_with_its_comments(daemon: DaemonProcess, visitor: Visitor) -> None:
    file = Path(daemon.home / "config.yaml")
    file.write_text("# my file\nlog:\n  level: INFO  # as usual\n", encoding="utf-8")
    visitor.get("/ui/settings")
    page = visitor.post("/ui/settings", name="log.level", value="DEBUG")
    assert "log.level was saved. In force now: log.level" in page.text
    assert file.read_text(encoding="utf-8") == '# my file\nlog:\n  level: "DEBUG"  # as usual\n'
    assert daemon.admin.get("/reload")["applied"] == {}  # it is in force
    for name, value in (("log.level", "LOUD"), ("api.port", "1"), ("no.setting", "1")):
        refused = visitor.post("/ui/settings", name=name, value=value)
        assert refused.status in (400, 409), name
    assert '"DEBUG"' in file.read_text(encoding="utf-8")


def test_setting_that_waits_for_a_restart_is_marked(daemon: DaemonProcess, visitor: Visitor) -> None:
    daemon.hermes("config", "set", "api.max_body_bytes", "9000000")
    page = visitor.get("/ui/settings?q=api.max_body_bytes").text
    assert "not in force yet" in page


def test_log_is_filtered(visitor: Visitor) -> None:
    assert "dashboard: login by link" in visitor.get("/ui/logs?q=login+by").text
    assert "login by link" not in visitor.get("/ui/logs?level=ERROR&q=login+by").text


def test_unknown_page_and_session_are_pages_themselves(visitor: Visitor) -> None:
    for path in ("/ui/nothing", "/ui/sessions/20200101_000000_00000000", "/ui/sessions/%00"):
        page = visitor.get(path)
        assert page.status in (400, 404)
        assert "This did not work" in page.text
    assert json.loads(visitor.get("/ui/nothing", accept="*/*").text)["error"]["code"] == "not_found"
