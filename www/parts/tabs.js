import { Throttle } from "tollgate";
import { counted } from "../../js/access-log/words.ts";
import { policyOf } from "../algorithms.js";
import { element, make, say } from "../dom.js";
import { colours, surface } from "../paint/surface.js";
import { announce } from "./announce.js";
import { pressable } from "./press.js";

const shared = "tollgate playground";
const view = 30_000;

/** Shows the tabs of this page that share one budget, each in a row of its own. */
export function sharedTabs(state, noteInput) {
  const own = crypto.randomUUID().slice(0, 4);
  const channel = new BroadcastChannel(shared);
  const tabs = new Map([[own, []]]);
  let throttle;
  let policy;

  const passed = (tab, at) => {
    if (!tabs.has(tab)) tabs.set(tab, []);
    if (at) tabs.get(tab).push(at);
  };
  channel.onmessage = ({ data: { tab, at, hello, left } }) => {
    noteInput();
    if (left) tabs.delete(tab);
    else passed(tab, at);
    // A new tab gets a message from each that is open.
    if (hello) channel.postMessage({ tab: own });
  };
  channel.postMessage({ tab: own, hello: true });
  addEventListener("pagehide", () => channel.postMessage({ tab: own, left: true }));
  addEventListener("pageshow", () => channel.postMessage({ tab: own, hello: true }));

  pressable(element("shared-press"), async () => {
    const wanted = JSON.stringify(policyOf(state().algorithm, state()));
    if (wanted !== policy) {
      throttle?.[Symbol.dispose]();
      throttle = new Throttle(JSON.parse(wanted), { shared, maxQueue: 50 });
      policy = wanted;
    }
    try {
      await throttle.acquire({ cost: state().cost });
      const at = Date.now();
      passed(own, at);
      channel.postMessage({ tab: own, at });
      announce("Shared budget: allowed.");
    } catch (error) {
      say(element("shared-note"), error.message);
    }
  });
  element("second-tab").addEventListener("click", () => open(location.href, "_blank"));

  const list = element("shared-tabs");
  return function draw(now = Date.now()) {
    for (const id of tabs.keys())
      if (!list.querySelector(`[data-tab="${id}"]`)) list.append(row(id, id === own));
    for (const item of [...list.children]) if (!tabs.has(item.dataset.tab)) item.remove();
    let together = 0;
    for (const [id, times] of tabs) {
      while (times.length > 0 && times[0] < now - view) times.shift();
      const item = list.querySelector(`[data-tab="${id}"]`);
      const waiting = id === own && throttle?.pending ? `, ${throttle.pending} waiting` : "";
      say(item.querySelector("span"), `${times.length} in 30 s${waiting}`);
      together += times.length;
      paintRow(item.querySelector("canvas"), times, now);
    }
    say(
      element("shared-total"),
      `${counted(together, "hit")} in the last 30 seconds in all tabs. The right end is now.`,
    );
    return together > 0 || throttle?.pending > 0;
  };
}

const row = (id, isOwn) =>
  make(
    "li",
    { "data-tab": id },
    make("b", {}, isOwn ? "This tab" : `Tab ${id}`),
    make("span", {}),
    make("canvas", { class: "shared-row", "aria-hidden": "true" }),
  );

function paintRow(canvas, times, now) {
  const { context, width, height } = surface(canvas);
  context.fillStyle = colours().rule;
  context.fillRect(0, height / 2, width, 1);
  context.fillStyle = colours().allowed;
  for (const time of times) {
    context.beginPath();
    context.arc(width - ((now - time) / view) * width, height / 2, 4, 0, 2 * Math.PI);
    context.fill();
  }
}
