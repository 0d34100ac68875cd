// What a test did, step by step, as in its transcript.txt: `$ command`, what it printed, `!` before errors, `?` before an
// exit code that is not 0. A phase begins at each comment and can be folded.
"use strict";

const SHORT = 120; // lines of a transcript that is shown whole; in a longer one, phases are folded
const MOST = 400; // lines of one step that are shown before somebody asks for more
const PROMPTS = { type: ["<", "typed"], press: ["<", "pressed"], wait: ["~", "waited for"], spawn: ["$", "in a terminal"] };

/** `address` is that of the test; `opened`: which phases were open before, when the test has gone on meanwhile. */
function transcript(test, status, address, opened = []) {
  const phases = phasesOf(test.steps);
  const length = test.steps.reduce((sum, step) => sum + step.lines.length + 2, 0);
  const opens = (i) => opened[i] ?? (length <= SHORT || (status !== "passed" && i === phases.length - 1));
  return el("div", { class: "transcript" }, phases.map((phase, i) =>
    el("details", { class: "phase", open: opens(i) },
      el("summary", {},
        el("span", { class: "comment" }, phase.comment || "Before the first comment"),
        el("span", { class: "quiet" }, `${counted(phase.steps.length, "step")} · ${duration(sumOf(phase.steps))}`),
        phase.steps.some(isBad) ? el("span", { class: "code" }, "? ", String(phase.steps.find(isBad).exit_code)) : null),
      phase.steps.map((step) => stepElement(step, test, address)))));
}

function phasesOf(steps) {
  const phases = [];
  for (const step of steps) {
    if (step.comment || !phases.length) phases.push({ comment: step.comment, steps: [] });
    phases.at(-1).steps.push(step);
  }
  return phases;
}

const sumOf = (steps) => steps.reduce((sum, step) => sum + (step.duration ?? 0), 0);
const isBad = (step) => step.timed_out || Boolean(step.exit_code);

function stepElement(step, test, address) {
  const [prompt, meaning] = PROMPTS[step.kind] ?? ["$", null];
  const at = step.time === null ? 0 : step.time - test.started;
  return el("div", { class: "step", id: `step-${step.n}`, "data-n": step.n },
    el("div", { class: "head" },
      el("a", {
        class: "at", href: `${address}/step/${step.n}`, "aria-label": `Step ${step.n}, at ${clock(at)}: show it in the recordings`,
        title: test.casts.length ? "Show this second in the recordings" : "Link to this step",
      }, clock(at)),
      step.command ? el("pre", { class: "command" }, el("span", { class: "prompt", title: meaning }, `${prompt} `), step.command) : null,
      el("span", { class: "took" }, duration(step.duration))),
    step.lines.length ? output(step.lines) : null,
    isBad(step) ? el("p", { class: "code" }, `? ${step.exit_code ?? ""}${step.timed_out ? " (timed out)" : ""}`) : null);
}

function output(lines) {
  const pre = el("pre", { class: "output", tabindex: "0", "aria-label": "Output" });
  const pen = newPen();
  const rendered = (from, to) => lines.slice(from, to).map(([stream, text]) => el("span", { class: stream === "e" ? "line err" : "line" }, ansi(text, pen), "\n"));
  if (lines.length <= MOST) {
    pre.append(...rendered(0, lines.length));
    return pre;
  }
  const half = MOST / 2;
  const more = el("button", {
    type: "button",
    click: () => more.replaceWith(...rendered(half, lines.length - half)),
  }, `${(lines.length - MOST).toLocaleString("en")} more lines`);
  pre.append(...rendered(0, half), more, ...rendered(lines.length - half, lines.length));
  return pre;
}
