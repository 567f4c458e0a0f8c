/** Only here, in memory: it is gone with the page. */
let token;

export const setToken = (given) => {
  token = given;
};

export const hasToken = () => token !== undefined;

/** An answer of the Worker that is not what was asked for. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The API, beside which the page is. */
const base = location.pathname.replace(/[^/]*$/, "v1/");

async function send(path, init = {}) {
  const headers = { Authorization: `Bearer ${token}`, ...init.headers };
  let response;
  try {
    response = await fetch(base + path, { ...init, headers, credentials: "omit", cache: "no-store" });
  } catch {
    throw new Refused(0, "The Worker cannot be reached");
  }
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  throw new Refused(response.status, body.title ?? `The Worker responded with ${response.status}`);
}

export const watch = () => send("watch");

export const why = (fields) => send(`why?${new URLSearchParams(fields)}`);

/** Performs an operation of the API. */
export const act = (operation, item) =>
  send(operation, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(item),
  });
