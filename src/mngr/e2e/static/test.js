// One test: what it is for, what it did, what was on its terminals.
"use strict";

const opened = { run: null, key: null, stamp: null, status: null, test: null, page: null, figures: [] };

async function testPage(run, row, hasPlayer, hasTutorial) {
  const isSame = opened.run === run.key && opened.key === row.key;
  if (isSame && opened.stamp === row.stamp && opened.status === row.status) return opened.page;
  const test = await load(`tests/${run.key}/${row.key}`, row.stamp);
  const address = `#/${run.key}/${row.key}`;
  const phases = isSame ? [...opened.page.querySelectorAll(".phase")].map((phase) => phase.open) : [];
  const figures = recordings(test, hasPlayer, row.status === "running", isSame ? opened.figures : []);
  disposeRecordings(opened.figures.filter((figure) => !figures.includes(figure)));
  const page = el("article", { class: "test" },
    heading(run, row, test),
    test.docstring ? el("p", { class: "docstring" }, test.docstring) : null,
    test.failure ? part("Failure", el("pre", { class: "failure", tabindex: "0" }, coloured(test.failure))) : null,
    el("div", { class: figures.length ? "columns" : "column" },
      figures.length ? el("aside", { "aria-label": "Recordings" }, figures) : null,
      el("div", {},
        test.blocks.length ? part(test.blocks.length > 1 ? "Blocks" : "Block", test.blocks.map((block) => citedBlock(block, hasTutorial))) : null,
        part("Transcript", test.steps.length ? [foldButtons(test), transcript(test, row.status, address, phases)] : el("p", { class: "quiet" }, "No command was run.")))));
  Object.assign(opened, { run: run.key, key: row.key, stamp: row.stamp, status: row.status, test, page, figures });
  return page;
}

function heading(run, row, test) {
  const [before, after] = [neighbour(row.key, -1), neighbour(row.key, 1)];
  return el("div", { class: "heading" },
    el("p", { class: "way" },
      el("a", { href: `#/${run.key}` }, run.name),
      before ? el("a", { href: `#/${run.key}/${before.key}`, rel: "prev", title: before.name }, "← previous") : null,
      after ? el("a", { href: `#/${run.key}/${after.key}`, rel: "next", title: after.name }, "next →") : null),
    el("h1", { tabindex: "-1" }, sign(row.status), " ", test.name),
    el("p", { class: "quiet" },
      el("strong", { class: row.status }, STATUS_WORDS[row.status] ?? row.status),
      test.duration !== null ? ` in ${duration(test.duration)}` : "", " · ", moment(test.started),
      test.file ? [" · ", el("code", {}, test.line ? `${test.file}:${test.line}` : test.file)] : null));
}

const STATUS_WORDS = {
  running: "running now",
  killed: "was running when its pytest ended or was killed",
  unreadable: "its result cannot be read",
};

function part(title, ...content) {
  return el("section", {}, el("h2", {}, title), ...content);
}

function coloured(text) {
  const pen = newPen();
  return text.split("\n").flatMap((line, i) => [i ? "\n" : "", ansi(line, pen)]);
}

function citedBlock(block, hasTutorial) {
  const code = shellCode(block.text);
  return hasTutorial ? el("a", { class: "block", href: `#/tutorial/${block.id}`, title: "Show it in the tutorial" }, code) : code;
}

/** Comments are what one reads, so they are set apart from what one types. */
function shellCode(text) {
  return el("pre", { class: "shell" }, text.split("\n").map((line) =>
    el("span", { class: /^\s*#/.test(line) ? "said" : null }, line, "\n")));
}

function foldButtons(test) {
  if (phasesOf(test.steps).length < 2) return null;
  const fold = (open) => () => { for (const phase of opened.page.querySelectorAll(".phase")) phase.open = open; };
  return el("p", { class: "folds" },
    el("button", { type: "button", click: fold(true) }, "unfold all"), " ",
    el("button", { type: "button", click: fold(false) }, "fold all"));
}

/** Opens the step's phase, marks it, and takes every recording to its second. */
function showStep(n) {
  const step = opened.test.steps.find((step) => step.n === n);
  const element = opened.page.querySelector(`[data-n="${n}"]`);
  for (const other of opened.page.querySelectorAll(".step[aria-current]")) other.removeAttribute("aria-current");
  if (!step || !element) return;
  element.closest("details").open = true;
  element.setAttribute("aria-current", "step");
  seekAll(opened.figures, step);
  element.scrollIntoView({ block: "nearest" });
  opened.figures[0]?.scrollIntoView({ block: "nearest" });
}
