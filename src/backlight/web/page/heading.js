// The head of the page: the query, what was asked of which model, how it was explained, and what the shades mean.

const fact = (name, value) => make("div", {}, make("dt", {}, name), make("dd", {}, value));

// The files that hold no text: how many, the first of them by name, all with their reasons on hover.
const leftOut = () => {
  const [first, ...others] = data.leftOut;
  const reasons = data.leftOut.map(({ name, reason }) => `${name} ${reason}`).join("\n");
  return make("span", { title: reasons }, many(data.leftOut.length, "file"), ": ", make("bdi", {}, first.name), others.length ? " …" : "");
};

const facts = () => {
  const explained = data.documents.filter((ranked) => Object.keys(ranked.explanations).length).length;
  const some = explained === 1 ? "the best one explained" : `the best ${explained} explained`;
  const documents = data.documents.length + (explained && explained < data.documents.length ? `, ${some}` : "");
  return make("dl", { class: "facts" },
    fact("Model", data.model),
    fact("Score", data.activation === "probability" ? `probability (sigmoid of the ${data.scoreName})` : data.scoreLine),
    data.documents.length > 1 ? fact("Documents", documents) : null,
    data.candidates ? fact("Candidates", data.candidates.line) : null,
    data.leftOut.length ? fact("Left out", leftOut()) : null,
    fact("Date", make("time", { datetime: data.when }, data.date)));
};

// The query with its words lit for one document: that which is in view. A mean over documents would be true of none.
const litQuery = (ranked) => {
  const made = ranked?.explanations[state.method];
  if (!made) return make("div", { id: "query" }, make("p", { class: "kicker" }, "Query"), make("h1", {}, data.query));
  const name = ranked.name.slice(ranked.name.lastIndexOf("/") + 1);
  const look = lookOf(made, data.scales[state.method][0]);
  return make("div", { id: "query" },
    make("p", { class: "kicker" }, data.documents.length > 1 ? [`Query, for document ${ranked.rank}: `, make("bdi", {}, name)] : "Query"),
    make("h1", {}, litText(data.query, made.query, data.queryRead, look, "the query").group));
};

const methodSwitch = (change) => {
  if (!data.methods.length) return null;
  const buttons = data.methods.map((method) => make("button", {
    type: "button", role: "radio", "data-method": method.name, "aria-checked": String(method.name === state.method),
    tabindex: method.name === state.method ? 0 : -1, title: method.summary, onclick: () => change(method.name),
  }, method.title));
  const group = make("div", { class: "methods", role: "radiogroup", "aria-label": "Method" }, buttons);
  walk(group, { ArrowRight: [buttons, 1], ArrowLeft: [buttons, -1], ArrowDown: [buttons, 1], ArrowUp: [buttons, -1] });
  const chosen = data.methods.find((method) => method.name === state.method);
  return make("section", { class: "how", "aria-label": "Method" }, make("h3", {}, "Method"), group, make("p", { class: "summary" }, chosen.summary[0].toUpperCase() + chosen.summary.slice(1) + "."));
};

const meaningOf = (isSigned) => (isSigned
  ? "Orange words (solid line) raise the score, blue words (dotted line) lower it; the stronger the colour, the larger the effect. "
  : "The stronger the colour, the larger the value: how much, not in which direction. ");

// What shades are shares of, for the documents of a ranking and for its query.
const scaleMeaning = (isSigned) => {
  const [ofQuery, ofDocuments] = data.scales[state.method];
  const several = data.documents.filter((ranked) => ranked.explanations[state.method]).length > 1;
  const unit = isSigned && data.unit === "logit" ? " (changes of the logit)" : "";
  return `${meaningOf(isSigned)}Full colour is ${figures(ofDocuments)} in ${several ? "every document" : "the document"}, ${figures(ofQuery)} in the query${unit}.`;
};

const swatch = (weak, text) => {
  const sample = make("span", { class: "word" }, text);
  lit(sample, { fails: 0.8, estimated: 0.5, measured: 0.05 }[weak], true, weak);
  return make("span", { class: "swatch" }, sample);
};

const legendOf = (isSigned, [lower, higher], meaning, weak = []) =>
  make("div", { class: isSigned ? "legend signs" : "legend" },
    make("span", {}, isSigned ? make("span", { class: "word signed minus", style: "--share:.5" }, lower) : "no effect"),
    make("span", { class: "ramp", "aria-hidden": "true" }),
    make("span", {}, isSigned ? make("span", { class: "word signed", style: "--share:.5" }, higher) : "strongest word"),
    weak, make("p", {}, meaning));

// A line says that a word was measured, however pale it is; estimated words have none.
const kinds = () => [swatch("measured", "a line: measured"), swatch("estimated", "no line: estimated, not measured")];

const rankingLegend = () => {
  const made = data.documents.map((ranked) => ranked.explanations[state.method]).filter(Boolean);
  if (!made.length) return null;
  const fails = made.filter((one) => one.verdict === "fails").length;
  if (fails === made.length) {
    return make("div", { class: "legend" }, swatch("fails", "not faithful"),
      make("p", {}, "No colours: the check failed. The denser the hatching, the larger the value that the method gives."));
  }
  if (made.every((one) => one.verdict === "no effect")) {
    return make("div", { class: "legend" }, make("p", {}, "No colours: deleting a word never changed a score by more than the check's threshold."));
  }
  const weak = [
    ...estimatesOf(state.method) ? kinds() : [],
    fails ? swatch("fails", "not faithful") : null,
  ];
  return legendOf(made[0].signed, ["lowers the score", "raises the score"], scaleMeaning(made[0].signed), weak);
};
