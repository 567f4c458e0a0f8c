const arrow = 4;
/** The gap between two labels. */
const apart = 8;

const labels = {
  settled: ({ charged, back }) =>
    [charged > 0 && `${charged} settled`, back > 0 && `${back} back`].filter(Boolean).join(", ") || "settled",
  cancelled: ({ back }) => `${back} back`,
  expired: ({ amount }) => `${amount} expired`,
  refunded: ({ back }) => `${back} refunded`,
};

/** Paints settled, expired and refunded amounts: the charged part as a bar, the rest as an arrow, and a label below. */
export function paintChanges(brush, top) {
  const { context, colours, x, changes, font } = brush;
  context.font = font;
  context.textBaseline = "top";
  context.textAlign = "left";
  let free = brush.box.right;
  // The newest first: if labels would overlap, only the newest is painted.
  for (const change of changes.toReversed()) {
    const words = labels[change.what]?.(change);
    if (words === undefined) continue;
    const colour = change.what === "expired" ? colours.denied : colours.level;
    paintCharged(brush, change, colour);
    if (change.back > 0) paintBack(brush, change);
    const width = context.measureText(words).width;
    const left = Math.max(Math.min(x(change.at) - width / 2, free - width), brush.box.left);
    // Beside the next label at the most, not far from its own change.
    if (left + width > free || left + width < x(change.at) - apart) continue;
    context.fillStyle = change.charged > 0 ? colour : colours.allowed;
    context.fillText(words, left, top);
    free = left - apart;
  }
}

/** Paints the charged part. It was open before, so it ends at the current level. */
function paintCharged({ context, x, y, isStock }, { at, charged, to }, colour) {
  if (!charged) return;
  const [one, other] = isStock ? [to, to + charged] : [to, to - charged];
  context.fillStyle = colour;
  context.fillRect(x(at) - 1.5, Math.min(y(one), y(other)), 3, Math.abs(y(one) - y(other)));
}

function paintBack({ context, x, y, colours }, { at, from, to }) {
  const [left, start, end] = [x(at), y(from), y(to)];
  const back = end > start ? -arrow : arrow;
  context.beginPath();
  context.moveTo(left, start);
  context.lineTo(left, end);
  context.moveTo(left - arrow, end + back);
  context.lineTo(left, end);
  context.lineTo(left + arrow, end + back);
  context.strokeStyle = colours.allowed;
  context.lineWidth = 1.5;
  context.stroke();
}
