import { serve } from "@hono/node-server";
import handler from "./handler.mjs";

serve({ fetch: handler.fetch, port: Number(process.env.PORT ?? 3000) }, ({ port }) =>
  console.log(`http://localhost:${port}`),
);
