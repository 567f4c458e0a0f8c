import { once } from "node:events";
import { argv, stdout } from "node:process";
import { seeded } from "../../www/traffic/random.js";

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const agent =
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
const batch = 10_000;

const two = (number) => String(number).padStart(2, "0");

function stamp(seconds) {
  const date = new Date(seconds * 1_000);
  const day = `${two(date.getUTCDate())}/${months[date.getUTCMonth()]}/${date.getUTCFullYear()}`;
  return `${day}:${date.toISOString().slice(11, 19)} +0000`;
}

/** An address of 10.0.0.0/8 by its number. */
const address = (number) => `10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`;

/**
 * Yields the lines of a log in batches: so many clients, of which few are busy, about a hundred requests a second, a
 * quiet night, and now and then one client who asks for everything at once.
 */
export function* logLines({ lines, keys, seed = 7, json = false }) {
  const random = seeded(seed);
  let time = Date.UTC(2026, 9, 10) / 1_000;
  let [burst, client] = [0, 0];
  let [second, written] = [-1, ""];
  for (let at = 0, list = []; at < lines; at += 1) {
    const day = 1.2 - Math.cos((time / 86_400) * 2 * Math.PI);
    time += (random() * 0.02) / day;
    if (burst === 0 && random() < 0.0002)
      [burst, client] = [Math.floor(random() * 600), Math.floor(random() * keys)];
    const key = burst > 0 && random() < 0.7 ? client : Math.floor(random() ** 3 * keys);
    burst = Math.max(0, burst - 1);
    if (Math.floor(time) !== second) {
      second = Math.floor(time);
      written = stamp(second);
    }
    const path = `/api/items/${at % 997}`;
    list.push(
      json
        ? `{"time":"${new Date(second * 1_000).toISOString()}","ip":"${address(key)}","method":"GET","path":"${path}","status":200,"bytes":${at % 5_000},"agent":"${agent}"}`
        : `${address(key)} - - [${written}] "GET ${path}?page=${at % 13} HTTP/1.1" 200 ${at % 5_000} "https://example.com/list" "${agent}"`,
    );
    if (list.length === batch || at === lines - 1) {
      yield `${list.join("\n")}\n`;
      list = [];
    }
  }
}

/** Writes a log to a stream, as fast as that takes it. */
export async function writeLog(stream, options) {
  for (const text of logLines(options)) if (!stream.write(text)) await once(stream, "drain");
}

if (argv[1] === import.meta.filename) {
  const [lines, keys] = argv.slice(2).map(Number);
  await writeLog(stdout, { lines, keys });
}
