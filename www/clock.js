import { longest } from "./state.js";

/** The clock of the limiters. It runs at a chosen speed, or stands still. */
export class PageClock {
  elapsed = 0;
  speed = 1;
  running = false;

  /** Whole milliseconds since the start. */
  get now() {
    return Math.floor(this.elapsed);
  }

  get isOver() {
    return this.elapsed >= longest;
  }

  /** Moves on by the real time that has passed, unless the clock stands still. */
  tick(passed) {
    if (this.running) this.forward(passed * this.speed);
  }

  forward(milliseconds) {
    this.elapsed = Math.min(this.elapsed + milliseconds, longest);
    if (this.isOver) this.running = false;
  }
}
