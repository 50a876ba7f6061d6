// Numbers in words, and keys that walk through a group; elements are made by the kit (report/elements.js).

// Digits after the point of changes, by the rule of `digits_for` (report/text.py), of which `most` is the largest.
const digitsFor = (most) => {
  let digits = 2;
  while (most && most * 10 ** digits < 9.5 && digits < 9) digits += 1;
  return digits;
};
const number = (value, digits = 3) => value.toFixed(digits).replace("-", "−").replace(/^−(0(\.0*)?)$/, "$1");
const signed = (value, digits = 3) => (+value.toFixed(digits) > 0 ? "+" : "") + number(value, digits);
const figures = (value) => number(value, digitsFor(Math.abs(value)));
const plainList = (settings) => Object.entries(settings).map(([name, value]) => `${name} ${value}`).join(", ");
const SCORE_DIGITS = 3; // of scores and probabilities (see NOTE [Digits] in explain/presentation/scores.py)
const probability = (score, digits = SCORE_DIGITS) => {
  const [value, least] = [1 / (1 + Math.exp(-score)), 10 ** -digits];
  if (value < least / 2) return `<${least.toFixed(digits)}`;
  return value > 1 - least / 2 ? `>${(1 - least).toFixed(digits)}` : value.toFixed(digits);
};
// A change of a score, by the rule of `write_scores`.
const changeOf = (before, after) => {
  const digits = Math.max(SCORE_DIGITS, digitsFor(Math.abs(before - after)));
  const raw = `${number(before, digits)} → ${number(after, digits)}`;
  if (data.activation !== "probability") return `score ${raw}`;
  const [first, second] = [before, after].map((score) => probability(score));
  return first !== second || before === after ? `probability ${first} → ${second} (logit ${raw})` : `logit ${raw}`;
};
// Places in texts count characters, as Python does; JavaScript counts an emoji as two. A text is cut by characters.
const charactersOf = new Map();
const characters = (text) => {
  if (!charactersOf.has(text)) charactersOf.set(text, /[\ud800-\udfff]/.test(text) ? Array.from(text) : text);
  return charactersOf.get(text);
};
const cut = (text, start, end) => {
  const found = characters(text).slice(start, end);
  return typeof found === "string" ? found : found.join("");
};
const lengthOf = (text) => characters(text).length;
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
