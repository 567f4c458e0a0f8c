import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname } from "node:path";
import { inProject } from "../../../scripts/lib/paths.mjs";
import { axe } from "./axe.mjs";

const types = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

const blank = '<!doctype html><html lang="en"><title>blank</title><link rel="icon" href="data:,">';

/** The package, `tollgate/throttle`, and the files beside them that they import. */
const ofPackage = {
  "/package.js": "dist/index.js",
  "/throttle.js": "dist/throttle.js",
  "/errors.js": "dist/errors.js",
  "/shared.js": "dist/shared.js",
  "/learn.js": "dist/learn.js",
  "/throttle-js.js": "dist/throttle-js.js",
};

/** Serves the playground as any static host would, an empty page, the package, axe, and whatever a test adds. */
export async function serveSite(routes = {}) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const route = routes[pathname];
    if (route) return route(request, response);
    if (pathname === "/blank") return response.writeHead(200, { "Content-Type": types[".html"] }).end(blank);
    if (pathname === "/axe.js") return response.writeHead(200, { "Content-Type": types[".js"] }).end(axe);
    const path = ofPackage[pathname] ?? `www/public${pathname.replace(/\/$/, "/index.html")}`;
    try {
      const body = readFileSync(inProject(path));
      return response.writeHead(200, { "Content-Type": types[extname(path)] ?? "text/plain" }).end(body);
    } catch {
      return response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "localhost", resolve));
  return {
    url: `http://localhost:${server.address().port}`,
    close: () => server.close() && server.closeAllConnections(),
  };
}
