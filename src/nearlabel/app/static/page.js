// Without this script the page shows everything; changes need it.
// A button or form with data-api sends one request to the interface, then its view is fetched again.
"use strict";

const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

// Requests.

async function answerTo(path, options) {
  const response = await fetch(path, options).catch(() => { throw new Error("The service does not answer. Try again in a moment."); });
  const isLogin = response.redirected && new URL(response.url).pathname === "/login";
  if (response.ok && !isLogin) return response;
  if (isLogin || response.status === 401) {
    location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
    throw new Error("You are no longer logged in.");
  }
  const text = await response.text();
  const kind = response.headers.get("Content-Type") ?? "";
  let said = null;
  if (kind.startsWith("text/html")) said = $(".error", new DOMParser().parseFromString(text, "text/html"))?.textContent;
  else if (kind.startsWith("application/json")) said = JSON.parse(text).error?.message;
  said ||= `The service answered ${response.status}.`;
  throw Object.assign(new Error(said[0].toUpperCase() + said.slice(1)), { status: response.status });
}

async function api(method, path, body) {
  const options = { method };
  if (body instanceof FormData) options.body = body;
  else if (body !== undefined) {
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  return (await answerTo(path, options)).json();
}

async function documentAt(path, options = {}) {
  const headers = { Accept: "text/html", ...options.headers };
  const response = await answerTo(path, { ...options, headers });
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

function say(text, failed = false) {
  const line = document.createElement("p");
  line.textContent = text.replace(/[\u202a-\u202e\u2066-\u2069]/g, ""); // they would reverse the sentence
  line.classList.toggle("failed", failed);
  $("#message").replaceChildren(line);
  clearTimeout(say.timer);
  say.timer = setTimeout(() => line.remove(), failed ? 9000 : 4000);
}

async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    say(error.message, true);
  }
}

// A button in place of content that could not be loaded.
function again(work) {
  const button = document.createElement("button");
  button.textContent = "Try again";
  button.addEventListener("click", () => { button.remove(); attempt(work); });
  return button;
}

// Replaces the content of a view; the focus and typed text are kept.

const keyOf = (field) => [field.closest("[data-key]")?.dataset.key, field.form?.className, field.name].join(" ");

function show(fresh) {
  const at = document.activeElement?.closest("[data-key]")?.dataset.key;
  const within = document.activeElement?.getAttribute("aria-label");
  const typed = new Map($$("#main form[data-api] input").filter((one) => one.value !== one.defaultValue).map((one) => [keyOf(one), one]));
  const isTyping = document.activeElement?.matches("#main form[data-api] input") && keyOf(document.activeElement);
  $("#main").replaceChildren(...$("#main", fresh).childNodes);
  for (const part of ["#undo", "nav"]) $(part).replaceWith($(part, fresh));
  document.title = fresh.title;
  document.body.className = fresh.body.className;
  const place = at && $$("[data-key]").find((one) => one.dataset.key === at);
  const same = within && $$("button", place || $("#main")).find((one) => one.getAttribute("aria-label") === within);
  (same || (place && $("a, button, input", place)) || $("#main")).focus({ preventScroll: true });
  for (const field of $$("#main form[data-api] input")) {
    if (typed.has(keyOf(field))) field.value = typed.get(keyOf(field)).value;
    if (keyOf(field) === isTyping) field.focus({ preventScroll: true });
  }
  begin();
}

async function refresh(path = location.pathname + location.search) {
  try {
    show(await documentAt(path));
  } catch (error) {
    if (error.status !== 404) throw error;
    history.replaceState(null, "", "/"); // the shown item no longer exists
    show(await documentAt("/"));
  }
}

function bodyOf(element) {
  const body = element.dataset.body ? JSON.parse(element.dataset.body) : {};
  if (!(element instanceof HTMLFormElement)) return element.dataset.body ? body : undefined;
  for (const field of element.elements) {
    if (!field.name || field.disabled) continue;
    if ("split" in field.dataset) body[field.name] = split(field.value);
    else body[field.name] = "number" in field.dataset ? Number(field.value) : field.value;
  }
  return body;
}

const split = (text) => [...new Set(text.split(";").map((one) => one.trim()).filter(Boolean))];

// Clicks that are faster than answers are queued, and the view is fetched after the last one.
const acts = { last: Promise.resolve(), waiting: 0, isOld: false };

async function act(element, extra = {}) {
  if ("busy" in element.dataset) return; // a double click
  let body = bodyOf(element);
  if (body?.tags && !body.tags.length) throw new Error("Type a tag first.");
  if (element.dataset.confirm && !confirm(element.dataset.confirm)) return;
  if (body !== undefined) body = { ...body, ...extra };
  element.dataset.busy = "";
  element.disabled = true;
  acts.waiting += 1;
  const done = acts.last.then(() => actNow(element, body)).finally(() => {
    acts.waiting -= 1;
    element.disabled = false;
    delete element.dataset.busy;
  });
  acts.last = done.catch(() => null);
  return done;
}

async function actNow(element, body) {
  let [method, path] = element.dataset.api.split(" ");
  try {
    let done = {};
    if (path === "/api/items") await (own && kept());
    else if (own && element.matches("form.give")) await kept(body.tags); // both, or neither
    else {
      if (path.includes("{kept}")) path = path.replace("{kept}", own ? await kept() : $("[data-item]")?.dataset.item ?? keptAs);
      done = await api(method, path, body);
    }
    acts.isOld = true;
    if (element instanceof HTMLFormElement) element.reset();
    if (done.undone) say(`Taken back: ${done.undone.said}`);
    else if (done.change === null) say("Nothing has changed.");
    else if (element.dataset.said ?? done.change) say(element.dataset.said ?? done.change.said);
    if (element.dataset.then) location.assign(element.dataset.then);
    else if (acts.waiting === 1) await renewView();
  } catch (error) {
    if (error.status === 409 && element.id === "undo") acts.isOld = true;
    if (acts.isOld && acts.waiting === 1) await renewView().catch(() => null);
    throw error;
  }
}

async function renewView() {
  acts.isOld = false;
  if (own) await ask(own);
  else if ($("section.page")) await renew();
  else await refresh();
}

document.addEventListener("click", (event) => {
  if (event.target.closest(".skip")) { // following a link to #main would leave an unsaved picture
    event.preventDefault();
    $("#main").focus();
  }
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.select) select(button.dataset.select);
  else if (button.dataset.do) attempt(() => answerOne(button.closest(".question"), button.dataset.do));
  else if (button.dataset.many) attempt(() => answerMany(button.dataset.many));
  else if (button.matches(".mark")) mark(button);
  else if (button.id === "help") $("#keys").showModal();
  else if (button.id === "go-on") goOn();
  else if (button.id === "ask-about") $("#asking").showModal();
  else if (button.dataset.several) attempt(() => askNext(Number(button.dataset.several)));
  else if (button.dataset.api) {
    event.preventDefault();
    attempt(() => (button.id === "undo" && $(".queue") ? undoInReview(button) : act(button)));
  }
});

document.addEventListener("submit", (event) => {
  const sent = event.target;
  if (sent.id === "ask-text" && event.submitter?.value) {
    const text = sent.elements.text.value;
    sent.reset();
    several.files = [];
    attempt(() => ask({ text }));
  } else if (sent.id === "selection" && $("section.page")) {
    event.preventDefault();
    attempt(() => decideSelected(sent, event.submitter?.value ?? "tags"));
  } else if (sent.dataset.api) {
    event.preventDefault();
    const tags = sent.id === "selection" ? { tags: [...selected] } : {};
    attempt(async () => {
      await act(sent, tags);
      selected.clear();
      showSelection();
    });
  }
});

document.addEventListener("error", (event) => {
  if (event.target instanceof HTMLImageElement) event.target.classList.add("broken");
}, true);

// Known tags, offered while typing.

let typing = 0;
document.addEventListener("input", (event) => {
  if (event.target.id === "threshold") return threshold(event.target);
  if (!("tags" in event.target.dataset)) return;
  const number = ++typing;
  const several = event.target.matches("[data-split], .further input, #selection [name=tags]");
  const before = several ? event.target.value.replace(/[^;]*$/, "") : "";
  const last = event.target.value.slice(before.length).trim();
  setTimeout(async () => {
    if (number !== typing) return;
    const found = await api("GET", `/api/tags?limit=12&q=${encodeURIComponent(last)}`).catch(() => null);
    if (!found || number !== typing) return;
    $("#known-tags").replaceChildren(...found.tags.map((tag) => {
      const option = document.createElement("option");
      option.value = before ? `${before} ${tag.name}` : tag.name;
      return option;
    }));
  }, 120);
});

// Infinite scrolling: distant pages are removed again, so that memory use stays bounded.

const pages = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) attempt(() => fill(target));
    else empty(target);
  }
}, { rootMargin: "1200px 0px" });

async function fill(section, anew = false) {
  if (section.children.length && !anew) return;
  let fresh;
  try {
    fresh = await documentAt(section.dataset.url);
  } catch (error) {
    if (!section.children.length) section.append(again(() => fill(section)));
    throw error;
  }
  section.replaceChildren(...$("section.page", fresh).childNodes);
  section.style.height = "";
  if (anew) for (const part of ["#undo", ".count"]) $(part)?.replaceWith($(part, fresh));
  follow(section);
}

function empty(section) {
  if (!section.children.length || section.contains(document.activeElement)) return;
  section.style.height = `${section.offsetHeight}px`;
  // Browsers keep lazy images, and the elements around them, as long as they have a src.
  for (const image of $$("img", section)) image.removeAttribute("src");
  section.replaceChildren();
}

function follow(section) {
  for (const box of $$(".select input", section)) box.checked = selected.has(box.value);
  const next = $("a.next", section);
  if (!next) return;
  next.parentElement.hidden = true;
  if (section.nextElementSibling?.matches("section.page")) return;
  section.after(emptyPage(next.getAttribute("href"), section.offsetHeight));
}

// Back and reload restore the position in a long grid: its pages are recorded.
history.scrollRestoration = "manual";
let noting = 0;
function notePlace() {
  clearTimeout(noting);
  const shown = own ? [] : $$("section.page").map((one) => [one.dataset.url, one.offsetHeight]);
  history.replaceState({ shown, top: scrollY }, "");
}
addEventListener("scroll", () => { clearTimeout(noting); noting = setTimeout(notePlace, 400); }, { passive: true });
addEventListener("click", (event) => { if (event.target.closest("a[href]")) notePlace(); }, true);

function goBackTo({ shown = [], top = 0 }) {
  let last = $("section.page");
  if (last && shown[0]?.[0] === last.dataset.url) {
    for (const [url, height] of shown.slice(1)) {
      if (!last.nextElementSibling?.matches("section.page")) last.after(emptyPage(url, height));
      last = last.nextElementSibling;
      if (!last.children.length) last.style.height = `${height}px`;
    }
  }
  scrollTo(0, top);
}

function emptyPage(url, height) {
  const section = document.createElement("section");
  section.className = "page";
  section.dataset.url = url;
  section.style.height = `${height}px`;
  pages.observe(section);
  return section;
}

async function renew() {
  await Promise.all($$("section.page").filter((one) => one.children.length).map((one) => fill(one, true)));
}

// Selections.

const selected = new Set();
let lastBox = null;

function toggle(box) {
  const boxes = $$(".select input");
  const range = toggle.shift && lastBox?.isConnected ? [boxes.indexOf(lastBox), boxes.indexOf(box)].sort((a, b) => a - b) : null;
  for (const one of range ? boxes.slice(range[0], range[1] + 1) : [box]) {
    one.checked = box.checked;
    if (box.checked) selected.add(one.value);
    else selected.delete(one.value);
  }
  lastBox = box;
  showSelection();
}

addEventListener("click", (event) => { toggle.shift = event.shiftKey; }, true);

function select(which) {
  const least = Number($("#threshold")?.value ?? 0);
  selected.clear();
  for (const box of $$(".select input")) {
    const question = box.closest(".question");
    box.checked = which === "all" || (which === "likely" && Number(question.dataset.probability) >= least);
    if (box.checked) selected.add(box.value);
  }
  showSelection();
}

function showSelection() {
  const bar = $("#selection");
  if (!bar) return;
  bar.hidden = !selected.size;
  for (const grid of $$(".grid")) grid.classList.toggle("selecting", selected.size > 0);
  $(".selected-count", bar).textContent = `${selected.size} selected`;
  const into = $("[name=into]", bar);
  if (into && selected.size && !into.value) into.value = [...selected][0];
  if (into && !selected.size) into.value = "";
}

async function decideSelected(bar, answer) {
  const tags = split(bar.elements.tags.value);
  if (!tags.length) throw new Error("Type a tag first.");
  const done = await api("POST", "/api/decisions", { ids: [...selected].map(Number), [answer]: tags });
  say(done.change?.said ?? "Nothing has changed.");
  bar.reset();
  selected.clear(); // some may no longer be visible, and would get the next tags, too
  showSelection();
  await renew();
}

// Review.

const review = { answered: [], last: "", skipped: new Set(), noInARow: 0, more: null };

function mark(button) {
  button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") !== "true");
}

function threshold(slider) {
  const least = Number(slider.value);
  slider.nextElementSibling.value = `${Math.round(100 * least)} %`;
  for (const one of $$(".mark")) one.setAttribute("aria-pressed", Number(one.dataset.probability) >= least);
}

function answerOf(question, what) {
  const id = Number(question.dataset.id);
  const tag = $(".queue").dataset.tag;
  if (tag) return what === "none" ? { id, no: [tag] } : { id, accepted: [tag] };
  const further = split($(".further input", question).value);
  const marks = $$(".mark", question);
  const isGiven = (one) => what === "all" || (what === "accept" && one.getAttribute("aria-pressed") === "true");
  const named = (ones) => ones.map((one) => one.dataset.tag).filter((name) => !further.includes(name));
  const answer = { id, tags: further, accepted: named(marks.filter(isGiven)), no: named(marks.filter((one) => !isGiven(one))) };
  if (!further.length && !answer.accepted.length && what !== "none") throw new Error("No tag is marked: press a digit to mark one, or n to reject all.");
  if (!marks.length && !further.length) throw new Error("There are no suggestions: type tags, or skip it.");
  return answer;
}

async function answerOne(question, what) {
  if (question.classList.contains("busy")) return;
  if (what === "skip") review.skipped.add(question.dataset.id);
  else {
    const answer = answerOf(question, what);
    question.classList.add("busy");
    try {
      noted(await api("POST", "/api/answers", { answers: [answer] }), [question], answer);
    } finally {
      question.classList.remove("busy");
    }
    review.noInARow = what === "none" ? review.noInARow + 1 : 0;
  }
  leave([question]);
}

async function answerMany(what) {
  const many = $$(".question").filter((one) => selected.has(one.dataset.id));
  noted(await api("POST", "/api/answers", { answers: many.map((one) => answerOf(one, what)) }), many);
  review.noInARow = 0;
  leave(many);
}

function noted(done, questions, answer = {}) {
  review.answered.push(questions);
  const given = [...(answer.accepted ?? []), ...(answer.tags ?? [])].join(", ") || (answer.no ? "none" : "");
  const rejected = answer.no?.length && given !== "none" ? `; not ${answer.no.join(", ")}` : "";
  review.last = given && !$(".queue").dataset.tag ? ` ${$("h2", questions[0]).textContent}: ${given}${rejected}` : "";
  const undo = $("#undo");
  delete undo.dataset.confirm;
  undo.disabled = false;
  if (done.change) undo.dataset.body = JSON.stringify({ change: done.change.number });
  undo.title = "Take back the last answer (u)";
}

function tellAnswered() {
  const many = review.answered.flat().length;
  $("#answered").textContent = many ? `${many} answered.${review.last}` : "";
}

function leave(questions) {
  const all = $$(".question");
  const next = all.slice(all.indexOf(questions[0])).find((one) => !questions.includes(one)) ?? all.filter((one) => !questions.includes(one)).pop();
  for (const one of questions) {
    selected.delete(one.dataset.id);
    one.remove();
  }
  showSelection();
  next?.focus();
  const isPoor = review.noInARow >= Number($(".queue").dataset.noInARow) && $(".queue").dataset.tag;
  tellAnswered();
  if (isPoor) {
    $("#questions").hidden = true;
    $(".poor").hidden = false;
    $("#go-on").focus();
    return;
  }
  attempt(() => askMore());
}

async function askMore() {
  const few = $(".queue").dataset.tag ? 8 : 3;
  if ($$(".question").length >= few || review.more) return;
  const shown = [...$$(".question").map((one) => one.dataset.id), ...review.skipped].slice(-900);
  const query = shown.map((id) => `&without=${id}`).join("");
  const base = $(".queue").dataset.url;
  review.more = documentAt(base + (base.includes("?") ? "" : "?") + query);
  try {
    const fresh = await review.more;
    const there = new Set($$(".question").map((one) => one.dataset.id));
    $("#questions").append(...$$(".question", fresh).filter((one) => !there.has(one.dataset.id)));
    $("#undo").replaceWith($("#undo", fresh));
  } catch (error) {
    if (!$("#questions").children.length) $("#questions").append(again(askMore));
    throw error;
  } finally {
    review.more = null;
  }
  const slider = $("#threshold");
  if (slider && slider.value !== slider.defaultValue) threshold(slider);
  $(".end").hidden = $$(".question").length > 0;
  if (!document.activeElement?.closest(".question") && !document.activeElement?.matches("input, select")) $(".question")?.focus();
}

function goOn() {
  review.noInARow = 0;
  $("#questions").hidden = false;
  $(".poor").hidden = true;
  $(".question")?.focus();
  attempt(() => askMore());
}

async function undoInReview(button) {
  if (button.dataset.confirm && !confirm(button.dataset.confirm)) return;
  let undone;
  try {
    ({ undone } = await api("POST", "/api/undo", bodyOf(button)));
  } catch (error) {
    if (error.status === 409) await refresh();
    throw error;
  }
  if (!undone) return say("There is nothing to take back.");
  const questions = review.answered.pop();
  review.noInARow = 0;
  review.last = "";
  say(`Taken back: ${undone.said}`);
  if (!questions) return refresh();
  const fresh = await documentAt($(".queue").dataset.url);
  $("#undo").replaceWith($("#undo", fresh));
  $("#questions").hidden = false;
  $("#questions").prepend(...questions);
  for (const one of [$(".poor"), $(".end")]) one.hidden = true;
  questions[0].focus();
  tellAnswered();
}

// Keys.

function move(from, key) {
  const all = $$(from.matches(".question") ? ".question" : ".tile");
  const at = all.indexOf(from);
  let to = { ArrowLeft: at - 1, ArrowRight: at + 1 }[key];
  if (to === undefined) {
    const { left, top } = from.getBoundingClientRect();
    const down = key === "ArrowDown";
    const beyond = all.filter((one) => {
      const place = one.getBoundingClientRect();
      return Math.abs(place.left - left) < 5 && (down ? place.top > top + 5 : place.top < top - 5);
    });
    to = all.indexOf(down ? beyond[0] : beyond[beyond.length - 1]);
  }
  const target = all[to];
  if (!target) return;
  (target.matches(".question") ? target : $("a", target)).focus();
  target.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]")) return;
  if (event.repeat && !event.key.startsWith("Arrow") && (event.key === "Enter" || !event.target.matches("input, textarea, select"))) {
    event.preventDefault(); // a key held down would answer one question after another
    return;
  }
  const field = event.target.matches("input:not([type=checkbox]):not([type=range]), select, textarea");
  if (event.key === "Escape") {
    if (field) (event.target.closest(".question") ?? $("#main")).focus();
    else select("none");
    return;
  }
  const question = event.target.closest(".question");
  if (field) {
    if (event.key === "Enter" && question) {
      event.preventDefault();
      attempt(() => answerOne(question, "accept"));
    }
    return;
  }
  const tile = question ?? event.target.closest(".tile");
  const onButton = event.target.matches("button, summary, a") && !tile?.matches(".tile:not(.question)");
  const done = () => event.preventDefault();
  if (event.key === "/") { done(); ($("#search") ?? $(".filter input"))?.focus(); }
  else if (event.key === "?") { done(); $("#keys").showModal(); }
  else if (event.key === "u" && !$("#undo").disabled) { done(); $("#undo").click(); }
  else if (/^Arrow(Left|Right)$/.test(event.key) && $(".answer") && !tile) {
    const step = event.key === "ArrowLeft" ? -1 : 1;
    (several.files.length ? $(`[data-several="${step}"]`) : $(`a[rel=${step < 0 ? "prev" : "next"}]`))?.click();
  }
  else if (event.key.startsWith("Arrow") && tile && !event.target.matches("input")) { done(); move(tile, event.key); }
  else if (event.key === "x" && tile) { done(); $(".select input", tile)?.click(); }
  else if (!question && $(".queue") && /^[ansyt0-9]$/.test(event.key)) { done(); $(".question")?.focus(); }
  else if (question) inQuestion(event, question, onButton);
});

function inQuestion(event, question, onButton) {
  const tag = $(".queue").dataset.tag;
  const what = { a: tag ? "" : "all", n: "none", s: "skip", y: tag ? "accept" : "", Enter: onButton ? "" : "accept" }[event.key];
  const isDigit = /^[0-9]$/.test(event.key) && !tag;
  if (!what && !isDigit && event.key !== "t") return;
  event.preventDefault();
  if (what) attempt(() => answerOne(question, what));
  else if (isDigit) {
    const button = $$(".mark", question)[(Number(event.key) + 9) % 10];
    if (button) mark(button);
  } else $(".further input", question)?.focus();
}

function begin() {
  for (const section of $$("section.page")) {
    follow(section);
    pages.observe(section);
  }
  showSelection();
  tellPlace();
  if ($(".queue") && !document.activeElement?.closest(".question")) $(".question")?.focus({ preventScroll: true });
  attempt(fillNear);
}

addEventListener("DOMContentLoaded", () => {
  begin();
  if (history.state) goBackTo(history.state);
});
