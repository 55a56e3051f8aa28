// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows the jobs of pushbroomd. Texts come from files and are therefore set as text, never as HTML. Lists are loaded once;
// afterwards events change single jobs. Changes are drawn once a frame.
"use strict";

const jobs = new Map(); // id -> row
let order = []; // ids, newest first: an id begins with the time of its job
let info = null;
let reachable = true;
let message = "";
let loaded = false; // all rows are here
let view = "all";
let selected = null; // id
let shown = []; // rows of the list in its order
let pictures = 24;
let opened = null; // id of the job in the dialog
let openedAt = ""; // `updated` of its state there
let changed = true; // jobs changed since they were drawn

const VIEWS = [
  ["all", "All", () => true],
  ["accepted", "Waiting", (job) => job.status === "accepted"],
  ["running", "Running", (job) => job.status === "running"],
  ["failed", "Quarantine", (job) => job.status === "failed"],
  ["successful", "Done", (job) => job.status === "successful"],
];
const COLOURS = { successful: "good", failed: "bad", dismissed: "note", accepted: "note", running: "" };
const $ = (id) => document.getElementById(id);

// --- texts ---

// Characters that control a terminal or the direction of text are shown as a replacement.
function clean(text) {
  return String(text ?? "").replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, "\ufffd");
}

function bytes(n) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let u = 0;
  while (n >= 999.5 && u < units.length - 1) {
    n /= 1000;
    u++;
  }
  return (n < 9.95 && u > 0 ? n.toFixed(1) : n.toFixed(0)) + " " + units[u];
}

function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 100) return s + "s";
  if (s < 6000) return Math.floor(s / 60) + "m";
  return s < 360000 ? Math.floor(s / 3600) + "h" : Math.floor(s / 86400) + "d";
}

function ago(time) {
  return time ? span((Date.now() - Date.parse(time)) / 1000) : "";
}

// UTC, as everywhere in pushbroom.
function utc(time) {
  return time ? time.slice(0, 19).replace("T", " ") + " UTC" : "";
}

function count(n, one, many) {
  return n + " " + (n === 1 ? one : many);
}

// --- elements ---

// An element with attributes; children are elements or texts.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null).map((child) => (child instanceof Node ? child : clean(child))));
  return element;
}

function bar(percent, label) {
  const inner = make("i");
  inner.style.width = Math.min(100, Math.max(0, percent)) + "%";
  return make("div", { class: "bar", role: "progressbar", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": percent }, inner);
}

// A picture of products; a broken one disappears, with the link around it.
function picture(job, className) {
  if (!job.preview || !job.preview.startsWith("/products/")) return null;
  const image = make("img", { src: job.preview, alt: "Picture of " + clean(job.scene), loading: "lazy", decoding: "async", class: className });
  image.addEventListener("error", () => (image.parentElement?.tagName === "A" ? image.parentElement : image).remove());
  return image;
}

function place(job) {
  return (job.folder ? job.folder + "/" : "") + job.name;
}

// --- the head ---

function fact(label, value, className, title) {
  return make("div", { title }, make("dt", {}, label), make("dd", { class: className }, value));
}

function drawHead() {
  const counts = info ? info.jobs : {};
  const day = new Date().toISOString().slice(0, 10); // times of jobs have the same form
  let done = 0;
  let failed = 0;
  for (const job of jobs.values()) {
    if (!job.finished || job.finished < day) continue;
    done += job.status === "successful";
    failed += job.status === "failed";
  }
  const facts = [];
  if (info) {
    const slots = info.parallel_jobs || info.workers;
    facts.push(
      fact("Version", info.version),
      fact("Device", info.device),
      fact("Running", counts.running + (slots ? " of " + slots : "")),
      fact("Waiting", counts.accepted),
      fact("Done today", done, "good", "Since 00:00 UTC"),
      fact("Failed today", failed, failed ? "bad" : "", "Since 00:00 UTC"),
      fact("Inbox", info.inbox_waiting));
    if (info.space) {
      const scarce = info.space.free_bytes < info.space.bytes / 20;
      facts.push(fact("Free space", bytes(info.space.free_bytes), scarce ? "bad" : ""));
    }
  }
  $("facts").replaceChildren(...facts);
  document.title = info ? (info.troubles.length || !reachable ? "! " : "") + counts.running + " running, " + counts.accepted + " waiting - pushbroom" : "pushbroom";
}

let drawnTroubles = "";
let spokenTroubles = new Set(); // keys
function drawTroubles() {
  const found = [];
  if (!reachable) found.push({ key: "unreachable", code: "service.unreachable", message: message || "pushbroomd cannot be reached", hint: "This page continues by itself. See: systemctl status pushbroom" });
  if (info) {
    if (info.stopping) found.push({ key: "stopping", code: "service", message: "pushbroomd is stopping", hint: "Jobs are put back and continue at its next start." });
    if (info.draining) found.push({ key: "draining", code: "service", message: "pushbroomd takes no new job and no file (pushbroom drain)", hint: "It takes them again after: pushbroom drain --off" });
    found.push(...info.troubles.filter(({ key }) => key !== "refused"));
  }
  const text = JSON.stringify(found);
  if (text === drawnTroubles) return;
  drawnTroubles = text;
  // Readers speak the text of an alert when it changes: only new troubles are in it, not their counts.
  const news = found.filter(({ key }) => !spokenTroubles.has(key));
  spokenTroubles = new Set(found.map(({ key }) => key));
  if (news.length) $("alert").textContent = news.map((trouble) => clean(trouble.code + ": " + trouble.message)).join(". ");
  $("troubles").replaceChildren(...found.map(({ code, message: what, hint, since }) =>
    make("p", { class: "trouble" }, make("b", {}, code), " ", make("span", { class: "name" }, what),
      hint ? make("span", {}, make("br"), "To do: ", hint) : null,
      since ? make("span", { class: "note" }, " Since " + utc(since) + ".") : null)));
}

// --- what runs and what arrives ---

function speed(job) {
  return job.elapsed_ms > 0 ? bytes((job.bytes_read * 1000) / job.elapsed_ms) + "/s" : "";
}

function left(job) {
  const done = job.tiles_done;
  return done > 0 && done < job.tiles_total ? span((job.elapsed_ms / 1000) * (job.tiles_total / done - 1)) + " left" : "";
}

function drawRunning() {
  const [running, more] = newest((job) => job.status === "running", 24);
  const cards = running.reverse().map((job) =>
    make("li", {}, make("button", { type: "button", class: "name", "data-job": job.id, onclick: () => openJob(job.id) }, place(job)),
      bar(job.progress, "Progress of " + clean(job.name)),
      make("span", { class: "note" }, [job.progress + "%", job.stage, speed(job), left(job), job.pipeline, job.device].filter(Boolean).join(" \u00b7 "))));
  if (more) cards.push(make("li", { class: "note" }, count(more, "more job", "more jobs")));
  if (!running.length) cards.push(make("li", { class: "note" }, "No job runs."));
  keepFocus($("running"), cards);
}

// The newest failed jobs, each with its remedy.
function drawQuarantine() {
  const [failed, more] = newest((job) => job.status === "failed", 5);
  const cards = failed.map((job) =>
    make("li", {}, make("button", { type: "button", class: "name", "data-job": job.id, onclick: () => openJob(job.id) }, place(job)),
      make("span", { class: "bad name" }, job.error ? job.error.code + ": " + job.error.message : ""),
      job.error && job.error.hint ? make("span", { class: "note" }, make("br"), "To do: ", job.error.hint) : null));
  if (more) cards.push(make("li", {}, make("button", { type: "button", "data-job": "", onclick: () => show("failed") }, count(more, "more job", "more jobs"))));
  if (!failed.length) cards.push(make("li", { class: "note" }, "The quarantine is empty."));
  keepFocus($("quarantine"), cards);
}

// Replaces the content of a list; a button with the focus keeps it.
function keepFocus(list, content) {
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.job : undefined;
  list.replaceChildren(...content);
  if (focused !== undefined) list.querySelector('[data-job="' + CSS.escape(focused) + '"]')?.focus();
}

function stay(entry, word, className) {
  return make("li", {}, make("b", { class: className }, word), " ", make("span", { class: "name" }, entry.name), make("br"),
    make("span", { class: className }, entry.message), entry.hint ? make("span", { class: "note" }, make("br"), "To do: ", entry.hint) : null);
}

function drawArriving() {
  const cards = [];
  if (info) {
    if (info.inbox_settling)
      cards.push(make("li", {}, count(info.inbox_settling, "entry settles", "entries settle"), info.inbox_settled ? " until " + utc(info.inbox_settled) : ""));
    for (const set of info.gathering.slice(0, 10)) {
      const rest = (set.missing || "complete") + "; " + (set.expires ? "waits until " + utc(set.expires) : "waits");
      cards.push(make("li", {}, make("b", {}, "Gathers"), " ", make("span", { class: "name" }, set.scene), make("br"), make("span", { class: "note" }, rest)));
    }
    for (const entry of info.refused.slice(0, 10)) cards.push(stay(entry, "Refused", "bad"));
    for (const entry of info.foreign.slice(0, 10)) cards.push(stay(entry, "No pipeline", "warn"));
    const hidden = Math.max(0, info.gathering_sets - 10) + Math.max(0, info.inbox_refused - 10) + Math.max(0, info.inbox_foreign - 10);
    if (hidden) cards.push(make("li", { class: "note" }, count(hidden, "more entry", "more entries")));
  }
  if (!cards.length) cards.push(make("li", { class: "note" }, "Nothing arrives."));
  $("arriving").replaceChildren(...cards);
}

// --- the nodes that share the queue ---

function drawMachines() {
  const nodes = (info && info.nodes) || [];
  $("machines-zone").hidden = nodes.length < 2;
  if (nodes.length < 2) return;
  keepFocus($("machines"), nodes.map((node) => {
    const [running, more] = newest((job) => job.status === "running" && job.node === node.name, 8);
    const state = node.reports ? (node.draining ? "Drains \u00b7 " : "") + count(Math.max(node.running, running.length + more), "job runs", "jobs run") + " \u00b7 reported " + span(node.silent_s) + " ago" : "Does not report since " + span(node.silent_s) + ". Other nodes run its jobs.";
    return make("li", {}, make("b", { class: "name" }, node.name), node.name === info.node ? " (this page's)" : "", make("br"), make("span", { class: node.reports ? "note" : "bad" }, state),
      ...running.map((job) => make("button", { type: "button", class: "name", "data-job": "machine-" + job.id, onclick: () => openJob(job.id) }, place(job) + " \u00b7 " + job.progress + "%")));
  }));
}

// --- the list: only the rows in sight have elements ---

function filterRows() {
  const word = $("search").value.trim().toLowerCase();
  const fits = VIEWS.find(([name]) => name === view)[2];
  shown = [];
  for (const id of order) {
    const job = jobs.get(id);
    if (fits(job) && (!word || (place(job) + " " + job.pipeline + " " + job.id).toLowerCase().includes(word))) shown.push(job);
  }
  if (view === "accepted") shown.reverse().sort((a, b) => b.priority - a.priority); // the order in which they start
}

// Jobs of a state, newest first: at most `most` of them, and the number of the others.
function newest(fits, most) {
  const found = [];
  let more = 0;
  for (const id of order) {
    const job = jobs.get(id);
    if (!fits(job)) continue;
    if (found.length < most) found.push(job);
    else more++;
  }
  return [found, more];
}

function what(job) {
  if (job.error) return job.error.code + ": " + job.error.message;
  if (job.status === "running") return [job.pipeline, job.progress + "%", job.stage, speed(job), left(job)].filter(Boolean).join(" \u00b7 ");
  return [job.pipeline, job.priority ? "priority " + job.priority : "", job.attempts > 1 ? "attempt " + job.attempts : ""].filter(Boolean).join(" \u00b7 ");
}

function row(job, i, height) {
  const element = make("div", { class: "row", role: "option", id: "row-" + job.id, "aria-selected": String(job.id === selected), "aria-setsize": shown.length, "aria-posinset": i + 1,
    onclick: () => { select(job.id); openJob(job.id); } },
  make("span", { class: "name", title: clean(place(job)) }, place(job)),
  make("span", { class: "status " + COLOURS[job.status] }, job.status),
  make("span", { class: "what" + (job.error && job.status === "failed" ? " bad" : "") }, what(job)),
  make("span", { class: "when", title: utc(job.updated) }, ago(job.updated)));
  element.style.top = i * height + "px";
  return element;
}

function rowHeight() {
  return 3.6 * parseFloat(getComputedStyle(document.documentElement).fontSize);
}

function drawList() {
  const height = rowHeight();
  const list = $("list");
  list.hidden = shown.length === 0; // a hidden one has no height
  const first = Math.max(0, Math.floor(list.scrollTop / height) - 5);
  const end = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / height) + 5);
  $("rows").style.height = shown.length * height + "px";
  $("rows").replaceChildren(...shown.slice(first, end).map((job, i) => row(job, first + i, height)));
  const there = shown.some((job) => job.id === selected);
  if (there) list.setAttribute("aria-activedescendant", "row-" + selected);
  else list.removeAttribute("aria-activedescendant");
  $("empty").hidden = shown.length > 0;
  $("empty").textContent = !loaded ? "The jobs are being loaded." : jobs.size ? "There are no such jobs." : "No jobs yet. Deliver a scene: pushbroom put SCENE";
}

function select(id) {
  selected = id;
  const at = shown.findIndex((job) => job.id === id);
  const height = rowHeight();
  const list = $("list");
  if (at >= 0 && at * height < list.scrollTop) list.scrollTop = at * height;
  else if (at >= 0 && (at + 1) * height > list.scrollTop + list.clientHeight) list.scrollTop = (at + 1) * height - list.clientHeight;
  drawList();
  window.mapZone?.show();
}

function onListKey(event) {
  const page = Math.max(1, Math.floor($("list").clientHeight / rowHeight()) - 1);
  const at = shown.findIndex((job) => job.id === selected);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: shown.length - 1 }[event.key];
  if (event.key === "Enter" && at >= 0) openJob(selected);
  else if (to !== undefined && shown.length) select(shown[Math.min(shown.length - 1, Math.max(0, to))].id);
  else return;
  event.preventDefault();
}

function drawViews() {
  const counts = new Map(VIEWS.map(([name]) => [name, 0]));
  for (const job of jobs.values()) if (counts.has(job.status)) counts.set(job.status, counts.get(job.status) + 1);
  counts.set("all", jobs.size);
  for (const button of $("views").children) {
    button.textContent = button.dataset.label + " " + counts.get(button.dataset.view);
    button.setAttribute("aria-pressed", String(button.dataset.view === view));
  }
}

function show(name) {
  view = name;
  $("list").scrollTop = 0;
  changed = true;
  draw();
}

// --- pictures ---

let drawnPictures = "";
function drawGallery() {
  const [part, more] = newest((job) => job.status === "successful" && job.preview, pictures);
  const text = part.map((job) => job.id + job.updated).join();
  $("more").hidden = more === 0;
  if (text === drawnPictures && part.length) return;
  drawnPictures = text;
  const items = part.map((job) =>
    make("li", {}, make("button", { type: "button", "data-job": job.id, onclick: () => openJob(job.id) }, picture(job),
      make("span", { class: "name", title: clean(job.scene) }, job.scene), make("span", { class: "note" }, [job.pipeline, ago(job.finished)].filter(Boolean).join(" \u00b7 ")))));
  keepFocus($("gallery"), items.length ? items : [make("li", { class: "note" }, "No pictures yet. Pipelines with the product quicklook make them.")]);
}

// --- one job ---

// A value of JSON as elements: objects and lists open on a click.
function tree(value) {
  if (value === null) return document.createTextNode("-");
  if (typeof value !== "object") return document.createTextNode(clean(value));
  if (Array.isArray(value) && value.every((item) => typeof item !== "object")) return document.createTextNode(clean(value.join(", ")) || "-");
  const entries = Object.entries(value);
  if (!entries.length) return document.createTextNode("-");
  return make("dl", { class: "pairs" }, ...entries.flatMap(([key, item]) => [
    make("dt", {}, key),
    make("dd", {}, item !== null && typeof item === "object" && Object.keys(item).length > 0 && !(Array.isArray(item) && item.every((x) => typeof x !== "object"))
      ? make("details", {}, make("summary", {}, count(Object.keys(item).length, "entry", "entries")), tree(item)) : tree(item))]));
}

function pairs(list) {
  return make("dl", { class: "pairs" }, ...list.filter(([, value]) => value !== null && value !== undefined && value !== "").flatMap(([key, value]) => [make("dt", {}, key), make("dd", {}, value)]));
}

function errorOf(job) {
  if (!job.error) return null;
  const remedies = job.status === "failed" ? [make("br"), "In a terminal: ", make("code", {}, "pushbroom retry " + job.id), " computes it again, ", make("code", {}, "pushbroom quarantine drop " + job.id), " removes it."] : [];
  return make("p", { class: "trouble" }, make("b", {}, job.error.code), " ", make("span", { class: "name" }, job.error.message),
    job.error.hint ? make("span", {}, make("br"), "To do: ", job.error.hint) : null, ...remedies);
}

function productsOf(job) {
  if (!job.products.length) return null;
  return make("div", { class: "scroll" }, make("h3", {}, "Products"), make("table", {},
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Kind"), make("th", { scope: "col" }, "File"), make("th", { scope: "col", class: "number" }, "Size"))),
    make("tbody", {}, ...job.products.map((product) => make("tr", {}, make("td", {}, product.type),
      make("td", { class: "name" }, product.href ? make("a", { href: product.href, target: "_blank", rel: "noopener" }, product.path.split("/").pop()) : product.path, cogLink(job, product, "Show values")),
      make("td", { class: "number" }, bytes(product.bytes)))))));
}

// --- the events of one job ---

let lastSteps = { id: "", state: "", events: [], log: [] };

function alertWords(alert) {
  const place = alert.longitude === null ? "line " + alert.line + ", sample " + alert.sample
    : alert.latitude.toFixed(5) + ", " + alert.longitude.toFixed(5);
  return "Alert " + alert.number + (alert.name ? " of " + alert.name : "") + ": " + alert.band + " is " + alert.value + " at " + place;
}

function stepOf(event, i) {
  const where = [event.device, event.node].filter(Boolean).join(", ");
  const words = {
    "job.accepted": i === 0 ? "Submitted" : "Waits again",
    "job.running": "Started" + (event.attempts > 1 ? ", attempt " + event.attempts : "") + (where ? " on " + where : ""),
    "job.successful": "Done",
    "job.failed": "Failed",
    "job.dismissed": "Dismissed",
    "input.quarantined": "The input is in quarantine",
    "product.published": event.product && event.product.path ? "Published " + event.product.path.split("/").pop() : "Published a product",
    "alert.raised": event.alert ? alertWords(event.alert) : "Alert",
  }[event.event] || event.event;
  const error = event.event.startsWith("job.") ? event.error : null;
  return timeRow(event.time, { "job.failed": "bad", "alert.raised": "warn" }[event.event] || "", words + (error ? ": " + error.code + ": " + error.message : ""));
}

function timeTable(title, column, rows) {
  return rows.length ? [make("h3", {}, title), make("table", {}, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Time"), make("th", { scope: "col" }, column))), make("tbody", {}, ...rows))] : [];
}

function timeRow(time, className, words) {
  return make("tr", {}, make("td", { class: "time" }, utc(time)), make("td", { class: "words " + className }, words));
}

function lineOf(line) {
  return timeRow(line.time, { error: "bad", warning: "warn" }[line.level] || "", line.text);
}

function drawSteps() {
  const place = $("job-steps");
  if (!place || lastSteps.id !== opened) return;
  place.replaceChildren(...timeTable("Events", "Event", lastSteps.events.map(stepOf)), ...timeTable("Log of the service", "Line", [...lastSteps.events.flatMap((event) => event.log || []), ...lastSteps.log].map(lineOf)));
}

// Loads the events of the job in the dialog, unless its state is that of the last load.
async function loadSteps(job) {
  const state = job.status + job.attempts + job.input + job.products.length;
  drawSteps();
  if (lastSteps.id === job.id && lastSteps.state === state) return;
  try {
    const reply = await fetch("/api/jobs/" + encodeURIComponent(job.id) + "/events");
    const found = await reply.json();
    if (!reply.ok || opened !== job.id) return;
    lastSteps = { id: job.id, state, ...found };
    drawSteps();
  } catch {
    // the job is there without them
  }
}

function drawJob(job) {
  const dialog = $("job");
  const scroll = dialog.scrollTop;
  const parts = [
    make("div", { class: "head" }, make("h2", { id: "job-title", class: "name" }, place(job)), make("button", { type: "button", "data-job": "close", onclick: () => dialog.close(), autofocus: true }, "Close")),
    make("p", {}, make("b", { class: COLOURS[job.status] }, job.status), " ", job.status === "running" ? [job.progress + "%", job.stage, speed(job), left(job)].filter(Boolean).join(" \u00b7 ") : ""),
    window.actionZone?.of(job),
    job.status === "running" ? bar(job.progress, "Progress") : null, errorOf(job), cogPicture(job) || picture(job),
    pairs([["Job", job.id], ["Scene", job.scene], ["Pipeline", job.pipeline], ["Priority", job.priority], ["Attempts", job.attempts], ["Device", job.device], ["Node", job.node], ["Why there", job.device_why],
      ["Acquired", utc(job.datetime)], ["Arrived", utc(job.created)], ["Started", utc(job.started)], ["Finished", utc(job.finished)],
      ["Read", job.bytes_read ? bytes(job.bytes_read) : ""], ["Input", job.input], ["Products in", job.directory], ["West, south, east, north", job.bbox ? job.bbox.join(", ") : ""],
      ["Replaces", job.replaces], ["Again of", job.again_of], ["Archive", job.archive]]),
    productsOf(job),
    make("div", { id: "job-steps" }),
    job.report ? make("h3", {}, "Report") : null, job.report ? tree(job.report) : null];
  keepFocus(dialog, parts.filter(Boolean));
  loadSteps(job);
  dialog.scrollTop = scroll;
}

async function openJob(id) {
  if (opened !== id) openedAt = "";
  opened = id;
  const dialog = $("job");
  let ok = false;
  let job = { error: { code: "", message: "pushbroom-web does not answer" } };
  try {
    const reply = await fetch("/api/jobs/" + encodeURIComponent(id));
    job = await reply.json();
    ok = reply.ok;
  } catch {
    if (dialog.open) return; // with the job as it was
  }
  if (opened !== id || (ok && dialog.open && job.updated < openedAt)) return; // answers may overtake each other
  openedAt = ok ? job.updated : "";
  if (ok) drawJob(job);
  else dialog.replaceChildren(make("div", { class: "head" }, make("h2", { id: "job-title" }, id), make("button", { type: "button", onclick: () => dialog.close() }, "Close")),
    make("p", { class: "trouble" }, make("b", {}, job.error.code), " ", job.error.message));
  if (!dialog.open) dialog.showModal();
}

// --- data ---

function addToOrder(id) {
  let low = 0;
  let high = order.length;
  if (!high || id < order[high - 1]) low = high; // lists arrive newest first
  while (low < high) {
    const middle = (low + high) >> 1;
    if (order[middle] > id) low = middle + 1;
    else high = middle;
  }
  order.splice(low, 0, id);
}

// Keeps a job unless a newer state of it is known.
function keep(job) {
  const known = jobs.get(job.id);
  if (known && known.updated > job.updated) return;
  jobs.set(job.id, job);
  if (!known) addToOrder(job.id);
  changed = true;
  if (known && known.status !== job.status && (job.status === "failed" || job.status === "successful")) $("spoken").textContent = clean(job.name) + ": " + job.status;
  if (opened === job.id && $("job").open && (!known || known.status !== job.status || known.progress !== job.progress)) openJob(job.id);
  draw();
}

let loading = 0;
let timer = 0;

// Loads later, unless that is planned already.
function loadIn(milliseconds) {
  timer = timer || setTimeout(load, milliseconds);
}

async function load() {
  const own = ++loading; // a later call replaces this one
  clearTimeout(timer);
  timer = 0;
  const known = [...jobs.keys()];
  const seen = new Set();
  let before = "";
  loaded = false;
  try {
    info = await (await fetch("/api/info")).json();
    if (info.error) {
      message = info.error.message;
      info = null;
    }
    for (;;) {
      const reply = await fetch("/api/jobs?limit=" + (before ? 500 : 100) + (before ? "&before=" + before : ""));
      const list = await reply.json();
      if (own !== loading) return;
      if (!reply.ok) {
        loadIn(2000);
        return;
      }
      for (const job of list.jobs) {
        seen.add(job.id);
        keep(job);
      }
      if (!list.jobs.length) break;
      before = list.jobs[list.jobs.length - 1].id;
    }
  } catch {
    if (own === loading) loadIn(2000);
    return;
  }
  for (const id of known) if (!seen.has(id)) jobs.delete(id); // forgotten by the service
  order = order.filter((id) => jobs.has(id));
  loaded = true;
  changed = true;
  draw();
}

function watch() {
  const source = new EventSource("/events");
  const on = (kind, then) => source.addEventListener(kind, (event) => then(JSON.parse(event.data)));
  on("hello", (hello) => {
    const returned = !reachable && hello.reachable;
    reachable = hello.reachable;
    message = hello.message || "";
    if (returned) loadIn(3000 * Math.random()); // not all browsers at once
    else if (!loaded) load();
    draw();
  });
  on("reset", () => loadIn(3000 * Math.random()));
  on("job", keep);
  on("info", (news) => {
    info = news;
    draw();
  });
  source.addEventListener("error", () => {
    reachable = false;
    message = "pushbroom-web does not answer";
    draw();
    if (source.readyState === EventSource.CLOSED) setTimeout(watch, 2000);
  });
}

let waiting = false;
function draw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    if (changed) {
      changed = false;
      filterRows();
      drawViews();
      drawRunning();
      drawQuarantine();
      drawGallery();
      window.mapZone?.draw();
    }
    window.actionZone?.onInfo(info);
    drawHead();
    drawTroubles();
    drawArriving();
    drawMachines();
    window.streamZone?.draw(info);
    drawList();
  });
}

// --- start ---

function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  $("theme").textContent = "Theme: " + theme;
  localStorage.setItem("theme", theme);
}

function start() {
  const themes = ["system", "light", "dark"];
  setTheme(themes.includes(localStorage.getItem("theme")) ? localStorage.getItem("theme") : "system");
  $("theme").addEventListener("click", () => setTheme(themes[(themes.indexOf(localStorage.getItem("theme")) + 1) % 3]));
  for (const [name, label] of VIEWS)
    $("views").append(make("button", { type: "button", "data-view": name, "data-label": label, onclick: () => show(name) }, label));
  const again = () => {
    changed = true;
    draw();
  };
  $("search").addEventListener("input", again);
  $("list").addEventListener("scroll", draw, { passive: true });
  $("list").addEventListener("keydown", onListKey);
  $("list").addEventListener("focus", () => {
    if (!shown.some((job) => job.id === selected) && shown.length) select(shown[0].id);
  });
  $("more").addEventListener("click", () => {
    pictures += 24;
    again();
  });
  $("job").addEventListener("close", () => { opened = null; });
  addEventListener("resize", draw);
  addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement.tagName !== "INPUT") {
      event.preventDefault();
      $("search").focus();
    }
  });
  setInterval(again, 30000); // ages
  setInterval(load, 600000); // no event says that the service forgot a job
  watch();
  draw();
}

start();
