import { count, counted, moment, span } from "../../access-log/words.ts";
import { printable } from "../../printable.ts";
import { fitted, width } from "./columns.ts";
import { type Order, ordered, usedShare } from "./order.ts";
import type { GroupRow, KeyRow, Snapshot } from "./snapshot.ts";

/** What the user has chosen, and the size of the terminal. */
export interface ViewState {
  readonly columns: number;
  /** How many lines there are; infinity for all rows. */
  readonly lines: number;
  readonly isColoured: boolean;
  readonly order: Order;
  readonly filter: string;
  /** Whether the filter is being typed. */
  readonly isTyping: boolean;
  readonly isPaused: boolean;
  readonly isHelping: boolean;
  /** How many rows are scrolled past. */
  readonly offset: number;
  /** An error of the last refresh; empty if there was none. */
  readonly error: string;
  /** Whether keys are listened to. */
  readonly isInteractive: boolean;
}

/** How a cell is shown. */
type Style = "plain" | "bold" | "dim" | "red" | "yellow";

const codes: Readonly<Record<Style, string>> = { plain: "", bold: "1", dim: "2", red: "31", yellow: "33" };

type Cell = readonly [text: string, style: Style];

/** A column of a table. The one of the highest rank is left out first where there is no room. */
interface Column<Row> {
  readonly title: string;
  readonly side: "left" | "right";
  readonly rank: number;
  readonly order?: Order;
  /** The least columns, for the one that takes what is left. */
  readonly least?: number;
  cell(row: Row): Cell;
}

const whole = (number: number | null): string => (number === null ? "–" : count(number));

/** Returns a number of times a second. */
function perSecond(rate: number | null): string {
  if (rate === null) return "–";
  if (rate === 0) return "·";
  return rate > 0 && rate < 9.95 ? rate.toFixed(1) : count(Math.round(rate));
}

const marked = (number: number | null, style: Style): Cell => [
  number === 0 ? "·" : whole(number),
  number ? style : "dim",
];

/** Returns the columns of keys, of those that the snapshot has something for. */
function keyColumns({ keys, at }: Snapshot): Column<KeyRow>[] {
  const left = (until: number | null) => (until === null || until <= at ? "·" : span(roundedUp(until - at)));
  const has = (value: (row: KeyRow) => unknown) => keys.some((row) => Boolean(value(row)));
  const all: (Column<KeyRow> | undefined)[] = [
    {
      title: "key",
      side: "left",
      rank: 0,
      order: "key",
      least: 16,
      cell: ({ key }) => [printable(key), "plain"],
    },
    has(({ limiter }) => limiter !== keys[0]?.limiter)
      ? { title: "limiter", side: "left", rank: 5, cell: ({ limiter }) => [printable(limiter), "plain"] }
      : undefined,
    { title: "policy", side: "left", rank: 4, cell: ({ policy }) => [printable(policy), "plain"] },
    {
      title: "used",
      side: "right",
      rank: 1,
      order: "used",
      cell: (row) => [
        row.used === null ? "–" : `${count(row.used)} of ${whole(row.limit)}`,
        usedShare(row) >= 1 ? "yellow" : "plain",
      ],
    },
    has(({ rate }) => rate !== null)
      ? {
          title: "used/s",
          side: "right",
          rank: 3,
          order: "rate",
          cell: ({ rate }) => [perSecond(rate), "plain"],
        }
      : undefined,
    {
      title: "denied",
      side: "right",
      rank: 2,
      order: "denied",
      cell: ({ denied, deniedError = 0 }) =>
        deniedError === 0
          ? marked(denied, "red")
          : [`${count(denied - deniedError)}–${count(denied)}`, "red"],
    },
    {
      title: "banned",
      side: "right",
      rank: 6,
      order: "banned",
      cell: ({ bannedUntil }) => [left(bannedUntil), bannedUntil > at ? "red" : "dim"],
    },
    has(({ reservations, leases }) => reservations !== null || leases !== null)
      ? {
          title: "reserved",
          side: "right",
          rank: 7,
          order: "held",
          cell: ({ reservations }) => marked(reservations, "plain"),
        }
      : undefined,
    has(({ leases }) => leases !== null)
      ? { title: "leases", side: "right", rank: 8, cell: ({ leases }) => marked(leases, "plain") }
      : undefined,
    has(({ endsAt }) => endsAt !== null)
      ? { title: "ends in", side: "right", rank: 9, cell: ({ endsAt }) => [left(endsAt), "dim"] }
      : undefined,
  ];
  return all.filter((column) => column !== undefined);
}

/** Returns a duration without digits that change all the time. */
function roundedUp(time: number): number {
  const unit = [86_400_000, 3_600_000, 60_000, 1_000].find((length) => time >= length * 2) ?? 1_000;
  return Math.ceil(time / unit) * unit;
}

function groupColumns(groups: readonly GroupRow[]): Column<GroupRow>[] {
  const isOfKeys = groups.some(({ keys }) => keys !== null);
  const columns: Column<GroupRow>[] = [
    {
      title: isOfKeys ? "limiter" : "rule",
      side: "left",
      rank: 0,
      ...(isOfKeys ? {} : { least: 16 }),
      cell: ({ name }) => [printable(name), "bold"],
    },
    {
      title: "policies",
      side: "left",
      rank: 5,
      ...(isOfKeys ? { least: 12 } : {}),
      cell: ({ policies }) => [printable(policies), "plain"],
    },
    {
      title: isOfKeys ? "used/s" : "allowed/s",
      side: "right",
      rank: 1,
      cell: ({ rate }) => [perSecond(rate), "plain"],
    },
    {
      title: "denied/s",
      side: "right",
      rank: 2,
      cell: ({ denialRate }) => [perSecond(denialRate), denialRate ? "red" : "plain"],
    },
  ];
  if (!isOfKeys) return columns;
  return [
    ...columns,
    { title: "keys", side: "right", rank: 3, cell: ({ keys }) => [whole(keys), "plain"] },
    { title: "banned", side: "right", rank: 4, cell: ({ banned }) => marked(banned, "red") },
    { title: "reserved", side: "right", rank: 6, cell: ({ reservations }) => marked(reservations, "plain") },
    { title: "leases", side: "right", rank: 7, cell: ({ leases }) => marked(leases, "plain") },
  ];
}

/** How many groups are shown at most. */
const maxGroups = 6;

/** Returns the lines of a snapshot. None is longer than the terminal is wide. */
export function view(snapshot: Snapshot | undefined, state: ViewState): string[] {
  const paint = (text: string, style: Style) =>
    state.isColoured && codes[style] !== "" ? `\x1b[${codes[style]}m${text}\x1b[0m` : text;
  const line = (text: string, style: Style = "plain") =>
    paint(fitted(printable(text), state.columns).trimEnd(), style);
  const foot = footOf(state).map(([text, style]) => line(text, style));
  if (snapshot === undefined) return [line("tollgate top", "bold"), line("reading …", "dim"), ...foot];
  if (state.isHelping) return [line("tollgate top", "bold"), "", ...help.map((text) => line(text)), ...foot];
  const { at, source, coverage, groups, keys, deniedSince } = snapshot;
  const title = `tollgate top  ${source}  ${moment(at)} UTC${state.isPaused ? "  PAUSED" : ""}`;
  const head = [line(title, "bold"), line(coverage, "dim"), ""];
  const shownGroups = groups.slice(0, Math.min(maxGroups, Math.max(1, Math.floor(state.lines / 4))));
  if (shownGroups.length > 0) {
    head.push(...table(groupColumns(groups), shownGroups, groups, state, paint));
    if (groups.length > shownGroups.length)
      head.push(line(`and ${groups.length - shownGroups.length} more`, "dim"));
    head.push("");
  }
  const rows = ordered(keys, state.order, state.filter);
  const room = state.lines - head.length - foot.length - 2;
  const from = Math.max(0, Math.min(state.offset, rows.length - Math.max(1, room)));
  const visible = rows.slice(from, from + Math.max(1, room));
  const body = table(keyColumns(snapshot), visible, rows, state, paint);
  const range =
    rows.length === 0
      ? state.filter === ""
        ? "no keys"
        : `none of ${count(keys.length)} keys has ${JSON.stringify(state.filter)}`
      : `${count(from + 1)} to ${count(from + visible.length)} of ${counted(rows.length, "key")}; denied: ${deniedSince}`;
  return [...head, ...body, line(range, "dim"), ...foot];
}

function footOf({ isTyping, filter, error, isInteractive, columns }: ViewState): [string, Style][] {
  const lines: [string, Style][] = error === "" ? [] : [[error, "red"]];
  if (isTyping) return [...lines, [`filter: ${printable(filter)}▏  Enter keeps it, Esc clears it`, "plain"]];
  if (!isInteractive) return lines;
  const chosen = filter === "" ? "" : `filter: ${printable(filter)}  `;
  const long = `${chosen}q quit  p pause  / filter  d r u b h k sort  ↑↓ scroll  ? help`;
  return [...lines, [width(long) <= columns ? long : `${chosen}q quit  p pause  / filter  ? help`, "dim"]];
}

const help = [
  "d  most denied first        r  most used a second first",
  "u  most used of the limit   b  banned for longest",
  "h  most reservations held   k  by key",
  "/  shows keys, limiters and policies with a text; Esc clears it",
  "p  or space: pauses         ↑ ↓ PgUp PgDn Home End: scroll",
  "?  this help                q  quits",
];

/** Returns a table with its head, whose columns are as wide as those of all rows need. */
function table<Row>(
  columns: readonly Column<Row>[],
  visible: readonly Row[],
  all: readonly Row[],
  state: ViewState,
  paint: (text: string, style: Style) => string,
): string[] {
  const title = ({ title, order }: Column<Row>) => (order === state.order ? `${title} ▼` : title);
  // Of very many rows, those that are visible decide.
  const measured = all.length > 200 ? visible : all;
  const widths = new Map(
    columns.map((column) => [
      column,
      Math.max(width(title(column)), ...measured.map((row) => width(column.cell(row)[0]))),
    ]),
  );
  const left = [...columns];
  const needed = () =>
    left.reduce((sum, column) => sum + (column.least ?? widths.get(column) ?? 0), 2 * (left.length - 1));
  while (left.length > 1 && needed() > state.columns) {
    const last = left.reduce((one, other) => (other.rank > one.rank ? other : one));
    left.splice(left.indexOf(last), 1);
  }
  const flexible = left.find(({ least }) => least !== undefined) ?? left[0];
  if (flexible !== undefined) {
    const others = left.filter((column) => column !== flexible);
    const used = others.reduce((sum, column) => sum + (widths.get(column) ?? 0), 2 * others.length);
    widths.set(flexible, Math.max(1, Math.min(widths.get(flexible) ?? 0, state.columns - used)));
  }
  const row = (cells: readonly Cell[]) =>
    cells
      .map(([text, style], at) => {
        const column = left[at] as Column<Row>;
        return paint(fitted(text, widths.get(column) ?? 0, column.side), style);
      })
      .join("  ")
      .trimEnd();
  return [
    row(left.map((column) => [title(column), "dim"])),
    ...visible.map((each) => row(left.map((column) => column.cell(each)))),
  ];
}
