// Serves one subject. Tells its port, and how much of the processor it has used whenever it is asked.

import { subjects } from "./subjects.mjs";

const [framework, name] = process.argv.slice(2);
const server = await subjects[framework][name]();
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send({ used: user + system });
});
server.listen(0, "localhost", () => process.send({ port: server.address().port }));
