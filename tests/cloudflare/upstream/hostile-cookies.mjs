import { seeded } from "../../lib/random.mjs";

/** Headers in which some server finds the cookie `id` with the value `abc`, and another one does not. */
export const hostile = [
  "id=abc",
  "id=r1; id=abc",
  "id=abc; id=r1",
  "id=; id=abc",
  'id=""; id=abc',
  'id="\\141bc"',
  'id="\\abc"',
  'id="a\\142c"',
  "x=1 id=abc",
  "x=1\tid=abc",
  "x=1 id =abc",
  "x=1, id=abc",
  "id=abc, x=1",
  "id=abc x=1",
  "id=abc;",
  ";id=abc",
  "id=%61bc",
  'id="%61bc"',
  "%69d=abc",
  "ID=abc",
  "id=r1; ID=abc",
  "ID=abc; id=r1",
  "+id=abc",
  "id%00x=abc",
  'x="; id=abc; "',
  'x="; id=r1; "; id=abc',
  'id="r1; id=abc',
  'id="abc;x"',
  "$Version=1; id=abc; $Path=/",
  "id=r1; $x=1; id=abc",
  "id\x1f=abc",
  "\x1fid=abc",
  "id=abc\x1f",
  "id=abc\xa0",
  "id=\x85abc",
  "x=\xa0id=abc",
  "id=r1; %69d=abc",
  "%69d=abc; id=r1",
  "id=abc%00r1",
  "id[]=r1; id=abc",
  "id=r1\r\nCookie: id=abc",
  "id=abc\r\nCookie: id=r1",
  "x=1\r\nCookie: id=abc",
  "id=abc\r\nCookie: x=1",
];

const words = [
  "id",
  "id=",
  "id=abc",
  "id=r1",
  "ID=abc",
  "%69d=abc",
  "abc",
  '"abc"',
  '"\\141bc"',
  '"\\abc"',
  "%61bc",
  "r1",
  "x",
  "x=1",
  'x="',
  "$Version=1",
  "path=/",
  "secure",
];
const gaps = [
  ";",
  "; ",
  " ; ",
  ",",
  ", ",
  " ",
  "\t",
  "=",
  " = ",
  '"',
  "\\",
  "\x0b",
  "\x1f",
  "\xa0",
  "+",
  "%20",
  "[]",
  "&",
  "",
];

/** Returns so many headers of such parts, the same for the same seed. */
export function fuzzed(count, seed) {
  const below = seeded(seed);
  const one = (list) => list[below(list.length)];
  return Array.from({ length: count }, () => {
    let header = one(words);
    for (let parts = 1 + below(5); parts > 0; parts -= 1) header += one(gaps) + one(words);
    return header;
  });
}
