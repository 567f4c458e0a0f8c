// What the documents use of curl, for machines that have none: an option that is not known here fails.
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    header: { type: "string", short: "H", multiple: true, default: [] },
    data: { type: "string", short: "d" },
  },
});
const [url, ...more] = positionals;
if (more.length > 0) throw new Error(`one address, please: ${more}`);

const headers = new Headers(values.header.map((line) => line.match(/^([^:]+):\s*(.*)$/).slice(1)));
const sends = values.data !== undefined;
if (sends && !headers.has("Content-Type")) headers.set("Content-Type", "application/x-www-form-urlencoded");
const response = await fetch(url, { method: sends ? "POST" : "GET", headers, body: values.data });
console.log(await response.text());
if (!response.ok) throw new Error(`${response.status}`);
