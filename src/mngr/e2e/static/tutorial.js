// The tutorial as a page: each block with the tests that cite it, what they said last, and their recordings.
"use strict";

function tutorialPage(files, runs) {
  const newest = runs[0]?.key;
  const blocks = files.filter((file) => file.path !== null).flatMap((file) => file.parts).filter((part) => part.id);
  const counts = { passed: 0, failed: 0, other: 0, none: 0 };
  for (const block of blocks) counts[verdictOf(block)]++;
  return el("div", { class: "tutorial" },
    el("h1", { tabindex: "-1" }, "Tutorial"),
    el("p", { class: "quiet" }, tally(blocks.length, counts)),
    files.map((file) => tutorialFile(file, newest)));
}

function tally(all, counts) {
  const words = [counted(all, "block")];
  if (counts.passed) words.push(`${counts.passed} proven`);
  if (counts.failed) words.push(`${counts.failed} with failed tests`);
  if (counts.other) words.push(`${counts.other} whose tests have no verdict`);
  if (counts.none) words.push(`${counts.none} without tests`);
  return words.join(" · ");
}

function verdictOf(block) {
  const verdicts = block.proofs.map((proof) => proof.status);
  if (!verdicts.length) return "none";
  return verdicts.includes("failed") ? "failed" : verdicts.includes("passed") ? "passed" : "other";
}

function tutorialFile(file, newest) {
  const sections = [];
  for (const part of file.parts) {
    if (!sections.length || sections.at(-1).title !== part.section) sections.push({ title: part.section, parts: [] });
    sections.at(-1).parts.push(part);
  }
  const contents = sections.filter((section) => section.title);
  return el("section", { class: "file" },
    el("h2", {}, file.path ?? "Cited, but in no tutorial"),
    contents.length > 1 ? el("nav", { class: "contents", "aria-label": "Sections" }, contents.map((section) =>
      el("button", { type: "button", click: () => section.element.scrollIntoView() }, section.title))) : null,
    sections.map((section) => (section.element = el("section", { class: "chapter" },
      section.title ? el("h3", {}, section.title) : null,
      section.parts.map((part) => (part.id ? tutorialBlock(part, newest) : el("p", { class: "words" }, part.text.replace(/^#+ ?/gm, ""))))))));
}

function tutorialBlock(block, newest) {
  const verdict = verdictOf(block);
  return el("article", { class: `block ${verdict}`, id: `block-${block.id}`, "data-id": block.id },
    shellCode(block.text),
    block.proofs.length
      ? el("ul", { class: "proofs" }, block.proofs.map((proof) => el("li", {},
        sign(proof.status), " ",
        el("a", { href: `#/${proof.run}/${proof.key}` }, proof.name), " ",
        proof.casts ? el("span", { class: "quiet" }, `▶ ${counted(proof.casts, "recording")} `) : null,
        proof.run === newest ? null : el("span", { class: "quiet" }, moment(proof.started)))))
      : el("p", { class: "untested" }, "no test"));
}
