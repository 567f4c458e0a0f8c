import type { Store } from "../store/index.ts";
import { Client } from "./client.ts";

/** The argument of a case: clients of one store. */
export interface Setting {
  readonly clients: readonly Client[];
  /** The first client. */
  readonly client: Client;
  /** The second client. */
  readonly other: Client;
  /** The prefix of the keys of this run of the case. */
  readonly prefix: string;
  /** Lets so many milliseconds pass for the store. */
  readonly passTime: (ms: number) => PromiseLike<unknown> | unknown;
}

/** A case before it has a store. */
export interface SettingCase {
  readonly name: string;
  readonly run: (setting: Setting) => Promise<void>;
}

/** How many clients a case has. */
const size = 4;

/** Returns the setting of one run of a case, with keys that no other run has. */
export async function settingOf(
  makeStore: () => Store | PromiseLike<Store>,
  passTime: Setting["passTime"],
): Promise<Setting> {
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1));
  const prefix = `t${random.toString(36)}:`;
  const clients: Client[] = [];
  for (let number = 0; number < size; number++) clients.push(new Client(await makeStore(), prefix));
  const [client, other] = clients as [Client, Client];
  return { clients, client, other, prefix, passTime };
}
