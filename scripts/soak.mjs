import { soak } from "../tests/cloudflare/durability/soak.mjs";
import { optionsGiven } from "./lib/options.mjs";
import { Failure, green, say } from "./lib/say.mjs";
import { afterSetUp, toBuild } from "./setup.mjs";

const usage = "npm run soak -- --minutes 30, or with --seed 7";
const { minutes = "30", seed = "1" } = optionsGiven(
  { minutes: { type: "string" }, seed: { type: "string" } },
  usage,
);

const inWords = ({ kills, allowed, denied, flooded, keys, checks }) =>
  `${kills} kills, ${allowed} hits allowed and ${denied} denied on ${keys} hot keys, ${flooded} cold keys; ${checks} checks, none forgotten, none over`;

await afterSetUp(toBuild, async () => {
  if (!(Number(minutes) > 0 && Number(seed) >= 0))
    throw new Failure("--minutes and --seed must be numbers", { remedy: usage });
  const counts = await soak({
    minutes: Number(minutes),
    seed: Number(seed),
    say: (minute, counts) => say(`minute ${minute}: ${inWords(counts)}`),
  });
  say(green(inWords(counts)));
});
