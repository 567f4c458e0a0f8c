import { execFileSync, spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { inProject } from "../../../scripts/lib/paths.mjs";

const require = createRequire(import.meta.url);

/** The `cookie` package in every version that some framework here brings, and Hono's own parser. */
const packages = {
  "the package cookie": require("cookie"),
  "the package cookie in Express": createRequire(require.resolve("express"))("cookie"),
  "the package cookie in Fastify's tests": createRequire(
    createRequire(require.resolve("fastify")).resolve("light-my-request"),
  )("cookie"),
};
const { parse: parseHono } = await import("hono/utils/cookie");

const decodedOrNot = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** Decodes what can be decoded, byte by byte, as PHP does. */
const decodedBytes = (text) =>
  text.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));

/** Rack: separators, the first of a name, form decoding. Versions before 2.2.3 decode names too. */
const rack = (separator, decodesNames) => (header) => {
  for (const pair of header.split(separator)) {
    const [name, value = ""] = splitAt(pair, "=");
    const form = (text) => decodedOrNot(text.replaceAll("+", " "));
    if ((decodesNames ? form(name) : name) === "id") return form(value);
  }
  return undefined;
};

/** PHP: replaces what stands in no name of a variable; the first of a name. Versions before 7.4.11 decode names too. */
const php = (decode) => (header) => {
  for (const pair of header.split(";")) {
    const [written, value] = splitAt(pair.replace(/^[ \t\n\v\f\r]+/, ""), "=");
    const name = decode(written).replace(/^ +/, "").split("\0")[0];
    if (name.replace(/[ .]/g, "_").split("[")[0] === "id") return decodedBytes(value ?? "");
  }
  return undefined;
};

/** A server that ends a cookie at `;` and `,`, as ASP.NET and old Java servers do, and ignores the case of names. */
const commas = (which) => (header) => {
  const values = header
    .split(/[;,]/)
    .map((pair) => splitAt(pair, "="))
    .filter(([name]) => name.trim().toLowerCase() === "id")
    .map(([, value = ""]) => value.trim().replace(/^"(.*)"$/, "$1"));
  return values.at(which);
};

function splitAt(text, separator) {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + separator.length)];
}

/** Readers that are written here by the rules of their servers. */
const own = {
  "Rack 3": rack(/; */, false),
  "Rack 2.0": rack(/[;,] */, true),
  "PHP 8": php((name) => name),
  "PHP 7.3": php((name) => decodedBytes(name.replaceAll("+", " "))),
  "a server that splits at commas, first": commas(0),
  "a server that splits at commas, last": commas(-1),
};

/** Whether there is a Python to ask. */
export const hasPython = spawnSync("python3", ["--version"]).status === 0;

/**
 * Reads the cookie `id` in each header as each server does: lists of values by the names of the servers. Headers are
 * texts of bytes. `missing` names the servers that this machine does not have.
 */
export function readAll(headers) {
  const values = {};
  const missing = [];
  const parsers = {
    ...Object.fromEntries(
      Object.entries(packages).map(([name, { parse, parseCookie = parse }]) => [
        name,
        (header) => parseCookie(header).id,
      ]),
    ),
    Hono: (header) => parseHono(header).id,
    "Hono, by name": (header) => parseHono(header, "id").id,
    ...own,
  };
  for (const [name, read] of Object.entries(parsers)) values[name] = headers.map(read);
  if (!hasPython) return { values, missing: ["python3"] };
  const input = JSON.stringify(headers);
  const output = execFileSync("python3", [inProject("tests/cloudflare/upstream/cookie-readers.py")], {
    input,
    maxBuffer: 2 ** 30,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const python = JSON.parse(output);
  return { values: { ...values, ...python.values }, missing: [...missing, ...python.missing] };
}
