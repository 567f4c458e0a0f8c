import { longest } from "./state.js";

/** The time that the limiters are given: it runs as fast as it is told, or stands still. */
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

  /** Goes on by what has passed outside, unless it stands still. */
  tick(passed) {
    if (this.running) this.forward(passed * this.speed);
  }

  forward(milliseconds) {
    this.elapsed = Math.min(this.elapsed + milliseconds, longest);
    if (this.isOver) this.running = false;
  }
}
