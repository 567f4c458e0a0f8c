import { readFileSync } from "node:fs";
import { inProject } from "../../../scripts/lib/paths.mjs";

const fence = /^( *)```(.*)\n([\s\S]*?)^ *```$/gm;
const comments = /(?:<!--(?:(?!-->)[\s\S])*-->\s*)+$/;
const comment = /<!--\s*(?:(\w+):)?((?:(?!-->)[\s\S])*?)\s*-->/g;
const directions = ["run", "given", "from"];

/**
 * Every fenced block of a document: where it is, its language and text, and what the comments right before it direct.
 * A block that goes on where the one before stopped is a part of that one.
 */
export function blocksOf(document) {
  const text = readFileSync(inProject(document), "utf8");
  if (text.match(/^ *```/gm)?.length % 2 === 1) throw new Error(`${document}: a block has no end`);
  const blocks = [];
  for (const { 1: indent, 2: language, 3: body, index } of text.matchAll(fence)) {
    const before = text.slice(0, index);
    const line = before.split("\n").length + 1;
    const block = {
      place: `${document}:${line}`,
      document,
      line,
      language: language.trim(),
      text: body.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
      ...directed(before.match(comments)?.[0] ?? "", `${document}:${line}`),
    };
    if (block.run === "continued") blocks.push(continued(blocks.pop(), block));
    else blocks.push(block);
  }
  return blocks;
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
