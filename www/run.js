import { algorithms, policiesOf } from "./algorithms.js";
import { Simulation } from "./simulation.js";
import { Edges } from "./traffic/edges.js";
import { Traffic } from "./traffic/traffic.js";

const windowsInView = 3.5;
const samplesInView = 480;

/** Runs the same traffic through every algorithm, from the start. After any change the past is played again. */
export class Run {
  #traffic;
  #mine;

  constructor(state) {
    this.span = state.scale * windowsInView;
    this.edges = new Edges(state.scale);
    this.scale = state.scale;
    this.#traffic = new Traffic(state, this.edges);
    this.#mine = [...state.mine];
    const levels = {
      every: Math.max(1, Math.floor(this.span / samplesInView)),
      from: Math.max(0, state.at - this.span),
      span: this.span,
    };
    this.simulations = new Map(
      algorithms.map(({ id }) => [id, new Simulation(policiesOf(id, state), state, levels)]),
    );
    this.advance(state.at);
  }

  advance(to) {
    for (const time of this.#traffic.take(to)) {
      this.#replayMine(time - 1);
      this.#hitAll(time);
    }
    this.#replayMine(to);
    for (const simulation of this.simulations.values()) simulation.advance(to);
  }

  /** Performs an action of the visitor; returns the results by algorithm. */
  act(action) {
    return new Map([...this.simulations].map(([id, simulation]) => [id, simulation.act(action)]));
  }

  #replayMine(until) {
    while (this.#mine.length > 0 && this.#mine[0].at <= until) this.act(this.#mine.shift());
  }

  #hitAll(at) {
    for (const simulation of this.simulations.values()) simulation.hit(at);
  }
}
