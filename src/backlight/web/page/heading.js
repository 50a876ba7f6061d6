// The head of the page: the query, what was asked of which model, how it was explained, and what the shades mean.

const fact = (name, value) => make("div", {}, make("dt", {}, name), make("dd", {}, value));

const facts = () => {
  const explained = data.documents.filter((ranked) => Object.keys(ranked.explanations).length).length;
  const documents = data.documents.length + (explained < data.documents.length ? `, the best ${explained} explained` : "");
  return make("dl", { class: "facts" },
    fact("Model", data.model),
    fact("Score", data.scoreName + (data.activated ? " → as its owners show it" : "")),
    data.documents.length ? fact("Documents", documents) : null,
    fact("Date", make("time", { datetime: data.when }, data.date)));
};

// The query, with each word's value averaged over the documents that the method explained.
const meanQuery = () => {
  const made = data.documents.map((ranked) => ranked.explanations[state.method]).filter(Boolean);
  if (!made.length) return make("h1", {}, data.query);
  const words = made[0].query.map((word, place) => {
    const sum = made.reduce((total, one) => total + (one.query[place] ? one.query[place][2] : 0), 0);
    return [word[0], word[1], sum / made.length, word[3], null];
  });
  return make("h1", {}, litText(data.query, words, data.queryRead, made[0].signed, "the query").group);
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
  ? "Orange words (underlined) raise the score, blue words (dotted) lower it; the fuller the colour, the more. "
  : "The fuller the colour, the more the score reacts to the word: how much, not in which direction. ") +
  "Shades compare words within one text" + (data.documents.length > 1 ? "; the query above shows the mean over the documents explained." : ".");

const legendOf = (isSigned, [lower, higher] = ["lowers the score", "raises the score"], meaning = meaningOf(isSigned)) =>
  make("div", { class: isSigned ? "legend signs" : "legend" },
    make("span", {}, isSigned ? make("span", { class: "word signed minus", style: "--share:.5" }, lower) : "no effect"),
    make("span", { class: "ramp", "aria-hidden": "true" }),
    make("span", {}, isSigned ? make("span", { class: "word signed", style: "--share:.5" }, higher) : "strongest word"),
    make("p", {}, meaning));
