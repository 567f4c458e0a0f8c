import { globSync, readFileSync } from "node:fs";
import { inProject, root } from "../../../scripts/lib/paths.mjs";

/** The documents, and the source files whose comments are the reference. */
export const documents = [
  "README.md",
  "CONTRIBUTING.md",
  "DESIGN.md",
  ...globSync("docs/*.md", { cwd: root }).sort(),
  ...globSync("js/**/*.ts", { cwd: root }).sort(),
];

const fence = /^( *)```(.*)\n([\s\S]*?)^ *```$/gm;
const comments = /(?:<!--(?:(?!-->)[\s\S])*-->\s*)+$/;
const comment = /<!--\s*(?:(\w+):)?((?:(?!-->)[\s\S])*?)\s*-->/g;
const directions = ["run", "given", "from"];

/**
 * Every fenced block of a document: where it is, its language and text, and what the comments right before it direct.
 * A block that goes on where the one before stopped is a part of that one.
 */
export function blocksOf(document) {
  const text = textOf(document);
  if (text.match(/^ *```/gm)?.length % 2 === 1) throw new Error(`${document}: a block has no end`);
  const blocks = [];
  for (const { 1: indent, 2: language, 3: body, index } of text.matchAll(fence)) {
    const before = text.slice(0, index);
    const line = before.split("\n").length + 1;
    const block = {
      place: `${document}:${line}`,
      name: `${document.replaceAll("/", "-")}-${line}`,
      document,
      line,
      language: language.trim(),
      text: body.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
      ...(document.startsWith("js/cloudflare/") && { run: "worker" }),
      // They need a server; the suite "redis" has one.
      ...(document.startsWith("js/redis/") && { run: "types" }),
      ...directed(before.match(comments)?.[0] ?? "", `${document}:${line}`),
    };
    if (block.run === "continued") blocks.push(continued(blocks.pop(), block));
    else blocks.push(block);
  }
  return blocks;
}

/** Of a source file, its comments as they read. */
function textOf(document) {
  const text = readFileSync(inProject(document), "utf8");
  return document.endsWith(".ts") ? text.replaceAll(/^ *\* ?/gm, "") : text;
}

function directed(text, place) {
  const found = {};
  for (const [, name, value] of text.matchAll(comment)) {
    if (!directions.includes(name))
      throw new Error(`${place}: a comment before a block is <!-- run: …, given: … or from: … -->`);
    found[name] = value.trim();
  }
  return found;
}

/** One program of two blocks, whose lines keep their numbers. */
function continued(first, { text, line, language, place }) {
  if (first?.language !== language) throw new Error(`${place}: there is nothing to go on from`);
  const gap = line - first.line - first.text.split("\n").length + 1;
  return { ...first, text: first.text + "\n".repeat(gap) + text };
}
