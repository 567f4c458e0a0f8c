export const element = (id) => document.getElementById(id);

/** An element with attributes and children; a text is a child too. */
export function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(attribute, "");
    else if (value !== false && value !== undefined) made.setAttribute(attribute, value);
  }
  made.append(...children);
  return made;
}

/** Sets a text only where it changed: a live region would say it again. */
export function say(target, text) {
  if (target.textContent !== text) target.textContent = text;
}
