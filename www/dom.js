export const element = (id) => document.getElementById(id);

/** Returns a new element with attributes and children; a string is a child too. */
export function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(attribute, "");
    else if (value !== false && value !== undefined) made.setAttribute(attribute, value);
  }
  made.append(...children);
  return made;
}

/** Sets a text if it differs: a screen reader reads a live region again whenever it is set. */
export function say(target, text) {
  if (target.textContent !== text) target.textContent = text;
}
