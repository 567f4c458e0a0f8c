import { element, make, say } from "../dom.js";
import { speeds } from "../state.js";
import { clockFace } from "../words.js";

const stepsInView = 80;

/** Shows the clock and its controls: run, step, speed, start over. */
export function transport(clock, run, { change, restart }) {
  const play = element("play");
  const speed = element("speed");
  speed.append(...speeds.map((value) => make("option", { value }, `${value}×`)));
  speed.addEventListener("change", () => change({ speed: Number(speed.value) }));
  play.addEventListener("click", () => {
    if (clock.isOver) restart();
    clock.running = !clock.running;
  });
  element("step").addEventListener("click", () => {
    clock.running = false;
    clock.forward(Math.max(1, Math.round(run().span / stepsInView)));
  });
  element("restart").addEventListener("click", restart);

  return (state) => {
    say(play, clock.running ? "Pause" : "Run");
    play.dataset.running = clock.running;
    speed.value = state.speed;
    say(element("clock"), clockFace(clock.now));
  };
}
