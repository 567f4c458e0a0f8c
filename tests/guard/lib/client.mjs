import { request } from "node:http";
import { text } from "node:stream/consumers";

/** Makes a request without fetch, which has timers of its own. Headers of the response are by lower-case names. */
export function ask(url, { method = "GET", headers = {}, body, agent, socketPath } = {}) {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent, socketPath }, async (response) => {
      try {
        const { statusCode: status, headers } = response;
        resolve({ status, headers, body: await text(response) });
      } catch (error) {
        reject(error);
      }
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

/** The headers of a limit, without those that are missing. */
export const limitFields = ({ headers }) =>
  Object.fromEntries(
    ["ratelimit-policy", "ratelimit", "retry-after"].flatMap((name) =>
      headers[name] === undefined ? [] : [[name, headers[name]]],
    ),
  );
