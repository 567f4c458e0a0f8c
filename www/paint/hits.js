/** An allowed hit: a bar, so that those of a burst can be told apart. */
export function paintAllowed({ context, colours, box }, left, top, half) {
  const thick = box.right < 500 ? 1 : 2;
  context.fillStyle = colours.allowed;
  context.fillRect(left - thick / 2, top - half, thick, 2 * half);
}

/** A denied hit: a cross, so that colour is not the only difference. */
export function paintDenied({ context, colours }, left, top, radius) {
  context.beginPath();
  context.moveTo(left - radius, top - radius);
  context.lineTo(left + radius, top + radius);
  context.moveTo(left - radius, top + radius);
  context.lineTo(left + radius, top - radius);
  context.strokeStyle = colours.denied;
  context.lineWidth = 1.5;
  context.stroke();
}

/** How long a denied hit must wait: a line from it to when it would pass. */
export function paintWait({ context, colours }, left, right, top) {
  context.beginPath();
  context.moveTo(left, top);
  context.lineTo(right, top);
  context.moveTo(right, top - 3);
  context.lineTo(right, top + 3);
  context.strokeStyle = colours.denied;
  context.globalAlpha = 0.45;
  context.lineWidth = 1;
  context.stroke();
  context.globalAlpha = 1;
}
