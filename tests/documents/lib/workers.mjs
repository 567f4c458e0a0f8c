/** The secret that opens the Worker at limits.example.com. */
export const token = "a-token-for-documents";

const worker = (name, main, object, rest) => ({
  config: {
    name,
    main,
    compatibility_date: "2026-09-01",
    durable_objects: { bindings: [{ name: "LIMITERS", class_name: "RateLimiterObject", ...object }] },
    migrations: [{ tag: "v1", new_sqlite_classes: ["RateLimiterObject"] }],
    ...rest,
  },
});

/** The Worker at limits.example.com. */
export const limitsWorker = (policies) =>
  worker(
    "limits",
    "limits.js",
    {},
    { vars: { TOLLGATE: { policies, timeout: "1m", watch: true }, TOLLGATE_TOKEN: token } },
  );

export const workerName = ({ name }) => name.toLowerCase().replaceAll(".", "-");

/** The Worker of a block, with the objects of the other one if it exports none. */
export function ownWorker(block) {
  const object = /export .*\bRateLimiterObject\b/.test(block.text) ? {} : { script_name: "limits" };
  const services = [{ binding: "TOLLGATE", service: "limits", entrypoint: "Tollgate" }];
  return worker(workerName(block), `run/${block.name}.ts`, object, { services });
}
