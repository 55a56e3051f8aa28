// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Changes of jobs, where the server allows them: buttons in the dialog of a job, each with a question first, and the sign-in by a
// token in the head. The token is sent once and not kept; the server answers with a cookie that scripts cannot read. Uses make,
// clean, place, keepFocus, jobs, opened and openJob of page.js, which calls actionZone.of when it draws a job, and
// actionZone.onInfo with news of the service.
"use strict";
{
  const ACTIONS = [
    { word: "retry", label: "Retry", states: ["failed", "dismissed"], question: "Compute this job again?" },
    { word: "cancel", label: "Cancel", states: ["accepted", "running"], question: "Cancel this job? Its products are not made." },
    { word: "again", label: "Make again", states: ["successful"], question: "Make the products of this job again?" },
    { word: "drop", label: "Remove", states: ["failed"], question: "Remove the input from quarantine for good? It cannot be restored." },
  ];
  const person = document.getElementById("person");
  let session = { actions: false };
  let asked = null; // { id, action }: the question that is shown
  let sending = false;
  let outcome = { id: "", text: "", className: "" };

  async function send(address, method, headers = {}) {
    const reply = await fetch(address, { method, headers });
    return { reply, body: await reply.json() };
  }

  async function loadSession() {
    try {
      session = (await send("/api/session", "GET")).body;
    } catch {
      session = { actions: false };
    }
    drawPerson();
    if (opened && jobs.has(opened)) openJob(opened);
  }

  // --- who ---

  function drawPerson() {
    const parts = [];
    if (session.actions && session.who) parts.push(make("span", { class: "name" }, session.who));
    if (session.actions && session.proof === "cookie") parts.push(make("button", { type: "button", "data-job": "sign-out", onclick: signOut }, "Sign out"));
    if (session.actions && !session.who && session.tokens) parts.push(make("button", { type: "button", "data-job": "sign-in", onclick: askToken }, "Sign in"));
    keepFocus(person, parts);
  }

  async function signOut() {
    try {
      await send("/api/session", "DELETE");
    } finally {
      loadSession();
    }
  }

  function askToken() {
    const dialog = document.getElementById("sign-in");
    const token = make("input", { id: "token", type: "password", autocomplete: "current-password", "aria-describedby": "sign-in-state" });
    const state = make("p", { id: "sign-in-state", class: "bad", role: "status" });
    const onsubmit = async (event) => {
      event.preventDefault();
      try {
        const { reply, body } = await send("/api/session", "POST", { Authorization: "Bearer " + token.value.trim() });
        state.textContent = reply.ok ? "" : reply.status === 401 ? "This token is not known." : clean(body.error.message);
        if (reply.ok) await loadSession();
        if (reply.ok && !session.who) state.textContent = "The browser refused the cookie: the page needs https.";
        else if (reply.ok) dialog.close();
      } catch {
        state.textContent = "pushbroom-web does not answer, or the token has characters that none has.";
      }
    };
    dialog.replaceChildren(make("form", { onsubmit },
      make("h2", { id: "sign-in-title" }, "Sign in"), make("p", {}, make("label", { for: "token" }, "Token "), token), state,
      make("div", { class: "actions" }, make("button", { type: "submit" }, "Sign in"), make("button", { type: "button", onclick: () => dialog.close() }, "Close"))));
    dialog.showModal();
    token.focus();
  }

  // --- the buttons of a job ---

  async function act({ id, action }, priority) {
    const query = action.word === "again" ? "?priority=" + encodeURIComponent(priority) : "";
    sending = true;
    try {
      const { reply, body } = await send("/api/jobs/" + encodeURIComponent(id) + "/" + action.word + query, "POST");
      outcome = reply.ok ? { id: body.id, text: action.label + ": done", className: "good" } : { id, text: [body.error.message, body.error.hint].filter(Boolean).join(" "), className: "bad" };
      if (reply.status === 401) await loadSession();
    } catch {
      outcome = { id, text: "pushbroom-web does not answer; look at the job before another try.", className: "bad" };
    }
    sending = false;
    asked = null;
    if (opened === id) openJob(outcome.id);
  }

  function ask(id, action) {
    asked = action ? { id, action } : null;
    outcome = { id: "", text: "", className: "" };
    const part = document.getElementById("job-actions");
    const job = jobs.get(id);
    if (!part || !job) return;
    part.replaceWith(of(job));
    document.querySelector(action ? '#job-actions [data-job="no"]' : "#job-actions button")?.focus();
  }

  function questionOf(job) {
    const { action } = asked;
    const priority = action.word === "again" ? make("input", { id: "priority", type: "number", min: -100, max: 100, value: -50, "data-job": "priority" }) : null;
    return [make("p", { id: "question" }, action.question), priority ? make("p", {}, make("label", { for: "priority" }, "Priority, -100 to 100 "), priority) : null,
      make("div", { class: "actions" },
        make("button", { type: "button", "data-job": "yes", "aria-describedby": "question", disabled: sending, onclick: () => act(asked, priority ? priority.value : 0) }, "Yes, " + action.label.toLowerCase()),
        make("button", { type: "button", "data-job": "no", "aria-describedby": "question", onclick: () => ask(job.id, null) }, "No"))];
  }

  // The actions of a job in the dialog, or null.
  function of(job) {
    if (!session.actions) return null;
    const part = make("div", { id: "job-actions", role: "group", "aria-label": "Change this job" });
    const fits = ACTIONS.filter((action) => action.states.includes(job.status));
    if (asked && (asked.id !== job.id || !asked.action.states.includes(job.status))) asked = null;
    if (!session.who) part.append(make("p", { class: "note" }, session.tokens ? "Sign in to change jobs." : "The proxy names no user; jobs cannot be changed."));
    else if (asked) part.append(...questionOf(job).filter(Boolean));
    else part.append(make("div", { class: "actions" }, ...fits.map((action) => make("button", { type: "button", "data-job": "act-" + action.word, onclick: () => ask(job.id, action) }, action.label))));
    part.append(make("p", { id: "act-state", role: "status", class: outcome.className }, outcome.id === job.id ? outcome.text : ""));
    return part;
  }

  // Loads the session when the service's setting is known, or has changed.
  let setting = null;
  function onInfo(info) {
    const news = Boolean(info?.web?.actions);
    if (!info || news === setting) return;
    setting = news;
    loadSession();
  }

  document.getElementById("job").addEventListener("close", () => ask(null, null));
  window.actionZone = { of, onInfo };
}
