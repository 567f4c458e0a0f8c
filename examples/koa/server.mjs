import Koa from "koa";
import { rateLimit } from "tollgate/koa";

// Behind a proxy, set app.proxy = true and app.maxIpsCount = 1 to get the client's address.
const app = new Koa();

app.use(rateLimit({ policy: { name: "per-ip", algorithm: "fix_window_per_key", limit: 5, scale: "1h" } }));

app.use((ctx) => {
  ctx.body = "Hello\n";
});

const server = app.listen(process.env.PORT ?? 3000, () =>
  console.log(`http://localhost:${server.address().port}`),
);
