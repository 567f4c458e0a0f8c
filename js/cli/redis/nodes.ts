import { type Address, shown } from "./address.ts";
import { Connection } from "./connection.ts";
import { type Reply, ReplyError } from "./resp.ts";

/** How often a command follows a Cluster that names another node. */
const maxMoves = 3;

/** The connections to one Redis, or to the nodes of a Cluster as far as its replies name them. */
export class Nodes {
  readonly #first: Connection;
  readonly #timeout: number;
  readonly #others = new Map<string, Promise<Connection>>();

  private constructor(first: Connection, timeout: number) {
    this.#first = first;
    this.#timeout = timeout;
  }

  static async open(address: Address, timeout: number): Promise<Nodes> {
    return new Nodes(await Connection.open(address, timeout), timeout);
  }

  /** Sends a command for a key, to the node that has it. */
  async send(args: readonly string[]): Promise<Reply> {
    let connection = this.#first;
    for (let moves = 0; ; moves++) {
      try {
        return await connection.send(args);
      } catch (error) {
        const to = error instanceof ReplyError && moves < maxMoves ? movedTo(error) : undefined;
        if (to === undefined) throw error;
        connection = await this.#node(to.host === "" ? this.#first.address.host : to.host, to.port);
      }
    }
  }

  /** Returns a connection to each node that has keys: one, unless it is a Cluster. */
  async masters(): Promise<readonly Connection[]> {
    let slots: Reply;
    try {
      slots = await this.#first.send(["CLUSTER", "SLOTS"]);
    } catch (error) {
      if (error instanceof ReplyError) return [this.#first];
      throw error;
    }
    const found = new Map<string, Promise<Connection>>();
    for (const [, , master] of slots as readonly (readonly Reply[])[]) {
      const [host, port] = master as readonly [string | null, number];
      found.set(`${host}:${port}`, this.#node(host || this.#first.address.host, port));
    }
    return found.size === 0 ? [this.#first] : Promise.all(found.values());
  }

  close(): void {
    this.#first.close();
    for (const other of this.#others.values())
      other.then(
        (connection) => connection.close(),
        () => {},
      );
  }

  #node(host: string, port: number): Promise<Connection> {
    const address: Address = { ...this.#first.address, host, port };
    const name = shown(address);
    if (name === shown(this.#first.address)) return Promise.resolve(this.#first);
    const known = this.#others.get(name);
    if (known !== undefined) return known;
    const opened = Connection.open(address, this.#timeout);
    opened.catch(() => this.#others.delete(name));
    this.#others.set(name, opened);
    return opened;
  }
}

/** Returns the node that a Cluster names in its error; `undefined` for other errors. */
function movedTo({ message }: ReplyError): { readonly host: string; readonly port: number } | undefined {
  const [, host, port] = /^MOVED \d+ (.*):(\d+)$/.exec(message) ?? [];
  return host === undefined ? undefined : { host, port: Number(port) };
}
