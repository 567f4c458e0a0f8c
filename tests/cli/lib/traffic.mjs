import { seeded } from "../../../www/traffic/random.js";

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Requests of some clients in whole seconds, of which the first is the busiest. */
export function traffic({
  hits = 2_000,
  clients = 12,
  seed = 1,
  start = Date.UTC(2026, 9, 10, 23, 50),
} = {}) {
  const random = seeded(seed);
  let time = start;
  return Array.from({ length: hits }, () => {
    time += 1_000 * Math.floor(random() * 3);
    const client = Math.floor(random() ** 2 * clients);
    return {
      time,
      ip: `192.0.2.${client}`,
      user: client % 3 === 0 ? `user ${client}` : undefined,
      path: `/items/${Math.floor(random() * 4)}`,
      bytes: Math.floor(random() * 5),
    };
  });
}

/** `10/Oct/2026:13:55:36 +0000`, in any zone. */
export function commonTime(time, minutes = 0) {
  const local = new Date(time + minutes * 60_000);
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  const sign = minutes < 0 ? "-" : "+";
  const zone = `${sign}${two(Math.abs(minutes) / 60)}${two(Math.abs(minutes) % 60)}`;
  const day = `${two(local.getUTCDate())}/${months[local.getUTCMonth()]}/${local.getUTCFullYear()}`;
  return `${day}:${local.toISOString().slice(11, 19)} ${zone}`;
}

const request = ({ path, bytes }) => `"GET ${path}?a=1 HTTP/1.1" 200 ${bytes}`;

/** The same requests as each kind of server logs them. */
export const formats = {
  common: (hit) => `${hit.ip} - ${hit.user ?? "-"} [${commonTime(hit.time)}] ${request(hit)}`,
  combined: (hit) =>
    `${hit.ip} - ${hit.user ?? "-"} [${commonTime(hit.time, -90)}] ${request(hit)} "-" "agent \\"with\\" [quotes]"`,
  virtualHost: (hit) => `www.example.com:443 ${formats.combined(hit)}`,
  json: ({ time, ...hit }) => JSON.stringify({ ...hit, time: new Date(time).toISOString() }),
  jsonSeconds: ({ time, ip, ...hit }) => JSON.stringify({ ts: time / 1_000, remote_addr: ip, ...hit }),
  csv: ({ time, ip, user = "", path, bytes }) =>
    `${new Date(time).toISOString().slice(0, 19).replace("T", " ")},${ip},"${user}","${path}",${bytes}`,
};

const heads = { csv: "time,ip,user,path,bytes\n" };

/** A whole log. */
export const logOf = (hits, format = "combined") =>
  `${heads[format] ?? ""}${hits.map((hit) => `${formats[format](hit)}\n`).join("")}`;
