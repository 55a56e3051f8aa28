// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Draws the history of the service (/api/graphs) as SVG. All graphs have one time axis and one cursor. Slots without samples
// are grey and no line passes them. Uses page.js.
"use strict";

(() => {
  const SPANS = [["hour", "Hour", 20], ["day", "Day", 120], ["week", "Week", 600]]; // seconds between loads
  const TIME_STEPS = [600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800];
  const DELAY_STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800];
  let span = "hour";
  let past = null; // the reply
  let cursor = -1; // slot under the cursor; -1 = the newest with samples
  let graphs = []; // what was drawn: its parts that follow the cursor
  let timer = 0;

  // --- numbers ---

  function short(n) {
    return n === 0 ? "0" : n < 0.0995 ? n.toPrecision(1) : n < 9.95 ? String(Number(n.toFixed(1))) : Math.round(n).toLocaleString("en");
  }

  function delay(s) {
    for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]]) if (s >= length) return short(s / length) + " " + unit;
    return short(s) + " s";
  }

  function percent(share) {
    return Math.round(share * 100) + " %";
  }

  // The step of about four marks up to the largest value: 1, 2 or 5 times a power of ten, or one of a list.
  function stepOf(most, steps) {
    const least = most / 4;
    const listed = steps && steps.find((step) => step >= least);
    if (listed) return listed;
    const power = 10 ** Math.floor(Math.log10(least));
    return power * [1, 2, 5, 10].find((n) => n * power >= least * 0.999);
  }

  function clock(slot, long) {
    const text = new Date((past.first_s + slot * past.slot_s) * 1000).toISOString();
    return long ? (span === "hour" ? "" : text.slice(0, 10) + " ") + text.slice(11, span === "hour" ? 19 : 16) + " UTC" : text.slice(11, 16);
  }

  function mark(seconds, step) {
    const date = new Date(seconds * 1000);
    return step < 86400 ? date.toISOString().slice(11, 16) : date.toLocaleDateString("en", { day: "numeric", month: "short", timeZone: "UTC" });
  }

  // --- what is drawn ---

  function rates(values, seconds) {
    return values.map((n, i) => (n === null || !past.covered_s[i] ? null : (n * seconds) / past.covered_s[i]));
  }

  // Graphs with the words of a value, the steps of their axis, and lines: a name, a colour, values, and how they are drawn.
  function describe() {
    const [unit, seconds] = span === "hour" ? ["/min", 60] : ["/h", 3600];
    const stages = Object.entries(past.thread_share).map(([name, values], i) => [name, ["blue", "amber", "red", "soft"][i], values, "dashed"]);
    return [
      { title: "Scenes", words: (n) => short(n) + unit, lines: [["done", "green", rates(past.done, seconds)], ["failed", "red", rates(past.failed, seconds), "spots"]] },
      { title: "Data", words: (n) => bytes(n) + "/s", lines: [["read", "blue", rates(past.read_bytes, 1)], ["written", "green", rates(past.written_bytes, 1)]] },
      { title: "Delivery to product", steps: DELAY_STEPS, words: delay, lines: [["half within", "blue", past.p50_s], ["99 % within", "amber", past.p99_s]] },
      { title: "Jobs", whole: true, words: short, lines: [["waiting", "amber", past.waiting], ["running", "blue", past.running]] },
      { title: "CPU and time of threads", most: 1, steps: [0.25], words: percent, lines: [["CPU", "green", past.cpu_share], ...stages] },
    ];
  }

  function svg(tag, attributes, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  // Runs of slots for which the values are, or are not, null: [first, end].
  function runs(values, isNull) {
    const found = [];
    for (let i = 0; i < values.length; i++) {
      if ((values[i] === null) !== isNull) continue;
      if (i > 0 && found.length && found[found.length - 1][1] === i) found[found.length - 1][1] = i + 1;
      else found.push([i, i + 1]);
    }
    return found;
  }

  function drawLine(all, x, y, colour, how) {
    const values = how === "spots" ? all.map((n) => n || null) : all; // rare events: a line at 0 would hide the others
    const parts = [];
    let path = "";
    for (const [first, end] of runs(values, false)) {
      if (end - first === 1) parts.push(svg("circle", { cx: x(first), cy: y(values[first]), r: 2, class: "fill " + colour }));
      else for (let i = first; i < end; i++) path += (i === first ? "M" : "L") + x(i).toFixed(1) + " " + y(values[i]).toFixed(1);
    }
    if (path) parts.push(svg("path", { d: path, class: "line " + colour + (how === "dashed" ? " dashed" : "") }));
    return parts;
  }

  function drawAxes(graph, box, most, step) {
    const parts = [];
    for (let value = 0; value <= most * 1.001; value += step) {
      const y = box.y(value);
      parts.push(svg("line", { x1: box.left, x2: box.right, y1: y, y2: y, class: "grid" }));
      parts.push(svg("text", { x: box.left - 6, y: y + 4, "text-anchor": "end" }, graph.words(value)));
    }
    const length = past.slots * past.slot_s;
    const places = Math.max(2, Math.floor((box.right - box.left) / (5 * box.em)));
    const every = TIME_STEPS.find((seconds) => length / seconds <= places) || 2 * 86400;
    for (let at = Math.ceil(past.first_s / every) * every; at <= past.first_s + length; at += every) {
      const x = box.x((at - past.first_s) / past.slot_s - 0.5);
      parts.push(svg("line", { x1: x, x2: x, y1: box.bottom, y2: box.bottom + 4, class: "tick" }));
      const edge = x > box.right - 1.5 * box.em ? "end" : x < box.left + box.em ? "start" : "middle";
      parts.push(svg("text", { x, y: box.bottom + 1.25 * box.em, "text-anchor": edge }, mark(at, every)));
    }
    return parts;
  }

  function drawGraph(graph, width) {
    const em = 0.75 * parseFloat(getComputedStyle(document.documentElement).fontSize);
    const height = 13 * em;
    const values = graph.lines.flatMap(([, , list]) => list.filter((n) => n !== null));
    const highest = graph.most || Math.max(0, ...values) || (graph.whole ? 4 : 1);
    const step = Math.max(stepOf(highest, graph.steps), graph.whole ? 1 : 0);
    const most = Math.ceil(highest / step - 0.001) * step;
    const box = { em, left: 5.2 * em, right: width - 0.5 * em, top: 0.8 * em, bottom: height - 1.8 * em };
    box.x = (slot) => box.left + ((slot + 0.5) / past.slots) * (box.right - box.left);
    box.y = (value) => box.bottom - (value / most) * (box.bottom - box.top);
    const half = (box.right - box.left) / past.slots / 2;
    const gaps = runs(past.covered_s, true).map(([first, end]) =>
      svg("rect", { x: box.x(first) - half, width: box.x(end - 1) - box.x(first) + 2 * half, y: box.top, height: box.bottom - box.top, class: "gap" }));
    const line = svg("line", { y1: box.top, y2: box.bottom, class: "cursor" });
    const dots = graph.lines.map(([, colour]) => svg("circle", { r: 3.5, class: "fill " + colour }));
    const picture = svg("svg", { width, height, viewBox: "0 0 " + width + " " + height, role: "slider", tabindex: 0, "aria-label": graph.title, "aria-valuemin": 0, "aria-valuemax": past.slots - 1 },
      ...gaps, ...drawAxes(graph, box, most, step), ...graph.lines.map(([, colour, list, how]) => drawLine(list, box.x, box.y, colour, how)).reverse().flat(), line, ...dots);
    picture.addEventListener("pointermove", (event) => moveTo(Math.floor(((event.clientX - picture.getBoundingClientRect().left - box.left) / (box.right - box.left)) * past.slots)));
    picture.addEventListener("pointerleave", () => moveTo(-1));
    picture.addEventListener("blur", () => moveTo(-1));
    picture.addEventListener("keydown", onKey);
    const legend = make("p", { class: "legend" });
    const time = make("span", { class: "note" });
    const shown = graph.lines.map(([name, colour]) => make("span", { class: "value " + colour }, name + " ", make("b")));
    legend.append(...shown);
    return { graph, box, line, dots, picture, time, shown, element: make("figure", {}, make("figcaption", {}, graph.title, time), legend, picture) };
  }

  // --- the cursor ---

  function newest() {
    let slot = past.slots - 1;
    while (slot > 0 && past.covered_s[slot] === null) slot--;
    return slot;
  }

  function onKey(event) {
    const at = cursor < 0 ? newest() : cursor;
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, PageUp: at - 15, PageDown: at + 15, Home: 0, End: past.slots - 1, Escape: -1 }[event.key];
    if (to === undefined) return;
    moveTo(to < 0 && event.key !== "Escape" ? 0 : to);
    event.preventDefault();
  }

  function moveTo(slot) {
    cursor = Math.min(past.slots - 1, Math.max(-1, slot));
    const at = cursor < 0 ? newest() : cursor;
    for (const { graph, box, line, dots, picture, time, shown } of graphs) {
      line.setAttribute("visibility", cursor < 0 ? "hidden" : "visible");
      line.setAttribute("x1", box.x(at));
      line.setAttribute("x2", box.x(at));
      const words = graph.lines.map(([, , values]) => (past.covered_s[at] === null ? "unknown" : values[at] === null ? "-" : graph.words(values[at])));
      graph.lines.forEach(([, , values], i) => {
        dots[i].setAttribute("visibility", cursor < 0 || values[at] === null ? "hidden" : "visible");
        dots[i].setAttribute("cx", box.x(at));
        dots[i].setAttribute("cy", box.y(values[at] || 0));
        shown[i].lastChild.textContent = words[i];
      });
      time.textContent = clock(at, true);
      picture.setAttribute("aria-valuenow", at);
      picture.setAttribute("aria-valuetext", clock(at, true) + ": " + graph.lines.map(([name], i) => name + " " + words[i]).join(", "));
    }
  }

  // --- the zone ---

  function summary() {
    const all = past.all;
    const parts = [short(all.done) + (all.done === 1 ? " scene" : " scenes") + " done, " + short(all.failed) + " failed", bytes(all.read_bytes) + " read, " + bytes(all.written_bytes) + " written"];
    if (all.p50_s !== null) parts.push("half of the products within " + delay(all.p50_s) + " of the delivery, 99 % within " + delay(all.p99_s));
    const [part, share] = Object.entries(all.thread_share).reduce((most, entry) => (entry[1] > most[1] ? entry : most), ["", 0]);
    if (share > 0) parts.push("most of the threads' time: " + part + " (" + percent(share) + ")");
    if (all.cpu_share !== null) parts.push("CPU " + percent(all.cpu_share) + " of " + past.cores + (past.cores === 1 ? " core" : " cores"));
    const begun = past.since && Date.parse(past.since) / 1000 > past.first_s;
    const nodes = info && info.nodes && info.nodes.length > 1 ? " The numbers are those of the node " + clean(info.node) + ", except waiting jobs." : "";
    return parts.join("; ") + "." + nodes + (begun ? " Since " + past.since.slice(0, 16).replace("T", " ") + " UTC, when pushbroom-web began: its history is not kept when it ends." : past.since ? "" : " No sample yet.");
  }

  function drawTable() {
    if (!$("graph-numbers").open || !past) return;
    const lines = describe().flatMap((graph) => graph.lines.map(([name, , values]) => [graph.title + ": " + name, values, graph.words]));
    const rows = [];
    for (let slot = past.slots - 1; slot >= 0; slot--)
      if (past.covered_s[slot] !== null)
        rows.push(make("tr", {}, make("th", { scope: "row" }, clock(slot, true)), ...lines.map(([, values, words]) => make("td", { class: "number" }, values[slot] === null ? "-" : words(values[slot])))));
    $("graph-table").replaceChildren(make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "From"), ...lines.map(([name]) => make("th", { scope: "col", class: "number" }, name)))), make("tbody", {}, ...rows));
  }

  function drawGraphs() {
    if (!past) return;
    const place = $("graphs");
    const focused = [...place.querySelectorAll("svg")].indexOf(document.activeElement);
    const kept = cursor;
    $("graph-summary").textContent = summary();
    const described = describe();
    if (!place.children.length) place.append(...described.map(() => make("figure"))); // their width decides that of the pictures
    const width = Math.floor(place.children[0].clientWidth);
    graphs = described.map((graph) => drawGraph(graph, width));
    place.replaceChildren(...graphs.map((graph) => graph.element));
    if (focused >= 0) graphs[focused].picture.focus({ preventScroll: true });
    moveTo(kept);
    drawTable();
  }

  async function loadGraphs() {
    clearTimeout(timer);
    timer = setTimeout(loadGraphs, 1000 * SPANS.find(([name]) => name === span)[2]);
    if (document.hidden) return;
    const wanted = span;
    try {
      const reply = await fetch("/api/graphs?span=" + wanted);
      const found = await reply.json();
      if (!reply.ok || wanted !== span) return;
      if (past && cursor >= 0 && past.span === found.span) cursor -= Math.round((found.first_s - past.first_s) / found.slot_s); // stays at its time
      else cursor = -1;
      past = found;
      drawGraphs();
    } catch {
      // the page reports that pushbroom-web does not answer; the next load draws again
    }
  }

  for (const [name, label] of SPANS)
    $("graph-spans").append(make("button", { type: "button", "aria-pressed": String(name === span), onclick: (event) => {
      span = name;
      for (const button of $("graph-spans").children) button.setAttribute("aria-pressed", String(button === event.target));
      loadGraphs();
    } }, label));
  $("graph-numbers").addEventListener("toggle", drawTable);
  let width = 0;
  new ResizeObserver(() => {
    if (Math.abs($("graphs").clientWidth - width) < 1) return;
    width = $("graphs").clientWidth;
    drawGraphs();
  }).observe($("graphs"));
  document.addEventListener("visibilitychange", () => { if (!document.hidden) loadGraphs(); });
  loadGraphs();
})();
