// Pictures and texts to ask about: chosen, dropped or pasted; several are asked about in turn.
"use strict";

const MOST_FILES = 1000; // per folder
const PICTURES = /\.(jpe?g|png|gif|webp|bmp|jp2|ppm|avif|heic|heif|tiff?|dng|cr2|cr3|nef|arw|orf|rw2|raf|raw)$/i;
const kind = document.body.dataset.kind;
let own = null; // the picture or text asked about that is not in the collection
let keptAs = null; // the item it became
const several = { files: [], at: 0 };

function form(file) {
  const body = new FormData();
  body.append("file", file, file.name || "pasted.png");
  return body;
}

function disown() {
  if (own?.url) URL.revokeObjectURL(own.url);
  own = null;
}

// The request that asks about a picture or a text.
function asking(what) {
  if (what.file) return { method: "POST", body: form(what.file) };
  return { method: "POST", body: JSON.stringify({ text: what.text }), headers: { "Content-Type": "application/json" } };
}

async function kept(tags = []) {
  const text = own.text;
  const name = text?.trim().split("\n")[0].slice(0, 60);
  const body = own.file ? form(own.file) : { name, text, tags };
  if (own.file) for (const tag of tags) body.append("tags", tag);
  const added = await api("POST", "/api/items", body);
  disown();
  keptAs = added.id;
  history.pushState(null, "", `/items/${added.id}`);
  return added.id;
}

async function ask(what) {
  say(`Looking at ${what.file?.name ?? "it"} …`);
  if (what.file) await check(what.file);
  const fresh = await documentAt("/ask", asking(what));
  const known = $("[data-item]", fresh)?.dataset.item;
  if (known) history.pushState(null, "", `/items/${known}`);
  else if (!own) history.pushState(null, "", location.href); // so that Back leads to the previous view
  const text = what.text ?? (kind === "texts" ? await what.file.text() : undefined);
  disown();
  if (!known) own = { file: what.file, text, url: kind === "pictures" ? URL.createObjectURL(what.file) : undefined };
  show(fresh);
  $("#message").replaceChildren();
  scrollTo(0, 0);
}

// Refuses what the service would refuse, or the browser cannot send.
async function check(file) {
  const refused = (why) => Object.assign(new Error(`${file.name} ${why}`), { status: 415 });
  const most = Number(document.body.dataset.most);
  if (isOther(file)) throw refused("is not a picture.");
  if (file.size > most) throw refused(`is too large: ${Math.round(most / 2 ** 20)} MiB at most.`);
  await file.slice(0, 1).arrayBuffer().catch(() => { throw refused("cannot be read."); });
}

// Several files.

const isOther = (file) => kind === "pictures" && file.type && !file.type.startsWith("image/");

async function askAbout(given) {
  if (!given.length) return;
  const wanted = given.filter((one) => !isOther(one));
  const files = wanted.length ? wanted : given.slice(0, 1); // then refused
  const others = given.length - files.length;
  Object.assign(several, { files: files.slice(0, MOST_FILES), at: -1 });
  await askNext(1);
  if (files.length > MOST_FILES) say(`Only the first ${MOST_FILES} of ${files.length} files are asked about.`);
  else if (others) say(`${others} of ${given.length} files ${others === 1 ? "is not a picture" : "are not pictures"}.`, true);
}

async function askNext(step) {
  const left = [];
  if (!step) {
    several.files = [];
    return location.assign("/");
  }
  while (several.files[several.at + step]) {
    const file = several.files[several.at + step];
    const before = several.at;
    several.at += step;
    try {
      await ask({ file });
      break;
    } catch (error) {
      several.at = before;
      const isRefused = [413, 415, 422].includes(error.status);
      if (!isRefused || several.files.length === 1) {
        if (before < 0) several.files = []; // none of them is shown
        throw error;
      }
      several.files = several.files.filter((one) => one !== file);
      if (step < 0) several.at -= 1;
      left.push(error.message.includes(file.name) ? error.message : `${file.name}: ${error.message}`);
    }
  }
  if (left.length) tellPlace(); // fewer are left
  if (left.length) say(left.length === 1 ? left[0] : `${left.length} files were skipped. ${left[0]}`, true);
}

// Which of several files is shown, with buttons for the others.
function tellPlace() {
  $(".several")?.remove();
  const many = several.files.length;
  if (many < 2 || !$(".answer")) return;
  const place = document.createElement("div");
  place.className = "several";
  place.setAttribute("role", "group");
  place.setAttribute("aria-label", "Files to ask about");
  const words = document.createElement("strong");
  words.textContent = `${several.at + 1} of ${many}`;
  place.append(words);
  const offer = (step, label) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: label, className: step > 0 ? "primary" : "" });
    button.dataset.several = step;
    place.append(button);
  };
  if (several.at) offer(-1, "← Previous");
  if (several.at + 1 < many) offer(1, "Next →");
  offer(0, several.at + 1 < many ? "Stop" : "Done");
  $("#main").prepend(place);
}

// Choosing, dropping and pasting.

document.addEventListener("change", (event) => {
  if (event.target.id === "ask") {
    const files = [...event.target.files];
    event.target.value = "";
    attempt(() => askAbout(files));
  } else if (event.target.matches(".select input")) toggle(event.target);
});

// The dropped files, including those in folders; must be called before the first await.
function filesOf(transfer) {
  const entries = [...transfer.items].map((one) => one.webkitGetAsEntry?.()).filter(Boolean);
  const files = [...transfer.files];
  if (!entries.some((one) => one.isDirectory)) return Promise.resolve(files);
  return Promise.all(entries.map((one) => filesWithin(one))).then((found) => {
    const all = found.flat().filter((one) => kind !== "pictures" || PICTURES.test(one.name));
    if (!all.length) throw new Error(`There are no ${kind} in this folder.`);
    return all.sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
  });
}

async function filesWithin(entry) {
  if (entry.isFile) return [await new Promise((done, failed) => entry.file(done, failed))];
  const reader = entry.createReader();
  const found = [];
  for (;;) { // a reader returns some at a time
    const some = await new Promise((done, failed) => reader.readEntries(done, failed));
    if (!some.length || found.length > MOST_FILES) return found;
    for (const one of some) if (!one.name.startsWith(".")) found.push(...await filesWithin(one));
  }
}

let covering = 0;
let isFromHere = false; // a picture of the page itself is being dragged
const carries = (event) => !isFromHere && event.dataTransfer?.types.includes("Files");
function cover(isOver) {
  clearTimeout(covering);
  $("#drop").hidden = !isOver || kind === "vectors";
  if (isOver) covering = setTimeout(cover, 700, false); // there is no event for a drag that ends elsewhere
}
addEventListener("dragstart", () => { isFromHere = true; });
addEventListener("dragend", () => { isFromHere = false; });
addEventListener("dragenter", (event) => carries(event) && cover(true));
addEventListener("dragleave", (event) => event.relatedTarget ?? cover(false));
addEventListener("dragover", (event) => {
  if (!carries(event)) return;
  event.preventDefault();
  cover(true);
});
addEventListener("drop", (event) => {
  if (!carries(event)) return;
  event.preventDefault(); // otherwise the browser would open the file instead of the page
  cover(false);
  const found = filesOf(event.dataTransfer);
  attempt(async () => {
    if (kind === "vectors") throw new Error("This collection holds vectors: files cannot be asked about.");
    await askAbout(await found);
  });
});
addEventListener("paste", (event) => {
  const files = [...event.clipboardData.files].filter((one) => one.type.startsWith("image/"));
  const text = event.clipboardData.getData("text/plain");
  if (kind === "pictures" && files.length) attempt(() => askAbout(files));
  else if (kind === "texts" && text.trim() && !event.target.matches("input, textarea") && !$("dialog[open]")) attempt(() => ask({ text }));
});

addEventListener("popstate", (event) => {
  disown();
  several.files = [];
  attempt(async () => {
    await refresh();
    goBackTo(event.state ?? {});
  });
});

async function fillNear() {
  const article = $(".answer");
  if (!article) return;
  const wait = $("#near p");
  if (wait) wait.hidden = false;
  if (own && $("#own-preview")) $("#own-preview").src = own.url;
  else if (own) $("#own-text").textContent = own.text;
  try {
    const fresh = await documentAt(article.dataset.near ?? "/near", own ? asking(own) : {});
    if (article.isConnected) $("#near").replaceWith($("#near", fresh));
  } catch (error) {
    if (!article.isConnected) return;
    $("#near").replaceChildren(again(fillNear));
    throw error;
  }
}
