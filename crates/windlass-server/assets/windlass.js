// The dashboard's script: live content, actions, keys. Everything that is shown is drawn by the server; this
// script only puts it in place.

const EVERY_MS = 2000;
const prefix = document.body.dataset.prefix;
const main = document.querySelector("main");
const $ = (id) => document.getElementById(id);

// ---- Times: relative to now, with the exact one in the viewer's zone as the title. ----

const STEPS = [[60, "s", 1], [3600, "min", 60], [86400, "h", 3600], [Infinity, "d", 86400]];

function relative(at) {
  const seconds = Math.round((Date.now() - at) / 1000);
  const age = Math.abs(seconds);
  const [, unit, size] = STEPS.find(([limit]) => age < limit);
  const amount = `${Math.floor(age / size)} ${unit}`;
  if (age < 2) return "now";
  return seconds < 0 ? `in ${amount}` : `${amount} ago`;
}

function tellTimes() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = Date.parse(time.dateTime);
    if (Number.isNaN(at)) continue;
    const text = relative(at);
    if (time.textContent !== text) time.textContent = text;
    if (!time.dataset.told) {
      time.title = `${new Date(at).toLocaleString()} (${time.dateTime})`;
      time.dataset.told = "1";
    }
  }
}

// ---- New content in the place of the old, without moving what the viewer reads. ----

const keyOf = (node) => node.nodeType === 1 ? node.dataset.key || node.dataset.keep || node.id || "" : "";

function alike(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
}

function sameAttributes(from, to) {
  for (const { name, value } of [...to.attributes]) {
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && name !== "data-told" && name !== "open" && name !== "aria-selected") from.removeAttribute(name);
  }
}

function morph(from, to) {
  if (from.nodeType === 3) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  if (from.nodeType !== 1 || from.hasAttribute("data-keep")) return;
  if (from.localName === "time" && from.dateTime === to.dateTime) return;
  if (from.localName === "input") return;
  const here = from.classList.contains("here");
  if (from.localName === "time") delete from.dataset.told;
  sameAttributes(from, to);
  from.classList.toggle("here", here);
  if (from.hasAttribute("data-list")) morphList(from, to);
  else morphChildren(from, to);
}

function morphChildren(from, to) {
  const keyed = new Map([...from.children].filter(keyOf).map((child) => [keyOf(child), child]));
  let place = from.firstChild;
  for (const next of [...to.childNodes]) {
    const key = keyOf(next);
    let mine = key ? keyed.get(key) : place;
    if (mine && !alike(mine, next)) mine = null;
    if (!mine) {
      from.insertBefore(document.importNode(next, true), place);
      continue;
    }
    if (mine !== place) from.insertBefore(mine, place);
    else place = place.nextSibling;
    morph(mine, next);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

// Rows of a list stay where they are. Rows that left are dimmed; new rows wait for the viewer's wish.
let waiting = null;

function morphList(from, to) {
  const fresh = new Map([...to.children].map((row) => [keyOf(row), row]));
  let arrived = fresh.size;
  for (const row of from.children) {
    const next = fresh.get(keyOf(row));
    row.classList.toggle("left", !next);
    if (!next) continue;
    arrived -= 1;
    morph(row, next);
  }
  waiting = arrived > 0 ? to : null;
  let notice = $("arrived");
  if (!waiting) return notice?.remove();
  if (!notice) {
    notice = document.createElement("p");
    notice.id = "arrived";
    notice.className = "fresh";
    notice.dataset.keep = "arrived";
    notice.append(document.createElement("button"));
    notice.firstChild.type = "button";
    notice.firstChild.addEventListener("click", () => showArrived(from));
    from.closest(".scroll").before(notice);
  }
  notice.firstChild.textContent = `${arrived} new: show`;
}

function showArrived(list) {
  if (!waiting) return;
  const old = new Map([...list.children].map((row) => [keyOf(row), row]));
  list.replaceChildren(...[...waiting.children].map((row) => old.get(keyOf(row)) ?? document.importNode(row, true)));
  waiting = null;
  $("arrived")?.remove();
  tellTimes();
}

// ---- The page asks for its own content, again and again while it is seen. ----

let tag = "";
let asking = false;

async function refresh(fresh) {
  if (asking && !fresh) return;
  asking = true;
  try {
    const headers = { "windlass-fragment": "1" };
    if (tag) headers["if-none-match"] = tag;
    if (fresh) headers["windlass-fresh"] = "1";
    const response = await fetch(location.pathname + location.search, { headers, cache: "no-store", redirect: "manual" });
    if (response.status === 401) return location.assign(`${prefix}/login?next=${encodeURIComponent(here())}`);
    $("lost").hidden = response.status < 500;
    if (response.status === 304) return;
    const html = await response.text();
    if (!response.ok && response.status >= 500) return;
    tag = response.headers.get("etag") ?? "";
    const title = response.headers.get("windlass-title");
    if (title) document.title = `${decodeURIComponent(title)} · Windlass`;
    const next = new DOMParser().parseFromString(html, "text/html").body;
    // Content in a list that was left and came back keeps its notice.
    const notice = $("arrived");
    notice?.remove();
    morphChildren(main, next);
    tellTimes();
    tellPicks();
  } catch {
    $("lost").hidden = false;
  } finally {
    asking = false;
  }
}

const here = () => location.pathname.slice(prefix.length) + location.search;

// ---- Calls of the API. ----

function toast(text, bad, ...more) {
  const note = document.createElement("div");
  note.className = bad ? "toast bad" : "toast";
  note.append(text, ...more);
  $("toasts").append(note);
  setTimeout(() => note.remove(), bad ? 12000 : 5000);
}

async function call(method, url, body) {
  const response = await fetch(url, {
    method,
    headers: { "content-type": "application/json" },
    body: method === "GET" ? undefined : JSON.stringify(body ?? {}),
  });
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const { message = `The server answered ${response.status}`, hint } = answer.error ?? {};
  throw new Error(hint ? `${message}. ${hint}` : message);
}

// What a call has done, from its answer, in a sentence.
function report(answer) {
  if (answer.cancelled?.matched !== undefined) return `${answer.cancelled.changed} cancelled, ${answer.removed.changed} removed.`;
  if (typeof answer.matched === "number") {
    const refused = answer.refused ? `, ${answer.refused} could not be changed` : "";
    return `${answer.changed} of ${answer.matched} changed${refused}.${answer.more ? " There are more: do it again." : ""}`;
  }
  return (answer.warnings ?? [])[0] ?? "Done.";
}

// What the purge of a queue would do, from its dry run.
function would({ cancelled, removed }) {
  const many = ({ matched, more }) => `${more ? "at least " : ""}${matched}`;
  return `It would cancel ${many(cancelled)} tasks and remove ${many(removed)} dead ones.`;
}

function ask(title, fill) {
  const dialog = $("ask");
  $("ask-title").textContent = title;
  $("ask-body").replaceChildren(...fill);
  dialog.showModal();
  return new Promise((resolve) => {
    const end = (yes) => { dialog.close(); resolve(yes); };
    $("ask-yes").onclick = () => end(true);
    $("ask-no").onclick = () => end(false);
    dialog.oncancel = () => resolve(false);
  });
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// A secret that the server shows only now. It leaves the page with its dialog.
function showSecret(secret) {
  const dialog = element("dialog", "", { id: "secret", "aria-labelledby": "secret-title" });
  const copy = element("button", "Copy", { type: "button", "data-copy": secret });
  const place = element("div", "", { class: "copy" });
  const actions = element("div", "", { class: "actions" });
  place.append(element("code", secret), copy);
  actions.append(element("button", "I have kept it", { type: "button", class: "main", "data-close": "" }));
  dialog.append(element("h2", "The new token", { id: "secret-title" }), element("p", "Keep it now: it is not shown again."), place, actions);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

// What an element says that it does. A live update may change the element while a dialog or a call is open, so
// a copy is made before the first wait: the action is the one that the viewer saw.
const said = (element) => ({ ...element.dataset });

async function act(source, { call: method, url, then, open, secret }, body) {
  try {
    const answer = await call(method, url, body);
    if (then) return location.assign(then);
    if (open && answer.id) return location.assign(open + answer.id);
    if (answer.action) toast(`Run ${answer.id} has started. `, false, element("a", "See its progress", { href: `${prefix}/runs` }));
    else if (secret) {
      source.reset();
      showSecret(answer[secret]);
    } else toast(report(answer));
    source.closest("details")?.removeAttribute("open");
  } catch (error) {
    toast(error.message, true);
  }
  await refresh(true);
}

async function press(button) {
  const data = said(button);
  const body = JSON.parse(data.body ?? "{}");
  if (body.filter?.ids) body.filter.ids = picks().map((box) => box.dataset.pick);
  const fill = [];
  let over = null;
  if ("dry" in data) {
    try {
      const answer = await call(data.call, data.url, { ...body, dry_run: true });
      fill.push(element("p", would(answer)));
    } catch (error) {
      return toast(error.message, true);
    }
  }
  if (body.filter) {
    // An action on many says first how many, and names a few.
    try {
      const { matched, more, sample } = await call(data.call, data.url, { ...body, dry_run: true });
      fill.push(element("p", `${more ? "At least " : ""}${matched} tasks match.`));
      fill.push(...(sample ?? []).map(({ id, kind, queue, state }) => element("div", `${id} ${kind} (${queue}, ${state})`, { class: "mono small" })));
    } catch (error) {
      return toast(error.message, true);
    }
    over = element("input", "", { type: "number", name: "over", min: "0", step: "any", value: "0" });
    const label = element("label", "Spread over so many minutes; 0 for at once", { class: "spread" });
    label.append(over);
    fill.push(label);
  }
  if (data.ask && !await ask(data.ask, fill)) return;
  if (over) body.over_ms = Math.max(0, Math.round(Number(over.value) * 60000)) || 0;
  button.disabled = true;
  try { await act(button, data, body); } finally { button.disabled = false; }
}

// Fields of a form as JSON; each says by data-kind how it is meant.
function fields(form) {
  const body = JSON.parse(form.dataset.body ?? "{}");
  for (const field of form.elements) {
    if (!field.name) continue;
    const { kind } = field.dataset;
    if (kind === "json") body[field.name] = JSON.parse(field.value);
    else if (kind === "word") { if (field.checked) (body[field.name] ??= []).push(field.value); }
    else if (kind === "words") body[field.name] = field.value.split(",").map((word) => word.trim()).filter(Boolean);
    else if (kind === "days") { if (field.value) body[field.name] = Number(field.value) * 86400000; }
    else if (kind === "text-or-none") { if (field.value) body[field.name] = field.value; }
    else if (kind === "number") body[field.name] = Number(field.value);
    else if (kind === "number-or-null") body[field.name] = field.value === "" ? null : Number(field.value);
    else body[field.name] = field.value;
  }
  return body;
}

// The page after the login. A link may name any address there, also one that a browser reads differently from
// how it looks ("/\t/host"): only a page of this server below its prefix is opened, as the browser reads it.
function landing(next) {
  const home = new URL(`${prefix}/`, location.origin);
  const to = next.startsWith("/") && URL.canParse(prefix + next, location.origin) ? new URL(prefix + next, location.origin) : home;
  return to.origin === location.origin && to.pathname.startsWith(home.pathname) ? to.href : home.href;
}

async function login(form) {
  try {
    await call("POST", form.dataset.url, fields(form));
    location.assign(landing(new URLSearchParams(location.search).get("next") ?? "/"));
  } catch (error) {
    toast(error.message, true);
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  event.preventDefault();
  if (form.id === "login") return login(form);
  if (form.hasAttribute("data-navigate")) {
    const chosen = [...new FormData(form)].filter(([, value]) => value !== "");
    return location.assign(`${form.getAttribute("action")}?${new URLSearchParams(chosen)}`);
  }
  try {
    act(form, said(form), fields(form));
  } catch {
    toast("That is not JSON.", true);
  }
});

// Rows that the viewer has selected.
const picks = () => [...document.querySelectorAll("input[data-pick]:checked")];

function tellPicks() {
  if (!$("picked")) return;
  $("picked").hidden = picks().length === 0;
  $("picked-count").textContent = picks().length;
}

document.addEventListener("change", (event) => {
  if (event.target.dataset.pick) tellPicks();
});

async function show(button) {
  const place = $("shown");
  const { url, show: part } = said(button);
  try {
    const value = (await call("GET", url))[part];
    place.replaceChildren(element("pre", typeof value === "string" ? value : JSON.stringify(value, null, 2), { tabindex: "0" }));
  } catch (error) {
    toast(error.message, true);
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const { copy, call: method, show: part } = button.dataset;
  if (copy !== undefined) navigator.clipboard.writeText(copy).then(() => toast("Copied."), () => toast("The browser does not allow copying.", true));
  else if (part) show(button);
  else if ("close" in button.dataset) button.closest("dialog").close();
  else if (method && button.type === "button") press(button);
});

// A form for a changed payload is filled when it is opened.
document.addEventListener("toggle", async (event) => {
  const field = event.target.open && event.target.querySelector("[data-load]");
  if (!field || field.value) return;
  try {
    field.value = JSON.stringify((await call("GET", field.dataset.load)).payload, null, 2);
  } catch (error) {
    toast(error.message, true);
  }
}, true);

// ---- Keys. ----

const rows = () => [...document.querySelectorAll("main tbody tr")].filter((row) => row.querySelector("a"));

function move(by) {
  const all = rows();
  if (!all.length) return;
  const old = all.findIndex((row) => row.classList.contains("here"));
  const next = all[Math.max(0, Math.min(all.length - 1, old < 0 ? 0 : old + by))];
  all[old]?.classList.remove("here");
  next.classList.add("here");
  next.querySelector("a").focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

const KEYS = {
  "/": () => document.querySelector("main input:not([type=checkbox]), main select")?.focus(),
  j: () => move(1),
  k: () => move(-1),
  x: () => document.querySelector("tr.here input[type=checkbox]")?.click(),
  a: () => {
    const action = ":is(button, summary, a)";
    const first = picks().length ? $("picked").querySelector(action) : (document.querySelector("tr.here") ?? main).querySelector(`.actions ${action}`);
    first?.focus();
  },
  g: () => document.querySelector(".side nav a")?.focus(),
  "?": () => $("keys").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.matches("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const action = KEYS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

// ---- Start. ----

tellTimes();
// From here on the page follows the server, and its buttons work.
document.body.dataset.ready = "";
setInterval(() => { if (!document.hidden) tellTimes(); }, 1000);
if (main.hasAttribute("data-live")) {
  setInterval(() => { if (!document.hidden) refresh(false); }, EVERY_MS);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(false); });
}
