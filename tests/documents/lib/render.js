// Renders every component that a module exports, on a server.

import { createElement } from "react";
import { renderToString } from "react-dom/server";

const components = Object.values(await import(process.argv[2]));
if (components.length === 0) throw new Error("the block exports no component");
for (const component of components) renderToString(createElement(component));
