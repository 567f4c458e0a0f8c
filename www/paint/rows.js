import { burstsOf, paintCounts, rowsOf } from "./bursts.js";
import { HitPaths } from "./hits.js";

/** Paints allowed hits in one row, and denied ones in as many rows below it as they need. Returns the position of each. */
export function paintRows(brush, { allowedTop, deniedTop, high, thick, half, mostRows, rowHeight }) {
  const { hits, x } = brush;
  const paths = new HitPaths(thick, half);
  const denied = hits.filter(({ allowed }) => !allowed).map(({ at }) => x(at));
  const bursts = burstsOf(denied, half, mostRows);
  const rows = rowsOf(bursts);
  const marks = hits.map((hit) => {
    const left = x(hit.at);
    if (hit.allowed) {
      paths[hit.reserved ? "reserve" : "allow"](left, allowedTop, high);
      return { hit, x: left, y: allowedTop };
    }
    const row = rows.shift();
    const top = deniedTop + row * rowHeight;
    paths.deny(left, top, row);
    return { hit, x: left, y: top };
  });
  paths.paint(brush);
  paintCounts(brush, bursts, deniedTop + rowHeight);
  return marks;
}
