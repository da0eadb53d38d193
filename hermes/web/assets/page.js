// What all pages share: the theme switch, local times, confirmations, and live parts.

const root = document.documentElement;

export const formToken = () => document.querySelector('meta[name="form-token"]')?.content ?? "";

export function showTimes(within) {
  for (const time of within.querySelectorAll("time[datetime]:not([data-local])")) {
    const at = new Date(time.dateTime);
    const isToday = at.toDateString() === new Date().toDateString();
    time.title = time.textContent;
    time.textContent = isToday ? at.toLocaleTimeString() : at.toLocaleString();
    time.dataset.local = "";
  }
}

export function showConnection(text) {
  const place = document.querySelector("[data-connection]");
  if (place && place.textContent !== text) place.textContent = text;
}

/** Replaces the content of an element. Open folds stay open, and the focus and what was typed stay. */
export function replaceContent(element, html) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  for (const fold of element.querySelectorAll("details[open][id]")) {
    parsed.getElementById(fold.id)?.setAttribute("open", "");
  }
  const active = element.contains(document.activeElement) ? document.activeElement.id : "";
  const typed = [...element.querySelectorAll("input[id], textarea[id]")].map((input) => [input.id, input.value]);
  const scrolled = [...element.querySelectorAll("pre[id]")].map((pre) => [pre.id, pre.scrollTop]);
  showTimes(parsed);
  element.replaceChildren(...parsed.body.childNodes);
  for (const [id, value] of typed) {
    const input = document.getElementById(id);
    if (input) input.value = value;
  }
  for (const [id, top] of scrolled) {
    const pre = document.getElementById(id);
    if (pre) pre.scrollTop = top;
  }
  if (active) document.getElementById(active)?.focus();
}

/** Follows a stream while the page is visible. `on` has a function for each event name. */
export function follow(address, on) {
  let source = null;
  let last = "";
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(last ? `${address}${address.includes("?") ? "&" : "?"}after=${last}` : address);
    source.onopen = () => showConnection("live");
    source.onerror = () => {
      showConnection("connecting again");
      if (source.readyState !== EventSource.CLOSED) return;
      source = null;
      setTimeout(openAgain, 5000);
    };
    for (const [name, act] of Object.entries(on)) {
      source.addEventListener(name, (event) => {
        if (event.lastEventId) last = event.lastEventId;
        act(JSON.parse(event.data), event);
      });
    }
  };
  const openAgain = async () => {
    const answer = await fetch("/ui/samples", { method: "HEAD" }).catch(() => null);
    if (answer?.status === 401) location.reload(); // the login has ended
    else open();
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      source?.close();
      source = null;
    } else open();
  });
  open();
}

document.querySelector("[data-theme-switch]")?.addEventListener("click", () => {
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("hermes-theme", root.dataset.theme);
});

document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});

showTimes(document);
for (const part of document.querySelectorAll("[data-live]")) {
  follow(part.dataset.live, { part: ({ html }) => replaceContent(part, html) });
}
