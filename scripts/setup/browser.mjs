import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { finished } from "../lib/finished.mjs";
import { tools } from "../lib/paths.mjs";
import { outputOf } from "../lib/run.mjs";
import { Failure } from "../lib/say.mjs";
import { isDebian, unpack, updateLists, wrap } from "./debian.mjs";

const home = join(tools, "debian-chromium");

const browsers = [
  process.env.CHROME_PATH,
  "chromium",
  "chromium-browser",
  "google-chrome",
  "google-chrome-stable",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
];
const drivers = [
  process.env.CHROMEDRIVER,
  process.env.CHROMEWEBDRIVER && join(process.env.CHROMEWEBDRIVER, "chromedriver"),
  "chromedriver",
  "/usr/lib/chromium/chromedriver",
];

const major = (program) => outputOf(program, ["--version"], { timeout: 10_000 })?.match(/\b(\d+)\.\d+/)?.[1];
const absolute = (program) => (program.includes("/") ? program : outputOf("which", [program]));

/** Returns an installed browser and a driver of the same major version; null if there are none. */
function installed() {
  for (const browser of browsers.filter(Boolean)) {
    const version = major(browser);
    const driver = version && drivers.filter(Boolean).find((each) => major(each) === version);
    if (driver) return { browser: absolute(browser), driver: absolute(driver) };
  }
  return null;
}

function unpacked() {
  const [browser, driver] = [join(home, "bin/chromium"), join(home, "bin/chromedriver")];
  return existsSync(home) ? { browser, driver } : null;
}

/** Returns settings for the machine's fonts, if it has any, and the unpacked ones. */
function fontSettings() {
  const places = ["/", home].map(
    (base) =>
      `<include ignore_missing="yes">${join(base, "etc/fonts/fonts.conf")}</include><dir>${join(base, "usr/share/fonts")}</dir>`,
  );
  return `<fontconfig>${places.join("")}</fontconfig>\n`;
}

const missing = () =>
  new Failure("no Chrome or Chromium with a chromedriver of the same version", {
    remedy: "install both, or name them in CHROME_PATH and CHROMEDRIVER, then run this again.",
  });

async function make() {
  if (!isDebian()) throw missing();
  await updateLists();
  await finished(home, async (folder) => {
    await unpack(folder, ["chromium", "chromium-driver"]);
    writeFileSync(join(folder, "fonts.conf"), fontSettings());
    const runs = [
      wrap(folder, "chromium", "usr/lib/chromium/chromium", 'FONTCONFIG_FILE="$here/fonts.conf"'),
      wrap(folder, "chromedriver", "usr/bin/chromedriver"),
    ].every(major);
    // On some systems the packages of these names only point to another installer.
    if (!runs) throw missing();
  });
}

/** The step of the browser. Its result is `{ browser, driver }`, absolute paths. */
export const browser = {
  id: "browser",
  name: "Chromium",
  what: "none found with its chromedriver; unpacking Debian's into the tools folder (about half a minute)",
  check: () => installed() ?? unpacked(),
  make,
};
