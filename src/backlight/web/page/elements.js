// Numbers in words, and keys that walk through a group; elements are made by the kit (report/elements.js).

// Digits after the point that show three figures of the largest of some values.
const digitsFor = (most) => (most > 0 ? Math.max(0, Math.min(9, 2 - Math.floor(Math.log10(most)))) : 2);
const number = (value, digits = 3) => value.toFixed(digits).replace("-", "−").replace(/^−(0(\.0*)?)$/, "$1");
const signed = (value, digits = 3) => (value > 0 ? "+" : "") + number(value, digits);
const figures = (value) => number(value, digitsFor(Math.abs(value)));
const plainList = (settings) => Object.entries(settings).map(([name, value]) => `${name} ${value}`).join(", ");
const SIGMOID_DIGITS = [2, 3]; // of probabilities: the same in both are written as logits (see explain/presentation/scores.py)
const probability = (score, digits) => {
  const [value, least] = [1 / (1 + Math.exp(-score)), 10 ** -digits];
  if (value < least / 2) return `<${least.toFixed(digits)}`;
  return value > 1 - least / 2 ? `>${(1 - least).toFixed(digits)}` : value.toFixed(digits);
};
// A change of a score, by the rule of `write_scores`.
const changeOf = (before, after) => {
  const digits = Math.max(2, digitsFor(Math.abs(before - after)) - 1);
  const raw = `${number(before, digits)} → ${number(after, digits)}`;
  if (data.activation !== "probability") return `score ${raw}`;
  for (const places of SIGMOID_DIGITS) {
    const [first, second] = [before, after].map((score) => probability(score, places));
    if (first !== second || before === after) return `probability ${first} → ${second} (logit ${raw})`;
  }
  return `logit ${raw}`;
};
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
