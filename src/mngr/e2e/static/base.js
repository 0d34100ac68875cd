// What all pages use: data that arrives by script tags, elements, words for times. Text becomes text nodes only, so
// that whatever a test has printed stays text.
"use strict";

const delivered = new Map();
const underway = new Map(); // path to the last address that was loaded, and its value

/** Called by the files in data/. */
function deliver(path, value) {
  delivered.set(path, value);
}

/** The value of data/PATH.js. The stamp changes with its content. */
function load(path, stamp) {
  const address = `data/${path}.js?${stamp}`;
  if (underway.get(path)?.address !== address) {
    const value = loadScript(address).then(
      () => delivered.get(path),
      (error) => {
        underway.delete(path); // it may be there the next time
        throw error;
      },
    );
    underway.set(path, { address, value });
  }
  return underway.get(path).value;
}

function loadScript(address) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = () => { script.remove(); resolve(); };
    script.onerror = () => { script.remove(); reject(new Error(`${address.split("?")[0]} could not be loaded`)); };
    document.head.append(script);
  });
}

/** el("a", {href: "#/", class: "row"}, "text", child, ...); attributes that are null or false are left out. */
function el(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

const SIGNS = { failed: "✕", passed: "✓", skipped: "–", running: "●", killed: "◌", unreadable: "?" };
const STATUSES = ["failed", "killed", "unreadable", "running", "skipped", "passed"]; // as they are sorted

/** A sign with the word behind it, for those who do not see colours, or anything. */
function sign(status) {
  return el("span", { class: `sign ${status}`, role: "img", "aria-label": status, title: status }, SIGNS[status]);
}

const SILENCE = 300; // seconds without a sign of life after which nobody is believed to be at work

/** Whether pytest is still at it: it has not said that it is done, and something in the run stirs. */
function isAtWork(run, rows) {
  const stirred = rows.reduce((last, row) => Math.max(last, row.touched ?? 0, row.started + (row.duration ?? 0)), run.started);
  return run.finished === null && Date.now() / 1000 - stirred < SILENCE;
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 0.0995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 9.95 ? 2 : 1)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  return minutes < 60 ? `${minutes} m ${Math.round(seconds) % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
}

/** As players write it, with tenths, since steps are quick: 1:05.3. */
function clock(seconds) {
  const tenths = Math.max(0, Math.floor(seconds * 10 + 1e-6));
  return `${Math.floor(tenths / 600)}:${((tenths % 600) / 10).toFixed(1).padStart(4, "0")}`;
}

function ago(time) {
  const passed = Date.now() / 1000 - time;
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (passed >= length) return `${Math.floor(passed / length)} ${unit} ago`;
  }
  return "just now";
}

function moment(time) {
  return el("time", { datetime: new Date(time * 1000).toISOString(), title: new Date(time * 1000).toLocaleString() }, ago(time));
}

function counted(number, what) {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}
