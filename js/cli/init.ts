import type { Command } from "./command.ts";
import { exit } from "./errors.ts";

export const init: Command = {
  name: "init",
  summary: "Writes a Worker to deploy",
  usage: "[folder]",
  options: {},
  run: async () => exit.ok,
};
