import { Spans } from "./spans.js";

/** The number of rows that denied hits take in turn. */
export const waitRows = 10;

/** Bars that are closer than this are painted once. */
const apart = 0.5;
/** Half the height of the mark at the end of a wait, and the gap between two. */
const tick = 3;

/** The paths of hits, collected so that each kind is one stroke, however many there are. */
export class HitPaths {
  #allowed = new Path2D();
  #reserved = new Path2D();
  #denied = new Path2D();
  #crowds = new Path2D();
  #waits = new Path2D();
  #crowded;
  #waiting = new Spans(({ left, right, top }) => {
    this.#waits.moveTo(left, top);
    this.#waits.lineTo(right, top);
  });
  #lastBar = Number.NEGATIVE_INFINITY;
  #lastCross = new Map();
  #lastTick = new Map();

  /** Bars are `thick`, crosses twice `half` wide. */
  constructor(thick, half) {
    this.thick = thick;
    this.half = half;
    this.#crowded = new Spans(({ left, right, top }) =>
      this.#crowds.rect(left, top - half / 2, right - left, half),
    );
  }

  /** Adds an allowed hit: a bar, so that the hits of a burst can be distinguished. */
  allow(left, top, high) {
    if (left - this.#lastBar < apart) return;
    this.#lastBar = left;
    this.#allowed.rect(left - this.thick / 2, top - high / 2, this.thick, high);
  }

  /** Adds an allowed reservation: a hollow bar, whose amount is hatched above. */
  reserve(left, top, high) {
    this.#reserved.rect(left - 2.5, top - high / 2, 5, high);
  }

  /** Adds a denied hit: a cross, so that colour is not the only difference; a bar where crosses would overlap. */
  deny(left, top, row = 0) {
    const before = this.#lastCross.get(row);
    this.#lastCross.set(row, left);
    if (left - before < this.half) this.#crowded.add(row, before, left, top);
    else this.#cross(left, top, this.half);
  }

  #cross(left, top, half) {
    this.#denied.moveTo(left - half, top - half);
    this.#denied.lineTo(left + half, top + half);
    this.#denied.moveTo(left - half, top + half);
    this.#denied.lineTo(left + half, top - half);
  }

  /** Adds the wait of a denied hit: a line from the hit to the time at which it would pass. */
  wait(left, right, top, row) {
    this.#waiting.add(row, left, right, top);
    if (Math.abs(right - this.#lastTick.get(row)) < tick) return;
    this.#lastTick.set(row, right);
    this.#waits.moveTo(right, top - tick);
    this.#waits.lineTo(right, top + tick);
  }

  paint({ context, colours }) {
    for (const spans of [this.#waiting, this.#crowded]) spans.end();
    context.lineWidth = 1;
    context.strokeStyle = colours.denied;
    context.globalAlpha = 0.45;
    context.stroke(this.#waits);
    context.globalAlpha = 1;
    context.lineWidth = 1.5;
    context.stroke(this.#denied);
    context.fillStyle = colours.denied;
    context.fill(this.#crowds);
    context.fillStyle = colours.allowed;
    context.fill(this.#allowed);
    context.strokeStyle = colours.allowed;
    context.stroke(this.#reserved);
  }
}
