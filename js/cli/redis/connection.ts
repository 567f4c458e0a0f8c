import { connect as connectPlain, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { CommandError } from "../errors.ts";
import { type Address, shown } from "./address.ts";
import { encoded, NotRedis, type Reply, ReplyError, ReplyReader } from "./resp.ts";

interface Waiting {
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: Error) => void;
}

/** A connection to one Redis. Commands are written at once, and their replies come in the same order. */
export class Connection {
  readonly address: Address;
  readonly #socket: Socket;
  readonly #reader = new ReplyReader();
  readonly #waiting: Waiting[] = [];
  #failure: Error | undefined;

  private constructor(address: Address, timeout: number) {
    this.address = address;
    const { host, port, isTls } = address;
    const name = isIP(host) === 0 ? { servername: host } : {};
    this.#socket = isTls ? connectTls({ host, port, ...name }) : connectPlain({ host, port });
    const where = shown(address);
    this.#socket.setNoDelay(true);
    this.#socket.setTimeout(timeout, () => {
      if (this.#waiting.length > 0)
        this.#fail(new CommandError(`${where} did not reply in ${timeout} ms${tlsHint(address)}`));
    });
    this.#socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.#socket.on("error", (error: NodeJS.ErrnoException) => this.#fail(unreachable(address, error)));
    this.#socket.on("close", () => this.#fail(new CommandError(`${where} closed the connection`)));
  }

  /** Connects, logs in and selects the database. */
  static async open(address: Address, timeout: number): Promise<Connection> {
    const connection = new Connection(address, timeout);
    const { username, password, database } = address;
    try {
      if (username !== undefined || password !== undefined)
        await connection.send(["AUTH", ...(username === undefined ? [] : [username]), password ?? ""]);
      if (database > 0) await connection.send(["SELECT", String(database)]);
      await connection.send(["PING"]);
      return connection;
    } catch (error) {
      connection.close();
      throw error instanceof ReplyError ? rejected(address, error) : error;
    }
  }

  /** Sends a command. Rejects with `ReplyError` if Redis replies an error. */
  send(args: readonly string[]): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      this.#waiting.push({ resolve, reject });
      this.#socket.write(encoded(args));
    });
  }

  close(): void {
    this.#failure ??= new CommandError(`the connection to ${shown(this.address)} was closed`);
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    try {
      for (const reply of this.#reader.read(chunk)) {
        const waiting = this.#waiting.shift();
        if (reply instanceof ReplyError) waiting?.reject(reply);
        else waiting?.resolve(reply);
      }
    } catch (error) {
      const where = shown(this.address);
      this.#fail(
        error instanceof NotRedis
          ? new CommandError(`${where} is not a Redis: it replied ${JSON.stringify(error.message)}`)
          : (error as Error),
      );
    }
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#socket.destroy();
    for (const { reject } of this.#waiting.splice(0)) reject(this.#failure);
  }
}

/** Returns the error for an address that cannot be reached. */
function unreachable(address: Address, { code, message }: NodeJS.ErrnoException): CommandError {
  const where = shown(address);
  if (code === "ECONNREFUSED") return new CommandError(`${where} refused the connection; is Redis there?`);
  if (code === "ENOTFOUND" || code === "EAI_AGAIN")
    return new CommandError(`the host ${address.host} is not known`);
  if (code === "ECONNRESET") return new CommandError(`${where} closed the connection`);
  return new CommandError(`${where} cannot be reached: ${message.trim()}${tlsHint(address)}`);
}

const tlsHint = ({ isTls }: Address) => (isTls ? "; use redis:// if it has no TLS" : "");

/** Returns the error for a Redis that does not let this client in. */
function rejected(address: Address, { message }: ReplyError): CommandError {
  const where = shown(address);
  const [code] = message.split(" ", 1);
  if (code === "NOAUTH")
    return new CommandError(
      `${where} requires a password: redis://user:password@${where}, in TOLLGATE_REDIS`,
    );
  if (code === "WRONGPASS" || message.includes("invalid password"))
    return new CommandError(`${where} rejected the user or the password`);
  if (message.includes("without any password configured"))
    return new CommandError(`${where} has no password; leave it out of the address`);
  if (message.includes("DB index")) return new CommandError(`${where} has no database ${address.database}`);
  return new CommandError(`${where}: ${message}`);
}
