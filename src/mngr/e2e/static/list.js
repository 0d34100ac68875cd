// The tests of a run: failed first, filtered while one types. The list is made once for each version of the run, and
// kept while a test is looked at, so that one comes back to where one was.
"use strict";

const shown = { run: null, stamp: null, page: null, rows: [], search: "", status: "all", at: null };

/** The rows of a run in the order of the list, with their true status and the text that a search looks at. */
async function rowsOf(run) {
  const rows = await load(`runs/${run.key}`, run.stamp);
  const left = isAtWork(run, rows) ? "running" : "killed"; // what is said of a test that has not ended
  return rows
    .map((row) => ({ ...row, status: row.status === "running" ? left : row.status, text: `${row.name}\n${row.file}`.toLowerCase() }))
    .sort((one, other) => STATUSES.indexOf(one.status) - STATUSES.indexOf(other.status)); // stable: then file and line
}

async function listPage(run, problems) {
  if (shown.page && shown.run === run.key && shown.stamp === run.stamp) return shown.page;
  const rows = await rowsOf(run);
  if (shown.run !== run.key) Object.assign(shown, { search: "", status: "all", at: null });
  const list = el("ol", { class: "rows", role: "list" }, rows.map((row) => (row.item = listItem(run, row))));
  const search = el("input", {
    type: "search", id: "search", placeholder: "Search names, files, commands, blocks", "aria-label": "Search",
    autocomplete: "off", spellcheck: "false", value: shown.search,
    input: () => { shown.search = search.value; applyFilter(); },
  });
  const page = el("div", { class: "list" },
    el("h1", { class: "runname" }, run.name),
    el("p", { class: "quiet" }, runWords(run, rows)),
    el("div", { class: "tools" }, search, statusButtons(rows)),
    el("p", { class: "quiet", id: "matches", role: "status" }),
    list,
    problemList(problems));
  Object.assign(shown, { run: run.key, stamp: run.stamp, page, rows });
  applyFilter();
  whenIdle(async () => {
    const texts = await load(`search/${run.key}`, run.stamp).catch(() => ({}));
    for (const row of rows) row.text += `\n${(texts[row.key] ?? "").toLowerCase()}`;
    if (shown.rows === rows) applyFilter();
    page.dataset.searchable = "yes";
  });
  return page;
}

const whenIdle = (work) => (window.requestIdleCallback ?? setTimeout)(work);

function listItem(run, row) {
  return el("li", { class: row.status, "data-key": row.key },
    el("a", { href: `#/${run.key}/${row.key}`, focus: () => { shown.at = row.key; } },
      sign(row.status),
      el("span", { class: "name" }, row.name),
      el("span", { class: "file" }, row.file),
      el("span", { class: "took" }, row.status === "running" ? `since ${ago(row.started)}`.replace(" ago", "") : duration(row.duration)),
      row.casts ? el("span", { class: "casts", title: counted(row.casts, "recording") }, "▶") : null));
}

function runWords(run, rows) {
  const words = [moment(run.started)];
  if (run.finished !== null) words.push(` · took ${duration(run.finished - run.started)}`);
  else words.push(isAtWork(run, rows) ? " · running" : " · did not finish");
  if (run.argv.length) words.push(" · ", el("code", {}, run.argv.join(" ")));
  return words;
}

function statusButtons(rows) {
  const counts = new Map([["all", rows.length]]);
  for (const status of STATUSES) {
    const count = rows.filter((row) => row.status === status).length;
    if (count) counts.set(status, count);
  }
  if (!counts.has(shown.status)) shown.status = "all";
  const buttons = [...counts].map(([status, count]) => el("button", {
    type: "button", class: status, "data-status": status, "aria-pressed": String(shown.status === status),
    click: () => {
      shown.status = status;
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.status === status));
      applyFilter();
    },
  }, `${status} `, el("span", {}, count.toLocaleString("en"))));
  return el("div", { class: "statuses", role: "group", "aria-label": "Status" }, buttons);
}

function applyFilter() {
  const words = shown.search.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const row of shown.rows) {
    const fits = (shown.status === "all" || row.status === shown.status) && words.every((word) => row.text.includes(word));
    row.hidden = !fits;
    if (row.item.hidden === fits) row.item.hidden = !fits;
    count += fits;
  }
  const all = count === shown.rows.length;
  shown.page.querySelector("#matches").textContent = all && count ? "" : count ? `${count} of ${shown.rows.length}` : "No test here.";
}

function problemList({ count, examples }) {
  if (!count) return null;
  return el("details", { class: "problems" },
    el("summary", {}, `${counted(count, "line or file").replace("line or files", "lines or files")} could not be read`),
    el("ul", {}, examples.map(([path, what]) => el("li", {}, el("code", {}, path), ` ${what}`))),
    count > examples.length ? el("p", {}, `and ${count - examples.length} more`) : null);
}

/** The next row in that direction that is to be seen, and fits. */
function neighbour(key, step, fits = () => true) {
  const rows = shown.rows;
  const from = rows.findIndex((row) => row.key === key);
  for (let i = from === -1 && step < 0 ? rows.length - 1 : from + step; i >= 0 && i < rows.length; i += step) {
    if (!rows[i].hidden && fits(rows[i])) return rows[i];
  }
  return null;
}

function focusRow(row) {
  if (!row) return;
  row.item.firstChild.focus({ preventScroll: true });
  row.item.scrollIntoView({ block: "nearest" });
}
