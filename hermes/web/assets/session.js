// Follows one session: streams the answer, and fetches the conversation again after each stored event.

import { follow, formToken, replaceContent } from "./page.js";

const place = document.querySelector("[data-conversation]");
const state = document.querySelector("[data-state]");
const question = document.querySelector("[data-question]");
const writing = document.querySelector("[data-writing]");
const STORED = [
  "run.accepted", "run.started", "run.completed", "run.failed", "run.cancelled", "run.interrupted",
  "message.completed", "tool.started", "tool.completed", "approval.request",
  "session.started", "session.ended", "session.continued", "session.suspended", "session.resumed",
  "session.updated", "session.undone", "session.compressing", "session.compression_failed", "session.state",
];
let pending = 0;

const isAtEnd = () => innerHeight + scrollY >= document.body.scrollHeight - 120;

function toEnd(wasAtEnd) {
  if (wasAtEnd) scrollTo({ top: document.body.scrollHeight });
}

async function refresh() {
  pending = 0;
  const answer = await fetch(`/ui/sessions/${place.dataset.conversation}/messages`);
  if (!answer.ok) return;
  const found = await answer.json();
  const wasAtEnd = isAtEnd();
  replaceContent(place, found.conversation);
  replaceContent(state, found.state);
  if (question.innerHTML.trim() || found.question.trim()) replaceContent(question, found.question);
  if (found.phase !== "running") clear();
  else showWritten(found.writing);
  toEnd(wasAtEnd);
}

const refreshSoon = () => {
  pending ||= setTimeout(refresh, 150);
};

function clear() {
  writing.hidden = true;
  writing.querySelector("[data-text]").textContent = "";
}

/** Shows what was written before this page followed. */
function showWritten(written) {
  const place = writing.querySelector("[data-text]");
  if (written.length <= place.textContent.length) return;
  writing.hidden = false;
  place.textContent = written;
}

function write({ text }) {
  const wasAtEnd = isAtEnd();
  writing.hidden = false;
  writing.querySelector("[data-text]").append(text);
  toEnd(wasAtEnd);
}

const stored = Object.fromEntries(STORED.map((name) => [name, refreshSoon]));
if (place) {
  refreshSoon();
  follow(`/ui/events?session_id=${encodeURIComponent(place.dataset.conversation)}`, {
    ...stored,
    "message.delta": write,
    "message.reset": clear,
    "message.completed": () => { clear(); refreshSoon(); },
    gap: refreshSoon,
  });
}

// ------------------------------------------------------------ reply

const form = document.querySelector("[data-reply]");
const text = form?.querySelector("textarea");
const list = form?.querySelector("[data-files]");

async function upload(file) {
  const row = document.createElement("li");
  row.textContent = `${file.name}: sending`;
  list.append(row);
  const body = new FormData();
  body.append("purpose", "user_data");
  body.append("file", file);
  const answer = await fetch("/ui/files", { method: "POST", body, headers: { "X-Hermes-Form-Token": formToken() } });
  const found = await answer.json();
  if (!answer.ok) {
    row.textContent = `${file.name}: ${found.error.message}`;
    return;
  }
  const input = document.createElement("input");
  Object.assign(input, { type: "hidden", name: "file", value: found.id });
  const remove = document.createElement("button");
  Object.assign(remove, { type: "button", textContent: "Remove", ariaLabel: `Remove ${file.name}` });
  remove.addEventListener("click", () => row.remove());
  row.replaceChildren(file.name, " ", remove, input);
}

async function send() {
  const button = form.querySelector("button.main");
  button.disabled = true;
  try {
    const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "follow" });
    if (!answer.ok) {
      const found = await answer.json();
      form.querySelector("#reply-hint").textContent = found.error.message;
      return;
    }
    const isCommand = answer.headers.get("Content-Type")?.startsWith("application/json");
    const said = isCommand ? await answer.json() : null;
    const moved = said ? said.place : new URL(answer.url).pathname;
    if (moved !== location.pathname) {
      location.href = moved;
      return;
    }
    text.value = "";
    list.replaceChildren();
    const place = form.querySelector("[data-said]");
    place.hidden = !said;
    place.textContent = said ? said.text : "";
    if (!said) form.querySelector("#reply-hint").textContent = "Sent.";
    refreshSoon();
  } finally {
    button.disabled = false;
    text.focus();
  }
}

if (form) {
  const attach = form.querySelector("[data-attach]");
  attach.hidden = false;
  attach.querySelector("input").addEventListener("change", ({ target }) => {
    for (const file of target.files) upload(file);
    target.value = "";
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
}
