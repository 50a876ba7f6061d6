// Why A ranks above B: each word of both documents by its contribution to the difference of the two scores.

const baseOf = (name) => name.slice(name.lastIndexOf("/") + 1);

const estimatesIn = ({ a, b, query }) => hasEstimates([...a.words, ...b.words, ...query]);

const sideOf = (comparison, side) => {
  const one = comparison[side];
  const found = litText(one.text, one.words, one.read, { signed: true, scale: comparison.scale, verdict: null, estimates: estimatesIn(comparison) }, `document ${side.toUpperCase()}`);
  const swap = comparison.swap && comparison.swap.side === side ? comparison.swap : null;
  for (const start of swap ? swap.words : []) found.spans.get(start).classList.add("struck");
  return make("section", { class: "side", "aria-label": `Document ${side.toUpperCase()}` },
    make("header", {}, make("span", { class: "letter" }, side.toUpperCase()), make("h3", { title: one.name }, make("bdi", {}, baseOf(one.name))), scoreOf(one)),
    make("p", { class: "text" }, found.group),
    one.window ? make("p", { class: "window" }, `The ${windowOf(one.window)}.`) : unread(one.truncation, data.maxTokens),
    make("h3", {}, "Strongest words", unitNote(found.look)), strongestWords(one.text, found, 6));
};

const swapOf = ({ swap, noSwap, a, b, identical }) => {
  if (identical) return make("p", { class: "swap" }, make("strong", {}, "A and B are identical texts: "), "they have the same score, and each word contributes equally to both.");
  if (!swap) return make("p", { class: "swap" }, noSwap);
  const [better, other] = swap.side === "a" ? [a, b] : [b, a];
  return make("p", { class: "swap" },
    make("strong", {}, `${better.window ? "The best window of " : ""}${baseOf(better.name)} falls below ${baseOf(other.name)} without ${many(swap.names.length, "word")}: `),
    swap.names.map((word, place) => [place ? ", " : "", make("s", {}, word)]),
    `. Its ${swap.after}. `,
    swap.exact ? "No smaller set is enough: all were tried." : "Found by beam search: a smaller set may exist.");
};

const comparisonCard = (comparison, place) => {
  const { a, b } = comparison;
  const asked = litText(data.query, comparison.query, data.queryRead, { signed: true, scale: 0, verdict: null, estimates: estimatesIn(comparison) }, "the query");
  return make("article", { id: `comparison-${place}`, class: "comparison", "aria-labelledby": `against-${place}`, tabindex: -1 },
    make("header", {},
      make("h2", { id: `against-${place}` }, "A against B"),
      make("span", { class: "score" }, `${number(a.score)} − ${b.score < 0 ? `(${number(b.score)})` : number(b.score)} = ${signed(comparison.difference)}`, make("small", {}, ` ${data.scoreName}`))),
    legendOf(true, ["for B", "for A"], "Orange words (solid line) speak for A: they raise its score or lower B's. Blue words (dotted line) speak for B. Shades can be compared between the two.",
      estimatesIn(comparison) ? kinds() : []),
    swapOf(comparison),
    make("div", { class: "sides" }, sideOf(comparison, "a"), sideOf(comparison, "b")),
    make("h3", {}, "The query's words: their share of the difference", unitNote(asked.look)), make("p", { class: "asked" }, asked.group),
    strongestWords(data.query, asked, LISTED),
    account(comparison));
};
