const rows = 10;
const apart = 0.5;

/** What is drawn of the hits, gathered so that each kind is one stroke, however many there are. */
export class HitPaths {
  #allowed = new Path2D();
  #denied = new Path2D();
  #waits = new Path2D();
  #lines = Array.from({ length: rows }, () => ({
    left: 0,
    right: Number.NEGATIVE_INFINITY,
    end: Number.NaN,
  }));
  #drawn = new Map();

  /** An allowed hit: a bar, so that those of a burst can be told apart. */
  allow(left, top, half, thick) {
    if (this.#isCovered("allowed", left)) return;
    this.#allowed.rect(left - thick / 2, top - half, thick, 2 * half);
  }

  /** A denied hit: a cross, so that colour is not the only difference. */
  deny(left, top, half, row = 0) {
    if (this.#isCovered(row, left)) return;
    this.#denied.moveTo(left - half, top - half);
    this.#denied.lineTo(left + half, top + half);
    this.#denied.moveTo(left - half, top + half);
    this.#denied.lineTo(left + half, top - half);
  }

  /** How long a denied hit must wait: a line from it to when it would pass. Where lines overlap, one stands for all. */
  wait(left, right, top, row) {
    const line = this.#lines[row];
    const start = Math.max(left, line.right);
    if (right > start) {
      this.#waits.moveTo(start, top);
      this.#waits.lineTo(right, top);
      line.right = right;
    }
    if (Math.abs(right - line.end) < apart) return;
    line.end = right;
    this.#waits.moveTo(right, top - 3);
    this.#waits.lineTo(right, top + 3);
  }

  paint({ context, colours }) {
    context.lineWidth = 1;
    context.strokeStyle = colours.denied;
    context.globalAlpha = 0.45;
    context.stroke(this.#waits);
    context.globalAlpha = 1;
    context.lineWidth = 1.5;
    context.stroke(this.#denied);
    context.fillStyle = colours.allowed;
    context.fill(this.#allowed);
  }

  /** Whether one of its kind lies on the same spot already. */
  #isCovered(kind, left) {
    if (left - this.#drawn.get(kind) < apart) return true;
    this.#drawn.set(kind, left);
    return false;
  }
}

/** The rows that denied hits take in turn. */
export const waitRows = rows;
