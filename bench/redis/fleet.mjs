import { fork } from "node:child_process";
import { connect } from "./subjects.mjs";

const worker = new URL("worker.mjs", import.meta.url);
const next = (child) => new Promise((resolve) => child.once("message", resolve));

/** Processes that share a Redis, started once and used for all rounds. */
export class Fleet {
  #children;
  #redis;

  static async start(port, size) {
    const fleet = new Fleet();
    fleet.#redis = connect(port);
    fleet.#children = Array.from({ length: size }, () => fork(worker, [String(port)]));
    await Promise.all(fleet.#children.map(next));
    return fleet;
  }

  /** Has so many processes do a task on an empty Redis, and returns their results and the time that Redis took. */
  async run(processes, task) {
    await this.#redis.flushall();
    const children = this.#children.slice(0, processes);
    const ready = children.map(next);
    for (const [number, child] of children.entries()) child.send({ ...task, start: 1_000_003 * number });
    await Promise.all(ready);
    const before = await this.#cpu();
    const results = children.map(next);
    for (const child of children) child.send({ go: true });
    const reports = (await Promise.all(results)).map(({ result }) => result);
    return { reports, cpu: (await this.#cpu()) - before };
  }

  /** Returns the seconds that Redis has computed. */
  async #cpu() {
    const info = await this.#redis.info("cpu");
    const [, system] = info.match(/used_cpu_sys:([\d.]+)/);
    const [, user] = info.match(/used_cpu_user:([\d.]+)/);
    return Number(system) + Number(user);
  }

  stop() {
    this.#redis.disconnect();
    for (const child of this.#children) child.kill();
  }
}
