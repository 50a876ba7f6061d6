// Numbers in words, and keys that walk through a group; elements are made by the kit (report/elements.js).

// Digits after the point that show three figures of the largest of some values.
const digitsFor = (most) => (most > 0 ? Math.max(0, Math.min(9, 2 - Math.floor(Math.log10(most)))) : 2);
const number = (value, digits = 3) => value.toFixed(digits).replace("-", "−").replace(/^−(0(\.0*)?)$/, "$1");
const signed = (value, digits = 3) => (value > 0 ? "+" : "") + number(value, digits);
const figures = (value) => number(value, digitsFor(Math.abs(value)));
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
