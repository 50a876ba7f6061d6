// Building blocks: elements without markup in strings, so that nothing a person wrote is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

const filled = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") element.style.cssText = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
};

const make = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

// Digits after the point that show three figures of the largest of some values.
const digitsFor = (most) => (most > 0 ? Math.max(0, Math.min(9, 2 - Math.floor(Math.log10(most)))) : 2);
const number = (value, digits = 3) => value.toFixed(digits).replace("-", "−").replace(/^−(0(\.0*)?)$/, "$1");
const signed = (value, digits = 3) => (value > 0 ? "+" : "") + number(value, digits);
const figures = (value) => number(value, digitsFor(Math.abs(value)));
const many = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
const plainList = (settings) => Object.entries(settings).map(([name, value]) => `${name} ${value}`).join(", ");
const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

// One stop of the Tab key for a group: the arrow keys walk on. `orders` names a list of elements for each pair of keys.
const walk = (group, orders) => {
  group.addEventListener("keydown", (event) => {
    const [elements, step] = orders[event.key] || [];
    if (!elements) return;
    const here = elements.indexOf(event.target);
    const next = elements[here + step];
    if (here < 0) return;
    event.preventDefault();
    if (!next) return;
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
};
