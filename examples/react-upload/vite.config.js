import react from "@vitejs/plugin-react";

/** Takes files, and forgets them. */
function api(server) {
  server.middlewares.use("/upload", (request, response) => {
    request.resume();
    request.on("end", () => response.writeHead(204).end());
  });
}

export default { plugins: [react(), { name: "api", configureServer: api, configurePreviewServer: api }] };
