// The recordings of a test in asciinema-player, which is loaded when the first of them is shown. All of them follow the
// same clock: showing a step shows what stood on each terminal in that second.
"use strict";

const LARGEST = 500; // columns or rows: a recording may ask for any number, and gets memory for this many
let playerLoading = null;

function loadPlayer() {
  playerLoading ??= new Promise((resolve, reject) => {
    document.head.append(el("link", { rel: "stylesheet", href: "player/asciinema-player.css" }));
    loadScript("player/asciinema-player.min.js").then(resolve, reject);
  });
  return playerLoading;
}

/** `old`: those that are on the page already. One that has not changed, or that somebody looks at, stays as it is. */
function recordings(test, hasPlayer, isRunning, old = []) {
  return test.casts.map((cast) => {
    const before = old.find((figure) => figure.cast.file === cast.file);
    const stays = before && (before.cast.stamp === cast.stamp || (isRunning && before.used));
    return stays ? before : recording(cast, hasPlayer);
  });
}

function recording(cast, hasPlayer) {
  const screen = el("div", { class: "screen" });
  const figure = el("figure", { class: "recording", "data-file": cast.file },
    el("figcaption", {},
      el("strong", {}, cast.title),
      el("span", { class: "quiet" }, `${cast.width}×${cast.height} · ${duration(cast.duration)}`),
      el("a", { href: `data/${cast.path}.cast`, download: cast.file, target: "_blank", rel: "noopener" }, "download")),
    screen);
  Object.assign(figure, { cast, used: false, wanted: null, player: null });
  if (!hasPlayer) screen.append(el("p", { class: "quiet" }, "To play it here, make the view again with the player in place: make player."));
  else if (!cast.events) screen.append(el("p", { class: "quiet" }, "Nothing was recorded."));
  else {
    screen.classList.add("loading");
    start(figure, screen).catch((error) => screen.replaceChildren(el("p", { class: "quiet" }, `It cannot be played: ${error.message}`)));
  }
  return figure;
}

async function start(figure, screen) {
  const { cast } = figure;
  const [events] = await Promise.all([load(cast.path, cast.stamp), loadPlayer()]);
  const playable = events.filter(([, code, data]) => code === "o" || code === "m" || (code === "r" && isSize(data)));
  const header = { version: 2, width: bounded(cast.width), height: bounded(cast.height) };
  screen.classList.remove("loading");
  const player = AsciinemaPlayer.create({ data: [header, ...playable] }, screen, {
    fit: "width", controls: true, preload: true, terminalFontFamily: "var(--mono)",
    poster: `npt:${cast.duration + 1}`, // how it ended, until somebody plays it
  });
  player.addEventListener("play", () => use(figure));
  figure.player = player;
  figure.append(markerList(figure, events));
  if (figure.wanted !== null) player.seek(figure.wanted);
}

const isSize = (data) => /^\d{1,3}x\d{1,3}$/.test(data) && data.split("x").every((n) => n >= 1 && n <= LARGEST);
const bounded = (n) => Math.min(LARGEST, Math.max(1, n));

function markerList(figure, events) {
  const markers = events.filter(([, code]) => code === "m");
  if (!markers.length) return "";
  return el("ol", { class: "markers", "aria-label": "Markers" }, markers.map(([at, , label]) =>
    el("li", {}, el("button", { type: "button", "data-at": at, click: () => seekRecording(figure, at) },
      el("span", { class: "at" }, clock(at)), " ", label))));
}

function seekRecording(figure, at) {
  figure.wanted = Math.min(Math.max(0, at), figure.cast.duration);
  use(figure);
  figure.player?.seek(figure.wanted);
}

/** From now on it is not replaced by a longer one, and shows its screen without a button in front. */
function use(figure) {
  figure.used = true;
  figure.classList.add("used");
}

/** Every recording at the second in which the step began. */
function seekAll(figures, step) {
  if (step.time === null) return;
  for (const figure of figures) seekRecording(figure, step.time - figure.cast.started);
}

function disposeRecordings(figures) {
  for (const figure of figures) figure.player?.dispose();
}
