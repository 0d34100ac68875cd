// What a program wrote to its terminal, as text and spans: colours and emphasis become classes, a carriage return goes
// back to the beginning of the line, and every other escape sequence is dropped.
"use strict";

// CSI with its parameters; OSC, DCS, PM, APC and SOS with all of their text; two-character escapes; one that was cut.
const ESCAPE = /\x1b\[([0-?]*)[ -/]*([@-~])|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)|\x1b[ -/]*[0-~]|\x1b\[?[0-?]*[ -/]*$/y;
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/;
const BIDI = /[\u202a-\u202e\u2066-\u2069]/g; // would show the text in another order than it was written

/** A node for the line. `pen` holds the colours that are in force, and goes on with the next line. */
function ansi(line, pen) {
  const text = line.replace(BIDI, "\ufffd");
  if (!CONTROL.test(text) && isPlain(pen)) return document.createTextNode(text);
  return toSpans(toCells(text, pen));
}

const newPen = () => ({ fg: null, bg: null, bold: false, dim: false, italic: false, underline: false, reverse: false, strike: false });
const isPlain = (pen) => Object.values(pen).every((value) => !value && value !== 0);

/** Each column with its character and its look: what is written over is gone. */
function toCells(text, pen) {
  const cells = [];
  let column = 0;
  let look = { ...pen };
  for (let at = 0; at < text.length;) {
    ESCAPE.lastIndex = at;
    const found = text[at] === "\x1b" ? ESCAPE.exec(text) : null;
    if (found) {
      at += found[0].length;
      if (found[2] === "m") {
        setPen(pen, found[1]);
        look = { ...pen };
      } else if (found[2] === "K") {
        erase(cells, column, found[1]);
      }
      continue;
    }
    const char = String.fromCodePoint(text.codePointAt(at));
    at += char.length;
    if (char === "\r") column = 0;
    else if (char === "\b") column = Math.max(0, column - 1);
    else if (char === "\t" || !CONTROL.test(char)) cells[column++] = { char, look };
  }
  return cells;
}

function erase(cells, column, how) {
  if (how === "" || how === "0") cells.length = Math.min(cells.length, column);
  else for (let i = 0; i < (how === "2" ? cells.length : Math.min(column + 1, cells.length)); i++) delete cells[i];
}

function setPen(pen, parameters) {
  const numbers = parameters.replaceAll(":", ";").split(";").map(Number);
  for (let i = 0; i < numbers.length; i++) {
    const n = numbers[i];
    if (n === 0) Object.assign(pen, newPen());
    else if (n === 1) pen.bold = true;
    else if (n === 2) pen.dim = true;
    else if (n === 3) pen.italic = true;
    else if (n === 4) pen.underline = true;
    else if (n === 7) pen.reverse = true;
    else if (n === 9) pen.strike = true;
    else if (n === 22) pen.bold = pen.dim = false;
    else if (n === 23) pen.italic = false;
    else if (n === 24) pen.underline = false;
    else if (n === 27) pen.reverse = false;
    else if (n === 29) pen.strike = false;
    else if (n >= 30 && n <= 37) pen.fg = n - 30;
    else if (n >= 40 && n <= 47) pen.bg = n - 40;
    else if (n >= 90 && n <= 97) pen.fg = n - 82;
    else if (n >= 100 && n <= 107) pen.bg = n - 92;
    else if (n === 39) pen.fg = null;
    else if (n === 49) pen.bg = null;
    else if (n === 38 || n === 48) {
      const wide = numbers[i + 1] === 2;
      const colour = wide ? rgb(numbers.slice(i + 2, i + 5)) : palette(numbers[i + 2]);
      pen[n === 38 ? "fg" : "bg"] = colour;
      i += wide ? 4 : 2;
    }
  }
}

const rgb = (parts) => `rgb(${[0, 1, 2].map((i) => Math.min(255, Math.max(0, parts[i] || 0))).join(",")})`;

/** The first 16 are the reader's own colours, then a cube of 6 × 6 × 6, then greys. */
function palette(n) {
  if (!(n >= 16 && n <= 255)) return n >= 0 && n < 16 ? n : null;
  if (n >= 232) return rgb(Array(3).fill(8 + (n - 232) * 10));
  return rgb([36, 6, 1].map((step) => Math.floor((n - 16) / step) % 6).map((level) => level && 55 + level * 40));
}

function toSpans(cells) {
  const nodes = document.createDocumentFragment();
  const blank = { char: " ", look: newPen() };
  for (let i = 0; i < cells.length;) {
    const { look } = cells[i] ?? blank;
    let text = "";
    const begin = look;
    for (; i < cells.length && (cells[i] ?? blank).look === begin; i++) text += (cells[i] ?? blank).char;
    nodes.append(isPlain(look) ? text : dressed(text, look));
    if (!text) i++;
  }
  return nodes;
}

function dressed(text, look) {
  const classes = ["bold", "dim", "italic", "underline", "strike"].filter((name) => look[name]);
  const span = el("span", {}, text);
  const [fg, bg] = look.reverse ? [look.bg ?? "back", look.fg ?? "fore"] : [look.fg, look.bg];
  for (const [value, prefix, property] of [[fg, "f", "color"], [bg, "b", "backgroundColor"]]) {
    if (value === null) continue;
    if (typeof value === "string" && value.startsWith("rgb")) span.style[property] = value;
    else classes.push(`${prefix}-${value}`);
  }
  if (bg !== null && fg === null) { // nobody chose a colour that can be read on this one
    if (span.style.backgroundColor) span.style.color = isBright(bg) ? "#000" : "#fff";
    else classes.push("f-back");
  }
  span.className = classes.join(" ");
  return span;
}

function isBright(colour) {
  const [red, green, blue] = colour.match(/\d+/g);
  return red * 0.299 + green * 0.587 + blue * 0.114 > 140;
}
