/** What may stand between two segments: what some server takes for a slash, and what some server takes away. */
const separators = [
  "/",
  "//",
  "%2f",
  "%2F",
  "%252f",
  "\\",
  "%5c",
  "%255C",
  "/./",
  "/%2e/",
  "%2f.%2f",
  ";/",
  ";v=1/",
  "%3b/",
  "%3bv%2f",
  "/;/",
];

/** What some server takes for `..`. */
const dots = ["..", "%2e%2e", ".%2E", "%252e%252e", "..;", "..;v=1", "%2e%2e%3b", "..%3Bx"];

/** Ways to spell one segment. */
const segmentSpellings = [
  (segment) => segment,
  (segment) => segment.toUpperCase(),
  (segment) => escaped(segment, 0, "%"),
  (segment) => escaped(segment, segment.length - 1, "%25"),
  (segment) => escaped(escaped(segment, segment.length - 1, "%"), 0, "%"),
  (segment) => `${segment};v=1`,
  (segment) => `${segment}%3bv`,
];

function escaped(segment, at, percent) {
  return segment.slice(0, at) + percent + segment.charCodeAt(at).toString(16) + segment.slice(at + 1);
}

/** Paths that a handler is meant for, as segments. */
const plain = [["api", "search"], ["login"], ["users", "42", "files"], ["public", "a"], ["other"]];

/** Ways to end a path. */
const ends = ["", "/", "%2f", ";", "//", "/.", "%2f..%2fx", "?q=1", "%3fq", "%23", "%00", "."];

/** One path in many spellings: each segment, each separator and the end in turn, beside those in two places at once. */
function* spelledPath(segments) {
  for (const spelling of segmentSpellings)
    for (const at of segments.keys())
      for (const separator of separators)
        for (const end of ends) {
          const spelled = segments.map((segment, position) =>
            position === at ? spelling(segment) : segment,
          );
          yield `/${spelled.join(separator)}${end}`;
          if (at > 0)
            yield `/${spelled.slice(0, at).join("/")}${separator}${spelled.slice(at).join("/")}${end}`;
        }
  for (const separator of separators) yield `/${separator}${segments.join("/")}`;
}

/** A path that goes up and down again, from one place to another: `/public/..%2fapi`. */
function* detours() {
  for (const from of plain)
    for (const to of plain)
      for (const separator of separators)
        for (const dot of dots)
          for (const other of ["/", separator]) {
            const up = new Array(from.length).fill(dot).join(separator);
            yield `/${from.join("/")}${other}${up}${separator}${to.join("/")}`;
            yield `/${from.join("/")}/${up}${other}${to.join(separator)}`;
          }
}

/** A path that leaves where it is by the reading of some servers only: `/api/search/x%2f..%2f..%2f..`. */
function* departures() {
  for (const from of plain)
    for (const separator of separators)
      for (const dot of dots)
        for (const times of [1, 2, 3, 4])
          for (const last of ["", "x", "public/x", "login"]) {
            const up = new Array(times).fill(dot).join(separator);
            yield `/${from.join("/")}/${up}${separator}${last}`;
            yield `/${from.join("/")}/x${separator}${up}${last && `/${last}`}`;
          }
}

/** There and back, by two kinds of steps: `/public/..%2fapi/..%5cpublic`. */
function* returns() {
  for (const [from, to] of [
    ["public", "api"],
    ["public", "login"],
    ["api", "login"],
    ["api", "users/42/files"],
  ])
    for (const there of separators)
      for (const back of separators)
        for (const dot of ["..", "%2e%2e", "..;"])
          for (const other of ["..", "%252e%252e", "..;"])
            yield `/${from}/${dot}${there}${to}/${other}${back}${from}/x`;
}

/** A segment that is two to some servers and one to others: `/users/4%2f2/files`, `/users/;42/files`. */
function* inner() {
  for (const separator of separators)
    for (const id of [`4${separator}2`, `${separator}42`, `42${separator}`, separator])
      for (const users of ["users", "%75sers", "USERS", "user%73"])
        for (const files of ["files", "file%73", "files;v", "files/"]) yield `/${users}/${id}/${files}`;
}

/** Characters that some server once dropped, or took for a slash or a dot: overlong, wide, or of its own escapes. */
const odd = [
  "%00",
  "%0a",
  "%09",
  "%20",
  "%a0",
  "%c0%af",
  "%c0%ae",
  "%ef%bc%8f",
  "%u002f",
  "%2",
  "%",
  "+",
  "~",
  ":",
  "@",
  "*",
];

/** A path with such a character at every place. */
function* oddities() {
  for (const segments of plain)
    for (const character of odd)
      for (const at of segments.keys())
        for (const spelled of [
          `${character}${segments[at]}`,
          `${segments[at]}${character}`,
          `${segments[at]}/${character}`,
        ])
          yield `/${segments.with(at, spelled).join("/")}`;
}

/** The spellings that were found to pass by hand, and their kin. */
const found = [
  "/api/search/x%2f..%2f..%2f..%2f..",
  "/api/search/..%5c..%5c..%5cx",
  "/api/..;/x",
  "/api/%252e%252e/x",
  "/users/4%2f2/files",
  "/users/;42/files",
  "/api/..%2flogin",
  "/public/..%2fapi/..%5cpublic",
  "/public/%2e%2e%2fapi%2f%252e%252e%2fpublic",
  "/public/..%2fapi/..;/public/x",
  "/Login",
  "/API/x",
  "/PUBLIC/x",
  "/login/",
  "/users//files",
  "/users/",
];

/** All spellings, each once, without the line breaks and blanks that would end a request's target. */
export function spellings() {
  const all = new Set(found);
  for (const segments of plain) for (const path of spelledPath(segments)) all.add(path);
  for (const family of [detours, departures, returns, inner, oddities])
    for (const path of family()) all.add(path);
  return [...all];
}
