import { element, make } from "../dom.js";

/** Returns the links to the project; none if the address of its repository is not known. */
const linksOf = (home) =>
  !home
    ? []
    : [
        ["Repository", home],
        ["Guides", `${home}/blob/HEAD/docs/README.md`],
        ["Install", `${home}#install`],
        ["Deploy to Cloudflare", deployOf(`${home}/tree/main/examples/hono-worker`)],
      ];

/** Returns the address that deploys a Worker of a repository to the account of whoever follows it. */
const deployOf = (folder) => `https://deploy.workers.cloudflare.com/?url=${encodeURIComponent(folder)}`;

/** Shows the links to the project. The build reads its address from `repository` in package.json. */
export function homeLinks() {
  const links = linksOf(import.meta.home).map(([words, href]) => make("a", { href }, words));
  element("links").append(...links);
  element("links").hidden = links.length === 0;
}
