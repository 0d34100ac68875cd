// Which page is shown, by the address behind #, and the keyboard. #/RUN, #/RUN/TEST, #/RUN/TEST/step/3, #/tutorial/BLOCK
"use strict";

const main = document.getElementById("main");
let index = null;
let turn = 0; // who is late must not replace what was asked for since
let scrolled = 0; // where the list was left
let written = null; // the tutorial's page, and of which version
let wantsToSearch = false; // on the way back to the list

async function show(isRefresh = false) {
  if (location.hash && !location.hash.startsWith("#/")) return;
  const mine = ++turn;
  const [place = "", key, word, n] = location.hash.slice(2).split("/");
  try {
    const page = place === "tutorial" ? await tutorialRoute() : await runRoute(place, key);
    if (mine !== turn) return;
    putInPlace(page, isRefresh);
    if (page === opened.page && word === "step" && !isRefresh) showStep(Number(n));
    if (place === "tutorial" && key && !isRefresh) showBlock(key);
  } catch (error) {
    if (mine === turn) main.replaceChildren(el("p", { role: "alert" }, error.message));
  }
}

async function runRoute(place, key) {
  const run = place ? index.runs.find((run) => run.key === place) : index.runs[0];
  if (!run) return message(place ? "This run is not here (any more)." : "No test has run here yet.", place ? "#/" : null);
  document.getElementById("run").value = run.key;
  const list = await listPage(run, index.problems);
  document.title = `${run.name} · end-to-end tests`;
  if (!key) return list;
  const row = shown.rows.find((row) => row.key === key);
  if (!row) return message("This test is not in the run.", `#/${run.key}`);
  document.title = `${SIGNS[row.status]} ${row.name}`;
  return testPage(run, row, index.player, index.tutorial.blocks > 0);
}

async function tutorialRoute() {
  document.title = "Tutorial";
  const { stamp } = index.tutorial;
  if (written?.stamp !== stamp) written = { stamp, page: tutorialPage(await load("tutorial", stamp), index.runs) };
  return written.page;
}

function message(text, back) {
  return el("div", {}, el("p", {}, text), back ? el("p", {}, el("a", { href: back }, "Back to the tests")) : null);
}

/** Puts the page in place. A refreshed one stays where its reader is; a new one begins at its top. */
function putInPlace(page, isRefresh) {
  const before = main.firstElementChild;
  if (before === page) return;
  const [focus, at] = [document.activeElement, window.scrollY];
  const typed = focus?.id === "search" ? [focus.selectionStart, focus.selectionEnd] : null;
  if (before === shown.page && !isRefresh) scrolled = at;
  main.replaceChildren(page);
  for (const [id, on] of [["to-tests", page !== written?.page], ["to-tutorial", page === written?.page]]) {
    if (on) document.getElementById(id).setAttribute("aria-current", "page");
    else document.getElementById(id).removeAttribute("aria-current");
  }
  if (isRefresh) {
    window.scrollTo(0, at);
    const search = document.getElementById("search");
    if (typed && search) { search.focus(); search.setSelectionRange(...typed); }
    else if (page === shown.page && focus?.closest?.(".rows")) focusRow(shown.rows.find((row) => row.key === shown.at));
  } else if (page === shown.page) {
    window.scrollTo(0, scrolled);
    if (wantsToSearch) document.getElementById("search").select();
    else focusRow(shown.rows.find((row) => row.key === shown.at && !row.hidden));
  } else {
    window.scrollTo(0, 0);
    page.querySelector("h1")?.focus({ preventScroll: true });
  }
  wantsToSearch = false;
}

function showBlock(id) {
  const block = main.querySelector(`[data-id="${CSS.escape(id)}"]`);
  for (const other of main.querySelectorAll(".block[aria-current]")) other.removeAttribute("aria-current");
  block?.setAttribute("aria-current", "true");
  block?.scrollIntoView({ block: "center" });
}

const goTo = (row) => { if (row) location.hash = `#/${shown.run}/${row.key}`; };
const isFailed = (row) => row.status === "failed" || row.status === "killed";

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const target = event.target;
  if (target.closest?.(".screen")) { // the player has keys of its own
    if (event.key === "Escape") document.activeElement.blur();
    return;
  }
  if (target.matches?.("input, select, textarea")) {
    if (target.id === "search") onSearchKey(event);
    return;
  }
  const act = (main.contains(shown.page) ? listKeys : main.contains(opened.page) ? testKeys : {})[event.key] ?? anyKeys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

const next = () => focusRow(neighbour(shown.at, 1));
const previous = () => focusRow(neighbour(shown.at, -1));
const back = () => { location.hash = shown.run ? `#/${shown.run}` : "#/"; };

const listKeys = {
  j: next, ArrowDown: next, k: previous, ArrowUp: previous,
  n: () => focusRow(neighbour(shown.at, 1, isFailed) ?? neighbour(null, 1, isFailed)),
  Escape: () => document.activeElement?.blur(),
};
const following = () => goTo(neighbour(opened.key, 1));
const preceding = () => goTo(neighbour(opened.key, -1));
const testKeys = {
  j: following, ArrowRight: following, k: preceding, ArrowLeft: preceding,
  n: () => goTo(neighbour(opened.key, 1, isFailed) ?? neighbour(null, 1, isFailed)),
};
const anyKeys = {
  u: back, Escape: back,
  t: () => { if (index?.tutorial.blocks) location.hash = "#/tutorial"; },
  "?": () => document.getElementById("keys").showModal(),
  "/": () => {
    if (main.contains(shown.page)) document.getElementById("search").select();
    else { wantsToSearch = true; back(); }
  },
};

function onSearchKey(event) {
  if (event.key === "Escape") {
    event.preventDefault();
    if (event.target.value) { event.target.value = shown.search = ""; applyFilter(); } else event.target.blur();
  } else if (event.key === "ArrowDown" || event.key === "Enter") {
    event.preventDefault();
    const first = neighbour(null, 1);
    if (event.key === "Enter") goTo(first); else focusRow(first);
  }
}

function fillHeader() {
  document.getElementById("to-tutorial").hidden = !index.tutorial.blocks;
  const select = document.getElementById("run");
  const was = select.value;
  select.replaceChildren(...index.runs.map((run) => {
    const all = Object.values(run.counts).reduce((sum, count) => sum + count, 0);
    const failed = run.counts.failed ? `${run.counts.failed} failed of ${all}` : counted(all, "test");
    return el("option", { value: run.key }, `${run.name} · ${failed} · ${ago(run.started)}`);
  }));
  if (index.runs.some((run) => run.key === was)) select.value = was;
  select.parentElement.hidden = index.runs.length < 2;
}

async function follow() {
  const live = document.getElementById("live");
  if (!(await load("live", Date.now()).catch(() => false))) return;
  const events = new EventSource(`events?version=${index.version}`);
  events.onopen = () => { live.textContent = "live"; };
  events.onerror = () => { live.textContent = "not connected"; };
  events.onmessage = async (event) => {
    index = await load("index", event.data).catch(() => index);
    fillHeader();
    show(true);
  };
}

async function begin() {
  try {
    index = await load("index", Date.now());
  } catch (error) {
    main.replaceChildren(el("p", { role: "alert" }, error.message));
    return;
  }
  fillHeader();
  await show();
  follow();
}

window.addEventListener("hashchange", () => show());
document.addEventListener("keydown", onKey);
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a.at"); // the same address again: no hashchange, but the reader wants to see it again
  if (link && link.hash === location.hash) show();
});
document.getElementById("run").addEventListener("change", (event) => { location.hash = `#/${event.target.value}`; });
document.getElementById("help").addEventListener("click", anyKeys["?"]);
begin();
