import { PageClock } from "./clock.js";
import { element } from "./dom.js";
import { keepInAddress, linkTo } from "./parts/address.js";
import { announce } from "./parts/announce.js";
import { codePanel } from "./parts/code.js";
import { comparison } from "./parts/compare.js";
import { foldSections } from "./parts/folds.js";
import { homeLinks } from "./parts/links.js";
import { liveWorker } from "./parts/live.js";
import { opening } from "./parts/opening.js";
import { policyControls } from "./parts/policy.js";
import { pressable } from "./parts/press.js";
import { wholeLog } from "./parts/replay.js";
import { reservationControls } from "./parts/reservations.js";
import { summary } from "./parts/summary.js";
import { sharedTabs } from "./parts/tabs.js";
import { themeSwitch } from "./parts/theme.js";
import { timeline } from "./parts/timeline.js";
import { trafficControls } from "./parts/traffic.js";
import { transport } from "./parts/transport.js";
import { Run } from "./run.js";
import { fromHash } from "./state.js";
import { changeInWords, verdict } from "./words.js";

const clock = new PageClock();
let state;
let run;
/** When the visitor last did something. */
let lastInput = performance.now();

const current = () => ({ state, run, now: clock.now, simulation: run.simulations.get(state.algorithm) });

/** Applies a state: the past is played again under it. */
function apply(next) {
  state = next;
  clock.elapsed = state.at;
  clock.speed = state.speed;
  run = new Run(state);
  large.forget();
  for (const show of [showPolicy, showTraffic, reserving.show, showCode]) show(state);
}

/** Changes parts of the state. */
function change(some) {
  apply({ ...state, ...some, at: clock.now });
  keepInAddress(state);
}

function restart() {
  clock.elapsed = 0;
  change({ mine: [] });
}

/** Performs an action of the visitor. */
function act(some) {
  noteInput();
  advance();
  const action = { at: clock.now, ...some };
  state.mine = [...state.mine, action];
  const done = run.act(action).get(state.algorithm);
  if (done) announce(done.what ? changeInWords(done) : verdict(done));
}

function advance() {
  run.advance(clock.now);
  state.at = clock.now;
}

const showPolicy = policyControls(change);
const showTraffic = trafficControls(change);
const reserving = reservationControls(current, { act, change });
const showCode = codePanel(() => linkTo(state));
const showTransport = transport(clock, () => run, { change, restart });
const large = timeline(current);
const drawOpening = opening(current);
const drawStrips = comparison(current, change);
const drawTabs = sharedTabs(() => state, noteInput);
pressable(element("press"), () => act({ act: "hit" }));
liveWorker();
wholeLog();
themeSwitch();
foldSections();
homeLinks();

let before = performance.now();
let written = -1;
let isTabsMoving = false;

/** The events that may change the picture while the clock stands still. */
for (const name of [
  "pointerdown",
  "pointermove",
  "scroll",
  "keydown",
  "input",
  "click",
  "resize",
  "theme",
  "focus",
  "hashchange",
])
  addEventListener(name, noteInput, { capture: true, passive: true });

function noteInput() {
  lastInput = performance.now();
}

function frame(now) {
  clock.tick(Math.min(now - before, 250));
  before = now;
  // An idle page is not drawn.
  if (clock.running || now - lastInput < 1_000) draw();
  if (isTabsMoving || now - lastInput < 1_000) isTabsMoving = drawTabs();
  requestAnimationFrame(frame);
}

function draw() {
  advance();
  showTransport(state);
  summary(current());
  reserving.draw();
  drawOpening();
  large.draw();
  drawStrips();
  if (written !== state.at + state.mine.length) keepInAddress(state);
  written = state.at + state.mine.length;
}

const isLink = location.hash.length > 1;
apply(fromHash(location.hash));
// A link shows a still picture, and so does a page for visitors who prefer less motion.
clock.running = !isLink && !matchMedia("(prefers-reduced-motion: reduce)").matches;
addEventListener("hashchange", () => {
  // A link to a place in the page has no state.
  if (!location.hash.includes("=")) return;
  clock.running = false;
  apply(fromHash(location.hash));
});
requestAnimationFrame(frame);

/** The contents of the page, for the console and the tests. */
globalThis.playground = {
  get state() {
    return structuredClone(state);
  },
  get simulations() {
    return Object.fromEntries(
      [...run.simulations].map(
        ([id, { hits, levels, changes, allowed, denied, busiest, isOver, limit, open, bans }]) => [
          id,
          structuredClone({ hits, levels, changes, allowed, denied, busiest, isOver, limit, open, bans }),
        ],
      ),
    );
  },
  get marks() {
    const marks = { large: large.draw(), ...drawOpening(), ...drawStrips({ unseen: true }) };
    return Object.fromEntries(
      Object.entries(marks).map(([name, list]) => [
        name,
        list.map(({ hit, ...place }) => ({ ...hit, ...place })),
      ]),
    );
  },
};
document.documentElement.dataset.ready = "";
