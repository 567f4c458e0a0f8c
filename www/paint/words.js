/** Writes over lines: on the colour of the card, so that it can be read. */
export function write({ context, colours: { card } }, words, left, top, colour) {
  context.strokeStyle = card;
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.strokeText(words, left, top);
  context.fillStyle = colour;
  context.fillText(words, left, top);
}

export const small = "12px ui-sans-serif, system-ui, sans-serif";
export const bold = "600 12px ui-sans-serif, system-ui, sans-serif";
export const large = "620 14px ui-sans-serif, system-ui, sans-serif";
