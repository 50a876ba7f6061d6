// The list of all documents, best first, and the search over their names and texts.

// Bars begin at zero (see NOTE [One scale] in explain/presentation/scales.py); a score below it has a bar in the colour of minus.
const meterOf = ({ bar }) => make("span", { class: "meter", "aria-hidden": "true" },
  make("span", { class: bar < 0 ? "fill minus" : "fill", style: `--width:${(100 * Math.abs(bar)).toFixed(1)}%` }));

const entryOf = (ranked) => {
  const name = ranked.name.slice(ranked.name.lastIndexOf("/") + 1);
  const left = ranked.window ? 0 : ranked.truncation.words_left_out;
  const inside = [
    make("span", { class: "rank" }, ranked.rank),
    make("span", { class: "name", title: ranked.name }, make("bdi", {}, name)),
    make("span", { class: "score", title: ranked.shown[1] || null }, ranked.shown[0]),
    meterOf(ranked),
    ranked.window ? make("span", { class: "part" }, windowOf(ranked.window)) : null,
    data.methods.length && !Object.keys(ranked.explanations).length ? make("span", { class: "part" }, "words not measured") : null,
    left ? make("span", { class: "part" }, `read in part: ${many(left, "word")} left out`) : null,
  ];
  const explained = Object.keys(ranked.explanations).length > 0;
  return make("li", {}, explained ? make("a", { href: `#document-${ranked.rank}` }, inside) : make("span", { class: "entry" }, inside));
};

// The documents of a long list that were no candidates: the model did not read them.
const notReranked = () => {
  const more = data.candidates.others - data.notReranked.length;
  const names = data.notReranked.map(([rank, name]) => make("li", {}, make("span", { class: "entry" },
    make("span", { class: "rank" }, rank),
    make("span", { class: "name", title: name }, make("bdi", {}, name.slice(name.lastIndexOf("/") + 1))))));
  const list = make("details", { class: "not-reranked" },
    make("summary", {}, `${many(data.candidates.others, "document")}, in the order of ${data.candidates.retriever}`),
    make("ol", {}, names), more ? make("p", {}, `and ${more} more`) : null);
  return [make("h2", {}, "Not reranked"), list];
};

// Show the documents that hold every word that is searched for, and mark the words.
const search = (asked, entries, cards, status) => {
  const terms = asked.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const ranked of data.documents) {
    const all = `${ranked.name}\n${ranked.text}`.toLowerCase();
    const matches = terms.every((term) => all.includes(term));
    count += matches;
    entries.get(ranked.rank).hidden = !matches;
    const card = cards.get(ranked.rank);
    if (card) card.element.hidden = !matches;
  }
  markFound(terms);
  status.textContent = terms.length ? `${count} of ${data.documents.length}` : "";
};

const markFound = (terms) => {
  for (const word of document.querySelectorAll("article:not(.comparison) .text .word")) {
    const text = word.textContent.toLowerCase();
    word.classList.toggle("found", terms.some((term) => text.includes(term)));
  }
};
