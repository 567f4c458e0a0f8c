import { check, checkIs } from "./checks.ts";
import type { Client } from "./client.ts";
import type { Setting, SettingCase } from "./setting.ts";

/** Texts as a limiter stores them: JSON, in ASCII. */
const text = (name: string): string => JSON.stringify({ version: 4, tag: name, rows: [] });
const [one, two, three] = [text("1"), text("2"), text("3")] as const;

const minute = 60_000;

/** What `get` and `swap` do on their own. */
export const valueCases: readonly SettingCase[] = [
  {
    name: "a key never used has no value",
    async run({ client }) {
      await client.has("none", null, "get of a key without a value returns null or undefined");
    },
  },
  {
    name: "a value is stored where there was none, and returned as it was",
    async run({ client, other }) {
      await client.swaps("key", null, one, "swap from null stores a value if there is none");
      await client.has("key", one, "get returns the text that was stored");
      await other.has("key", one, "another client sees the value at once");
    },
  },
  {
    name: "a value is not stored where there is one",
    async run({ client, other }) {
      await client.swaps("key", null, one, "swap from null stores a value if there is none");
      await other.keeps("key", null, two, "swap from null returns false if there is a value");
      await client.has("key", one, "a swap that returns false changes nothing");
    },
  },
  {
    name: "a value is replaced only if it is the one expected",
    async run({ client, other }) {
      await client.keeps("key", one, two, "swap from a text returns false if there is no value");
      await client.has("key", null, "a swap that returns false stores nothing");
      await client.swaps("key", null, one, "swap from null stores a value if there is none");
      await client.swaps("key", one, two, "swap from the stored text replaces it");
      await other.keeps("key", one, three, "swap from a former text returns false");
      await client.has("key", two, "a swap that returns false changes nothing");
    },
  },
  {
    name: "a value is deleted only if it is the one expected",
    async run({ client, other }) {
      await client.swaps("key", null, one, "swap from null stores a value if there is none");
      await other.keeps("key", two, null, "swap from another text to null returns false");
      await client.has("key", one, "a swap that returns false deletes nothing");
      await other.swaps("key", one, null, "swap from the stored text to null deletes it");
      await client.has("key", null, "get of a deleted key returns null or undefined");
      await client.keeps("key", one, two, "swap from a deleted text returns false");
      await client.swaps("key", null, three, "swap from null stores a value after a delete");
    },
  },
  {
    name: "a swap that is sent twice is made once",
    async run({ client }) {
      await client.swaps("key", null, one, "swap from null stores a value if there is none");
      await client.keeps("key", null, one, "the same swap from null returns false the second time");
      await client.swaps("key", one, two, "swap from the stored text replaces it");
      await client.keeps("key", one, two, "the same swap returns false the second time");
      await client.has("key", two, "a swap that returns false changes nothing");
    },
  },
  {
    name: "texts that differ in a letter's case, a space or their length are different",
    async run({ client }) {
      const texts = [one, one.replace("tag", "TAG"), `${one} `, ` ${one}`, one.slice(0, -1), `${one}0`];
      for (const [number, before] of texts.entries()) {
        const key = `key ${number}`;
        await client.swaps(key, null, before, "swap from null stores a value if there is none");
        await client.has(key, before, "get returns the text that was stored, with its spaces");
        for (const wrong of texts.filter((text) => text !== before))
          await client.keeps(key, wrong, three, "swap from a text that only looks alike returns false");
      }
    },
  },
  {
    name: "a long value is stored whole",
    async run({ client }) {
      const long = JSON.stringify({
        tag: "long",
        states: Array.from({ length: 6_000 }, (_, at) => at + 1e8),
      });
      await client.swaps("key", null, long, "a text of 60,000 characters is stored");
      checkIs(
        (await client.get("key"))?.length,
        long.length,
        "a text of 60,000 characters is returned as it was",
      );
      await client.keeps("key", `${long.slice(0, -2)} ]`, one, "swap compares the whole text");
      await client.swaps("key", long, one, "a text of 60,000 characters is replaced");
    },
  },
  ...keys().map(
    ([name, keys]): SettingCase => ({
      name: `keys: ${name}`,
      async run({ client }) {
        for (const [number, key] of keys.entries())
          await client.swaps(key, null, text(`k${number}`), `${JSON.stringify(key)} is a key of its own`);
        for (const [number, key] of keys.entries()) {
          await client.has(key, text(`k${number}`), `${JSON.stringify(key)} has the value that it was given`);
          await client.swaps(key, text(`k${number}`), null, `${JSON.stringify(key)} can be deleted`);
        }
      },
    }),
  ),
  {
    name: "of many swaps at once from the same text, one is made",
    async run(setting) {
      await oneOf(setting, "first", null);
      await setting.client.swaps("later", null, one, "swap from null stores a value if there is none");
      await oneOf(setting, "later", one);
    },
  },
  {
    name: "of swaps and deletes at once from the same text, one is made",
    async run({ client, clients }) {
      await client.swaps("key", null, one, "swap from null stores a value if there is none");
      const afters = clients.map((_, number) => (number % 2 === 0 ? null : text(`d${number}`)));
      const made = await Promise.all(
        clients.map((each, number) => each.swap("key", one, afters[number] as string | null)),
      );
      checkIs(made.filter(Boolean).length, 1, "one of several swaps at once from the same text returns true");
      await client.has(
        "key",
        afters[made.indexOf(true)] as string | null,
        "the swap that returned true stands",
      );
    },
  },
  {
    name: "no swap of many clients is lost",
    async run({ client, clients }) {
      const rounds = 10;
      await Promise.all(
        clients.map(async (each) => {
          for (let round = 0; round < rounds; round++) {
            const isMade = await counted(each, "key");
            check(isMade, "swap accepts what get returned, if nobody else changed it");
          }
        }),
      );
      const last = text(`${clients.length * rounds}`);
      await client.has("key", last, "each swap that returned true is made, and none undoes another");
    },
  },
  {
    name: "a value is kept for its ttl, however long",
    async run({ client, passTime }) {
      const ttls = { minute, month: 31 * 1_440 * minute, years: 8e15 };
      for (const [key, ttl] of Object.entries(ttls))
        await client.swaps(key, null, text(key), `a value with a ttl of ${ttl} ms is stored`, ttl);
      await passTime(5);
      for (const [key, ttl] of Object.entries(ttls))
        await client.has(key, text(key), `a value with a ttl of ${ttl} ms is there after 5 ms`);
    },
  },
  {
    name: "a swap replaces the ttl, too",
    async run({ client, passTime }) {
      await client.swaps("key", null, one, "a value with a ttl of 1 ms is stored", 1);
      await replaced(client, "key", two);
      await passTime(50);
      await client.has("key", two, "a value is not deleted at the end of the ttl of a former one");
    },
  },
  {
    name: "a value that has ended can be replaced by what get returns",
    async run({ client, other, passTime }) {
      await client.swaps("key", null, one, "a value with a ttl of 1 ms is stored", 1);
      await passTime(50);
      const before = await other.get("key");
      check(before === null || before === one, "get returns a value that has ended, or null");
      await client.swaps("key", before, two, "swap accepts what get returned, after the end as well", minute);
      await other.has("key", two, "a value that was stored after the end of another is there");
    },
  },
];

/** Adds 1 to the number in a value. Returns false if that did not succeed in many tries. */
async function counted(client: Client, key: string): Promise<boolean> {
  for (let tries = 0; tries < 10_000; tries++) {
    const before = await client.get(key);
    const count = before === null ? 0 : Number(JSON.parse(before).tag);
    if (await client.swap(key, before, text(`${count + 1}`))) return true;
  }
  return false;
}

/** Replaces a value that may end at any time. */
async function replaced(client: Client, key: string, after: string): Promise<void> {
  for (let tries = 0; tries < 100; tries++)
    if (await client.swap(key, await client.get(key), after, minute)) return;
  check(false, "swap accepts what get returned, if nobody else changed it");
}

/** Makes several swaps from the same text at once, and checks that one is made. */
async function oneOf({ client, clients }: Setting, key: string, before: string | null): Promise<void> {
  const afters = Array.from({ length: 4 * clients.length }, (_, number) => text(`s${number}`));
  const made = await Promise.all(
    afters.map((after, number) => (clients[number % clients.length] as Client).swap(key, before, after)),
  );
  checkIs(made.filter(Boolean).length, 1, "one of several swaps at once from the same text returns true");
  await client.has(key, afters[made.indexOf(true)] as string, "the swap that returned true stands");
}

/** Keys that a database might take for each other, or for something else. */
function keys(): [name: string, keys: readonly string[]][] {
  return [
    ["letters that only look alike", ["user:a", "user:A", "user:ä", "user:a\u0308", "user:à", "user:ａ"]],
    ["spaces at their ends", ["user", "user ", " user", "user\t", "user\n"]],
    ["signs of query languages", ["%", "_", "*", "'", '"', "\\", "a'; --", "{a}", "[a]", "$1", "?", "../a"]],
    ["names that objects have", ["__proto__", "constructor", "toString", "hasOwnProperty"]],
    ["any language", ["ключ", "密钥", "مفتاح", "🔑", "🔑🔑"]],
    [
      "characters that are not printed",
      ["a", "a\u0000b", "a\u0000c", "a\u0001b", "ab", "\u200bab", "\ufeffab"],
    ],
    // With the prefix of the case, up to 1,024 bytes.
    ["1,000 bytes", ["k".repeat(1_000), `${"k".repeat(999)}l`, "🔑".repeat(250)]],
  ];
}
