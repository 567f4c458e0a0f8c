import { createHash } from "node:crypto";
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { asText } from "./lib/astext.mjs";
import { finished } from "./lib/finished.mjs";
import { bin, inProject } from "./lib/paths.mjs";
import { quiet } from "./lib/run.mjs";
import { buildWatchPage } from "./page.mjs";

/** What the wasm of each feature is called where it is a file of its own. */
const wasmFiles = {
  npm: "tollgate.wasm",
  headers: "tollgate-headers.wasm",
  redis: "tollgate-redis.wasm",
  worker: "tollgate-worker.wasm",
  lease: "tollgate-lease.wasm",
  throttle: "tollgate-throttle.wasm",
};

/** The npm package in dist/: the same API for every runtime, and its types. */
export async function buildPackage() {
  await buildWatchPage();
  await finished(inProject("dist"), async (dist) => {
    for (const [name, format] of [
      ["index.js", "esm"],
      ["index.cjs", "cjs"],
    ]) {
      await bundleAs(join(dist, name), { ...forBrowsers, format });
      putWasmLast(join(dist, name), 2);
    }
    for (const format of ["esm", "cjs"])
      await bundleAs(join(dist, format === "esm" ? "node.js" : "node.cjs"), { ...forNode, format });
    for (const [runtime, options] of Object.entries(byModule))
      await bundleAs(join(dist, `${runtime}.js`), { ...options, format: "esm" });
    for (const [feature, name] of Object.entries(wasmFiles).filter(([feature]) => feature !== "redis"))
      cpSync(inProject("build", feature, "tollgate_bg.wasm"), join(dist, name));
    await writeTypes(dist);
    await bundleErrors(dist);
    await bundleClient(dist);
    await bundleThrottle(dist);
    await bundleJs(dist);
    await bundleAdapters(dist);
    await bundleReact(dist);
    await bundleRedis(dist);
    await bundleStore(dist);
    await bundleAi(dist);
    await bundleWorker(dist);
    await bundleCommand(dist);
  });
  writeFileSync(bundledList, JSON.stringify([...bundled].sort()));
}

/** Errors are in a file of their own, which all entries import, so that their class exists once. */
const errorsBeside = (format) => ({
  name: "errors beside",
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/error\.ts$/ }, ({ path, kind, resolveDir }) =>
      kind !== "entry-point" && resolve(resolveDir, path) === inProject("js/errors/error.ts")
        ? { path: `./errors.${format === "cjs" ? "cjs" : "js"}`, external: true }
        : undefined,
    ),
});

async function bundleAs(outfile, { plugins = [], ...options }) {
  // Not at the top: on a fresh clone this file is read before there is an esbuild.
  const { build } = await import("esbuild");
  const { metafile } = await build({
    entryPoints: [inProject("js/index.ts")],
    outfile,
    bundle: true,
    platform: "neutral",
    target: "es2022",
    legalComments: "none",
    logLevel: "warning",
    metafile: true,
    ...options,
    plugins: [...plugins, lazyGlue, errorsBeside(options.format), chunksBeside(options.format)],
  });
  for (const file of Object.keys(metafile.inputs)) {
    const [folder] = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? [];
    if (folder !== undefined) bundled.add(folder);
  }
}

/** The list of the folders of npm packages of which code is bundled, for the notice of their licences. */
export const bundledList = inProject("build/bundled.json");

const bundled = new Set();

/** What the glue of wasm-bindgen makes at load, and what makes the same when it is needed: jsdom has neither class. */
const textWhenNeeded = [
  [
    /let cachedTextDecoder = new TextDecoder\(.*\);\ncachedTextDecoder\.decode\(\);/,
    "let cachedTextDecoder;",
  ],
  // The first text is over the limit after which the glue makes another.
  [/let numBytesDecoded = 0;/, "let numBytesDecoded = MAX_SAFARI_DECODE_BYTES;"],
  [
    /const cachedTextEncoder = new TextEncoder\(\);\n\nif \(!\('encodeInto'[\s\S]*?\n\}\n/,
    `let textEncoder;
const cachedTextEncoder = {
    encode: (text) => (textEncoder ??= new TextEncoder()).encode(text),
    encodeInto: (text, view) => (textEncoder ??= new TextEncoder()).encodeInto(text, view),
};
`,
  ],
];

const lazyGlue = {
  name: "lazy glue",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/build\/(headers|lease|redis)\/tollgate\.js$/ }, ({ path }) => {
      let contents = readFileSync(path, "utf8");
      for (const [made, lazy] of textWhenNeeded) {
        if (!made.test(contents)) throw new Error(`${path} has no ${made}`);
        contents = contents.replace(made, lazy);
      }
      return { contents, loader: "js" };
    }),
};

/** Moves inlined wasm behind the code, which is read before: gzip then has less of both at once. */
function putWasmLast(file, count) {
  const inlined = /^var tollgate_bg_default\d* = ".*";\n/gm;
  const text = readFileSync(file, "utf8");
  const all = text.match(inlined) ?? [];
  if (all.length !== count) throw new Error(`${file} has ${all.length} inlined wasms, not ${count}`);
  writeFileSync(file, text.replace(inlined, "") + all.join(""));
}

/** Takes a file of the same folder, by default of js/wasm, in the place of another. */
const inPlaceOf = (name, file, folder = "js/wasm") => ({
  name: file,
  setup: ({ onResolve }) =>
    onResolve({ filter: new RegExp(`/${name}\\.ts$`) }, ({ path }) => ({
      path: inProject(folder, path.replace(new RegExp(`^.*/${name}\\.ts$`), file)),
    })),
});

const compiledBy = (file) => inPlaceOf("compiled", file);

const wasmAsText = {
  name: "wasm as text",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.wasm$/ }, ({ path }) => ({ contents: asText(readFileSync(path)), loader: "text" })),
};

/** Leaves the live page out of a bundle: it is a text beside it, as wrangler takes it. */
const pageBeside = {
  name: "page beside",
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/page\.html$/ }, () => ({ path: "./watch.html", external: true })),
};

/** Leaves the wasm out of a bundle: it is a file beside it. `query` makes bundlers of edge functions return its module. */
const wasmBeside = (query = "") => ({
  name: "wasm beside",
  setup: ({ onResolve }) =>
    onResolve({ filter: /\.wasm$/ }, ({ path }) => ({
      path: `./${wasmFiles[basename(dirname(path))]}${query}`,
      external: true,
    })),
});

/** Browsers have no guards, and no channels on which decisions could be published. */
const withoutChannels = inPlaceOf("(channels|caller)", "$1.browser.ts", "js/events");

/** In browsers the wasm is inlined as text. */
const forBrowsers = { plugins: [wasmAsText, withoutChannels] };

/** In Node it is inlined as base64. */
const forNode = { plugins: [compiledBy("compiled.node.ts")], loader: { ".wasm": "base64" } };

/** The runtimes that take wasm only as a module of its own. Those of Vercel and Next have no channels. */
const byModule = {
  workerd: { plugins: [compiledBy("compiled.workerd.ts"), wasmBeside()] },
  "edge-light": { plugins: [compiledBy("compiled.edge-light.ts"), wasmBeside("?module"), withoutChannels] },
};

async function bundleErrors(dist) {
  const entryPoints = [inProject("js/errors/error.ts")];
  for (const [extension, format] of [
    ["js", "esm"],
    ["cjs", "cjs"],
  ])
    await bundleAs(join(dist, `errors.${extension}`), { entryPoints, format });
}

/** Leaves the wasm of leases out of the client: it is in a file beside it, which is loaded only where there are leases. */
const leasesIn = (file) => ({
  name: "leases beside",
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/lease-core\.ts$/ }, () => ({ path: `./${file}`, external: true })),
});

/** `tollgate/client`. */
async function bundleClient(dist) {
  const client = [inProject("js/client/index.ts")];
  for (const [name, format, leases] of [
    ["client.js", "esm", "leases.js"],
    // `import()` loads modules also from CommonJS.
    ["client.cjs", "cjs", "leases.js"],
    ...Object.keys(byModule).map((runtime) => [`client.${runtime}.js`, "esm", `leases.${runtime}.js`]),
  ])
    await bundleAs(join(dist, name), { entryPoints: client, format, plugins: [leasesIn(leases)] });
  const core = [inProject("js/client/lease-core.ts")];
  // One file for browsers and Node: it is small, and compiled once.
  await bundleAs(join(dist, "leases.js"), { ...forBrowsers, entryPoints: core, format: "esm" });
  for (const [runtime, options] of Object.entries(byModule))
    await bundleAs(join(dist, `leases.${runtime}.js`), { ...options, entryPoints: core, format: "esm" });
}

/**
 * The files that a throttle or a Worker loads only where it needs them, by the modules that it imports for them. Errors of
 * shared budgets are those of the file that loads them; the core as JavaScript has none, so it is one file.
 */
const chunks = (format) => ({
  "shared-chunk": `./shared.${format === "cjs" ? "cjs" : "js"}`,
  "learn-chunk": `./learn.${format === "cjs" ? "cjs" : "js"}`,
  "without-wasm": "./throttle-js.js",
  "watch-chunk": "./watch.js",
});

/** Leaves those out of a bundle: they are files beside it. */
const chunksBeside = (format) => ({
  name: "chunks beside",
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/(shared-chunk|learn-chunk|without-wasm|watch-chunk)\.ts$/ }, ({ path, kind }) =>
      kind === "dynamic-import" ? { path: chunks(format)[basename(path, ".ts")], external: true } : undefined,
    ),
});

/** `tollgate/throttle`, and the files that it loads. One file for browsers and Node: it is small, and compiled once. */
async function bundleThrottle(dist) {
  const throttle = [inProject("js/throttle/small/index.ts")];
  for (const [extension, format] of [
    ["js", "esm"],
    ["cjs", "cjs"],
  ]) {
    const file = join(dist, `throttle.${extension}`);
    await bundleAs(file, { ...forBrowsers, entryPoints: throttle, format });
    putWasmLast(file, 1);
    const shared = [inProject("js/throttle/shared-chunk.ts")];
    await bundleAs(join(dist, `shared.${extension}`), { entryPoints: shared, format });
    const learned = [inProject("js/throttle/learn-chunk.ts")];
    await bundleAs(join(dist, `learn.${extension}`), { entryPoints: learned, format });
  }
  const script = [inProject("js/throttle/small/without-wasm.ts")];
  await bundleAs(join(dist, "throttle-js.js"), { entryPoints: script, format: "esm", minify: true });
  for (const [runtime, options] of Object.entries(byModule))
    await bundleAs(join(dist, `throttle.${runtime}.js`), {
      ...options,
      entryPoints: throttle,
      format: "esm",
    });
}

/** Takes wasms as JavaScript: a module is a function that makes an instance. */
const wasmAsScript = {
  name: "wasm as script",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\.wasm$/ }, ({ path, resolveDir }) => ({
      path: join(dirname(resolve(resolveDir, path)), "without-wasm.js"),
      namespace: "script",
    }));
    onLoad({ filter: /.*/, namespace: "script" }, ({ path }) => ({
      contents: `export { instantiate as default } from ${JSON.stringify(path)}`,
      resolveDir: dirname(path),
    }));
  },
};

/** `tollgate/js`, for places without WebAssembly. It is minified, since most of it is generated. */
async function bundleJs(dist) {
  for (const [extension, format] of [
    ["js", "esm"],
    ["cjs", "cjs"],
  ])
    await bundleAs(join(dist, `js.${extension}`), {
      entryPoints: [inProject("js/without-wasm.ts")],
      format,
      minify: true,
      inject: [inProject("js/wasm/no-webassembly.ts")],
      plugins: [
        compiledBy("compiled.workerd.ts"),
        inPlaceOf("detached", "detached.script.ts"),
        withoutChannels,
        wasmAsScript,
      ],
    });
}

/** The files beside the command, by the modules that it imports for them. */
const besideCommand = {
  "index.ts": "./node.js",
  "client/index.ts": "./client.js",
  "redis/index.ts": "./redis.js",
  "cli/redis/index.ts": "./command-redis.js",
};

/** Leaves the package's own entries out of the command, and what it loads only for Redis. */
const entriesBeside = {
  name: "entries beside",
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/index\.ts$/ }, ({ path, kind, resolveDir }) => {
      const file = besideCommand[relative(inProject("js"), resolve(resolveDir, path))];
      return kind === "entry-point" || file === undefined ? undefined : { path: file, external: true };
    }),
};

/** The files that `tollgate init` writes, with the versions of this package. */
const template = {
  name: "template",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^tollgate:template$/ }, ({ path }) => ({ path, namespace: "template" }));
    onLoad({ filter: /.*/, namespace: "template" }, () => ({
      contents: JSON.stringify(templateFiles()),
      loader: "json",
    }));
  },
};

function templateFiles() {
  const { version, devDependencies } = JSON.parse(readFileSync(inProject("package.json"), "utf8"));
  const [, date] = readFileSync(inProject("wrangler.toml"), "utf8").match(/^compatibility_date = "(.*)"$/m);
  const folder = inProject("js/cli/template");
  const filled = (text) =>
    text
      .replace("{{tollgate}}", version)
      .replace("{{wrangler}}", devDependencies.wrangler)
      .replace("{{compatibility_date}}", date);
  return Object.fromEntries(
    readdirSync(folder).map((file) => [file, filled(readFileSync(join(folder, file), "utf8"))]),
  );
}

/** `npx tollgate`, with what it needs to read configurations. */
async function bundleCommand(dist) {
  const file = join(dist, "command.js");
  await bundleAs(file, {
    entryPoints: [inProject("js/cli/main.ts")],
    format: "esm",
    platform: "node",
    banner: { js: "#!/usr/bin/env node" },
    // The other format of some packages requires its parts by names that cannot be followed.
    mainFields: ["module", "main"],
    loader: { ".css": "text" },
    plugins: [entriesBeside, template],
  });
  await bundleAs(join(dist, "command-redis.js"), {
    entryPoints: [inProject("js/cli/redis/index.ts")],
    format: "esm",
    platform: "node",
    plugins: [entriesBeside],
  });
  chmodSync(file, 0o755);
}

/** The subpaths of the package for servers. */
export const adapters = ["express", "fastify", "hono", "koa", "fetch"];

/** The files whose exports are the package's own: a subpath imports those from it, so that they exist once. */
const ofPackage = {
  "limiter/limiter": "tollgate",
  "limiter/ledger": "tollgate",
  "limiter/hit-all": "tollgate",
  "http/headers": "tollgate",
  "http/address": "tollgate",
  "throttle/small/throttle": "tollgate/throttle",
};
const entryOf = Object.fromEntries(
  Object.entries(ofPackage).map(([name, entry]) => [inProject(`js/${name}.ts`), entry]),
);

const packageBeside = {
  name: "package beside",
  setup: ({ onResolve }) =>
    onResolve({ filter: /\.ts$/ }, ({ path, resolveDir }) => {
      const entry = entryOf[resolve(resolveDir, path)];
      return entry && { path: entry, external: true };
    }),
};

/** `tollgate/express` and its like: each a file of its own, over the package and with the guard inside. */
async function bundleAdapters(dist) {
  for (const [extension, format] of [
    ["js", "esm"],
    ["cjs", "cjs"],
  ]) {
    const bundle = (name, entry) =>
      bundleAs(join(dist, `${name}.${extension}`), {
        entryPoints: [inProject(entry)],
        format,
        external: ["@nestjs/common"],
        plugins: [packageBeside],
      });
    for (const name of [...adapters, "nest"]) await bundle(name, `js/middleware/${name}.ts`);
    await bundle("stores", "js/stores/index.ts");
  }
}

/** `tollgate/react`: hooks over the package. Frameworks that render on servers need to know that they are for clients. */
async function bundleReact(dist) {
  for (const [extension, format] of [
    ["js", "esm"],
    ["cjs", "cjs"],
  ])
    await bundleAs(join(dist, `react.${extension}`), {
      entryPoints: [inProject("js/react/index.ts")],
      format,
      external: ["react"],
      plugins: [packageBeside],
      banner: { js: '"use client";' },
    });
}

/** `tollgate/redis`, for Node and what runs as Node does, over the package. */
async function bundleRedis(dist) {
  for (const [extension, format] of [
    ["js", "esm"],
    ["cjs", "cjs"],
  ]) {
    await bundleAs(join(dist, `redis.${extension}`), {
      entryPoints: [inProject("js/redis/index.ts")],
      format,
      external: ["node:*"],
      plugins: [...forNode.plugins, packageBeside, scriptBySha],
      loader: forNode.loader,
    });
  }
}

/** Imports a script of Redis as its text, without comments and indentation, and the SHA-1 by which Redis knows it. */
const scriptBySha = {
  name: "script by SHA",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.lua$/ }, ({ path }) => {
      const lines = readFileSync(path, "utf8")
        .split("\n")
        .map((line) => line.trim());
      const script = lines.filter((line) => line !== "" && !line.startsWith("--")).join("\n");
      const sha = createHash("sha1").update(script).digest("hex");
      return { contents: `export const [script, scriptSha] = ${JSON.stringify([script, sha])};` };
    }),
};

/** Leaves `tollgate/store` out of the cases that test stores. */
const storeBeside = {
  name: "store beside",
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/store\/index\.ts$/ }, ({ kind }) =>
      kind === "entry-point" ? undefined : { path: "tollgate/store", external: true },
    ),
};

/** `tollgate/store`, `tollgate/metrics` and `tollgate/testing`, over the package, whose wasm is that of the runtime. */
async function bundleStore(dist) {
  for (const [extension, format] of [
    ["js", "esm"],
    ["cjs", "cjs"],
  ])
    for (const name of ["store", "metrics", "testing"])
      await bundleAs(join(dist, `${name}.${extension}`), {
        entryPoints: [inProject(`js/${name}/index.ts`)],
        format,
        plugins: [packageBeside, storeBeside],
      });
}

/** `tollgate/ai`: budgets over the limiter that they are given, so that it has no wasm. */
async function bundleAi(dist) {
  for (const [extension, format] of [
    ["js", "esm"],
    ["cjs", "cjs"],
  ])
    await bundleAs(join(dist, `ai.${extension}`), { entryPoints: [inProject("js/ai/index.ts")], format });
}

/** `tollgate/cloudflare`: the Worker with its wasm as a module beside it, and what it loads for the live page. */
async function bundleWorker(dist) {
  const watch = [inProject("js/cloudflare/watch/watch-chunk.ts")];
  // Minified: wrangler puts it into every Worker, also those that never load it.
  await bundleAs(join(dist, "watch.js"), {
    entryPoints: watch,
    format: "esm",
    minify: true,
    plugins: [pageBeside],
  });
  cpSync(inProject("build/watch/page.html"), join(dist, "watch.html"));
  await bundleAs(join(dist, "cloudflare.js"), {
    entryPoints: [inProject("js/cloudflare/index.ts")],
    format: "esm",
    external: ["cloudflare:workers"],
    plugins: [wasmBeside()],
  });
}

/** The entries of the package that have types, by the folder whose `tsconfig.json` declares them. */
const typed = {
  js: [
    "index",
    "client/index",
    "redis/index",
    "store/index",
    "metrics/index",
    "testing/index",
    "ai/index",
    "throttle/small/index",
    "without-wasm",
  ],
  "js/middleware": [...[...adapters, "nest"].map((name) => `middleware/${name}`), "stores/index"],
  "js/react": ["react/index"],
  "js/cloudflare": ["cloudflare/index"],
};

/** Writes the types as the sources declare them, without what is internal, for `import` and again for `require`. */
async function writeTypes(dist) {
  const types = join(dist, "types");
  for (const [project, entries] of Object.entries(typed)) {
    const folder = inProject("build/types", basename(project));
    const emitted = ["--noEmit", "false", "--emitDeclarationOnly", "--outDir", folder];
    await quiet("tsc", bin("tsc"), ["-p", inProject(project), ...emitted]);
    for (const entry of entries) copyTypes(folder, `${entry}.d.ts`, types);
  }
  const required = join(dist, "types-cjs");
  cpSync(types, required, { recursive: true });
  writeFileSync(join(required, "package.json"), '{ "type": "commonjs" }\n');
}

/** No standard year has `Symbol.dispose`, and a project may have chosen a library without it. */
const disposable = '/// <reference lib="esnext.disposable" preserve="true" />\n';

/** Copies a file of types, and the files that it imports. */
function copyTypes(folder, file, types) {
  if (existsSync(join(types, file))) return;
  const text = readFileSync(join(folder, file), "utf8");
  mkdirSync(dirname(join(types, file)), { recursive: true });
  writeFileSync(join(types, file), /\bSymbol\.(?:asyncD|d)ispose\b/.test(text) ? disposable + text : text);
  for (const [, imported] of text.matchAll(/"(\.[^"]*)\.ts"/g))
    copyTypes(folder, join(dirname(file), `${imported}.d.ts`), types);
}
