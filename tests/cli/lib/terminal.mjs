// A terminal in which a program runs: a session of tmux, on a server of its own.

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { inProject } from "../../../scripts/lib/paths.mjs";
import { tmux as step } from "../../../scripts/setup/tmux.mjs";
import { folderWith } from "./tollgate.mjs";

const run = promisify(execFile);

/** How long a screen is waited for, in milliseconds: only a test that hangs takes so long. */
const limit = 60_000;

/** Starts the command in a terminal. The last line then says with which code it ended. */
export async function openTerminal(t, args, { columns = 100, lines = 30, env = {} } = {}) {
  const program = step.check();
  if (program === null) throw new Error("there is no tmux; the set-up step of the tests unpacks it");
  const socket = `tollgate-${randomUUID()}`;
  const tmux = async (...args) =>
    (await run(program, ["-L", socket, "-f", "/dev/null", "-u", ...args], options)).stdout;
  const options = { env: { ...process.env, LC_ALL: "C.UTF-8", ...env }, maxBuffer: 1 << 24 };
  const at = folderWith(t, {});
  const quoted = [process.execPath, inProject("dist/command.js"), ...args]
    .map((word) => `'${word}'`)
    .join(" ");
  // The shell writes its process, which then is the command.
  const script = `sh -c 'echo $$ >"$0"; exec "$@"' '${at("pid")}' ${quoted}; echo "exit code $?"; exec sleep 1000`;
  await tmux("new-session", "-d", "-x", String(columns), "-y", String(lines), script);
  t.after(() => tmux("kill-server").catch(() => {}));
  const screen = (...flags) => tmux("capture-pane", "-p", ...flags);
  return {
    /** Returns what is shown. With `-e`, with its colours. */
    screen,
    /** Waits until a pattern is shown, and returns the screen. */
    async until(pattern) {
      const end = Date.now() + limit;
      for (;;) {
        const shown = await screen();
        if (pattern.test(shown)) return shown;
        if (Date.now() > end) throw new Error(`${pattern} is not shown:\n${shown}`);
      }
    },
    press: (...keys) => tmux("send-keys", ...keys),
    resize: (columns, lines) => tmux("resize-window", "-x", String(columns), "-y", String(lines)),
    /** Returns whether the alternate screen is shown. */
    isAlternate: async () => (await tmux("display-message", "-p", "#{alternate_on}")).trim() === "1",
    /** Sends a signal to the command. */
    signal: (name) => process.kill(Number(readFileSync(at("pid"), "utf8")), name),
  };
}
