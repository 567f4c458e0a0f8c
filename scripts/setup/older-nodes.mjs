import { delimiter, join } from "node:path";
import { outputOf } from "../lib/run.mjs";
import { fromNpm } from "./from-npm.mjs";

/** The npm packages that hold the programs of Node. */
const isNewMac = process.platform === "darwin" && process.arch === "arm64";
const holder = `${isNewMac ? "node-bin" : "node"}-${process.platform}-${process.arch}`;

const isMajor = (program, major) => outputOf(program, ["--version"])?.startsWith(`v${major}.`) ?? false;

/** Returns the step of an older Node: one that the machine has, or npm's. */
const olderNode = (major, version) =>
  fromNpm({
    id: `node${major}`,
    name: `Node ${major}`,
    what: "50 MB, a few seconds",
    packages: { [holder]: version },
    installed() {
      const programs = process.env.PATH.split(delimiter).map((folder) => join(folder, "node"));
      const program = programs.find((each) => isMajor(each, major));
      return program ? { program } : null;
    },
    result: (modules) => ({ program: join(modules, holder, "bin/node") }),
    works: ({ program }) => isMajor(program, major),
  });

/** The versions of Node on which the package is tested, beside that of package.json. */
export const node20 = olderNode(20, "20.20.2");
export const node22 = olderNode(22, "22.23.3");
