// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Streams of lines: rate, delay and gaps of each, and its scenes as one strip in the order in which they were seen, the newest at
// the bottom. The strip is laid out from its end (column-reverse), so that the browser follows new scenes unless it was scrolled
// up. Uses make, count, span, picture, keepFocus, newest and openJob of page.js, which calls streamZone.draw with news of the
// service and after changes.
"use strict";
{
  const SCENES = 24; // pictures of a strip
  const zone = document.getElementById("streams-zone");
  const order = new Intl.Collator("en", { numeric: true });
  const parts = new Map(); // name -> { facts, strip, drawn }

  function delay(microseconds) {
    if (microseconds < 1000) return microseconds + " \u00b5s";
    return microseconds < 1e6 ? (microseconds / 1000).toFixed(1) + " ms" : span(microseconds / 1e6);
  }

  function factsOf(stream) {
    const has = stream.lag_us !== undefined;
    const missing = stream.gap_lines + stream.dropped;
    return [
      make("b", { class: "name" }, stream.name), " ", make("span", { class: "note" }, stream.pipeline), make("br"),
      make("span", {}, [stream.writer === null ? "no writer" : stream.lines_per_second + " lines/s", has ? "delay " + delay(stream.lag_us) : "", count(stream.lines, "line", "lines"), count(stream.scenes, "scene", "scenes")].filter(Boolean).join(" \u00b7 ")),
      missing ? make("span", { class: "warn" }, make("br"), [stream.gaps ? count(stream.gaps, "gap", "gaps") + " of " + count(stream.gap_lines, "line", "lines") : "", stream.dropped ? count(stream.dropped, "line", "lines") + " dropped" : ""].filter(Boolean).join(", ")) : null,
      stream.writer !== null && stream.silent_ms > 2000 ? make("span", { class: "note" }, make("br"), "Silent for " + span(stream.silent_ms / 1000)) : null].filter(Boolean);
  }

  // A scene that has no picture yet, or none at all, is a line of text in its place.
  function sceneOf(job) {
    const label = job.scene + ": " + (job.status === "running" ? job.progress + "%" : job.status);
    return make("button", { type: "button", "data-job": job.id, title: clean(label), onclick: () => openJob(job.id) }, (job.status === "successful" && picture(job)) || make("span", { class: job.status === "failed" ? "bad name" : "note name" }, label));
  }

  function drawStrip(part, stream) {
    const [jobs] = newest((job) => job.pipeline === stream.pipeline && (job.scene || "").startsWith(stream.name + "_"), SCENES);
    jobs.sort((a, b) => order.compare(b.scene, a.scene)); // by time and number, the newest first: ids of one second have no order
    const text = jobs.map((job) => job.id + job.status + (job.status === "successful" ? job.preview : job.progress)).join();
    if (text === part.drawn) return;
    part.drawn = text;
    part.strip.hidden = !jobs.length;
    keepFocus(part.strip, jobs.map(sceneOf));
  }

  function draw(info) {
    const streams = (info && info.streams) || [];
    zone.hidden = !streams.length;
    for (const name of parts.keys()) if (!streams.some((stream) => stream.name === name)) parts.delete(name);
    for (const stream of streams) {
      const part = parts.get(stream.name) || { facts: make("div"), strip: make("div", { class: "strip", role: "region", tabindex: "0", "aria-label": "Scenes of the stream " + clean(stream.name) }), drawn: null };
      parts.set(stream.name, part);
      part.facts.replaceChildren(...factsOf(stream));
      drawStrip(part, stream);
    }
    const list = document.getElementById("streams");
    if (list.children.length !== parts.size || [...parts.values()].some((part, i) => list.children[i].firstChild !== part.facts))
      list.replaceChildren(...[...parts.values()].map((part) => make("li", {}, part.facts, part.strip)));
  }

  window.streamZone = { draw };
}
