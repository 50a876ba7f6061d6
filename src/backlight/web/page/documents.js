// A card a document: its score, and its views (words, matrix, attention, layers) behind tabs.

const LISTED = 8;

// A score as it is shown, `shown` of [large, beside it]: a probability and its logit, or the raw score alone.
const scoreOf = ({ shown: [large, beside] }) => make("span", { class: "score" }, large, beside ? make("small", {}, ` ${beside}`) : null);

// How values were made: the method and how much was measured; the rest can be opened. `more` are facts of the document.
const account = (made, more = []) => {
  const facts = [
    ["Value of a word", made.meaning + (made.signed ? `, a change of the ${data.unit}` : "")],
    ["Baseline", made.baseline === null ? "none" : made.baseline],
    ["Sum of the values", made.sum === "not additive" ? "not additive: the values need not add up to the score" : made.sum],
    ["Cost", `${made.passes.toLocaleString("en", { maximumFractionDigits: 1 })} ${made.passes === 1 ? "pass" : "passes"} through the model`],
    ["Options", plainList(made.settings)],
    ...more,
  ].filter(([, text]) => text && text.length);
  return make("div", { class: "account" },
    make("p", {}, make("span", {}, make("b", {}, made.title || made.method)), made.measured ? make("span", {}, made.measured) : null,
      made.fallback ? make("strong", {}, "another method was used") : null),
    make("details", {}, make("summary", {}, "How this was computed"),
      make("dl", {}, facts.map(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]))));
};

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

// What the check found, before the text, so that nobody reads the colours without it.
const checkOf = (made) => {
  const kind = { holds: "check", fails: "check failed" }[made.verdict] || "check weak";
  const [, verdict, rest] = made.check.match(/^([^:,]*)(.*)$/s);
  return make("p", { class: kind, title: made.logits }, make("b", {}, verdict), `${rest}.`);
};

// What the values of words are differences of, where scores are shown as something else.
const unitNote = (made) => (made.signed && data.unit === "logit" ? make("small", {}, " in logits") : null);

const togetherOf = (made) => (made.together.length
  ? make("div", { class: "together" }, make("h3", {}, "Deleted together", unitNote(made)), make("ul", {}, made.together.map((line) => make("li", {}, line))))
  : null);

// What the document's score and place would be without a word whose effect was measured: the others keep their scores.
const withoutWord = (ranked) => ([, , , , , effect]) => {
  if (effect === null || ranked.window) return ""; // without a word another window may be the best
  const after = ranked.score - effect;
  const place = 1 + data.documents.filter((other) => other.rank !== ranked.rank && other.score > after).length;
  return `without it: ${changeOf(ranked.score, after)}${place === ranked.rank ? "" : `, place ${ranked.rank} → ${place}`}`;
};

const wordsView = (ranked) => {
  const made = ranked.explanations[state.method];
  const [askedScale, scale] = data.scales[state.method];
  const found = litText(ranked.text, made.document, ranked.read, lookOf(made, scale), "the document", withoutWord(ranked));
  const asked = litText(data.query, made.query, data.queryRead, lookOf(made, askedScale), "the query");
  const digits = found.digits;
  const special = made.special.map(([text, value], place) => [place ? ", " : "", make("code", {}, text), ` ${made.signed ? signed(value, digits) : number(value, digits)}`]);
  return make("div", { class: "words" },
    checkOf(made),
    make("p", { class: "text" },
      ranked.from + ranked.read[0] > 0 ? make("span", { class: "cut" }, "… ") : null,
      found.group,
      ranked.from + ranked.read[1] < ranked.length ? make("span", { class: "cut" }, " …") : null),
    ranked.window ? null : unread(ranked.truncation, data.maxTokens),
    made.sentence ? make("p", { class: "said" }, sentence(made.verdict === "fails" ? `measured, regardless of the colours: ${made.sentence}` : made.sentence)) : null,
    make("div", { class: "beside" },
      make("div", {}, make("h3", {}, "Strongest words", unitNote(made)), strongestWords(ranked.text, found, LISTED), togetherOf(made)),
      make("div", { class: "query-words" }, make("h3", {}, "The query, for this document", unitNote(made)), make("p", { class: "asked" }, asked.group),
        strongestWords(data.query, asked, LISTED))),
    account(made, [["The check", made.details], ["Precision", made.precision], ["Computed by", made.execution], ["As logits", made.logits], ["Special tokens (in no word's value)", special]]));
};

const VIEWS = {
  words: ["Words", (ranked) => ranked.explanations[state.method] && wordsView],
  matrix: ["Query × document", (ranked) => ranked.matrices.length && ((one) => matrixView(one.matrices))],
  attention: ["Attention", (ranked) => ranked.attention && ((one) => attentionView(one))],
  layers: ["Layers", (ranked) => ranked.layers && ((one) => layersView(one))],
};

// Fill a card's body with the view that is chosen, and its tabs with those there are.
const fillCard = (ranked, card) => {
  const offered = Object.entries(VIEWS).filter(([, [, view]]) => view(ranked));
  if (!offered.some(([name]) => name === card.view)) card.view = offered[0]?.[0];
  const choose = (name) => () => { card.view = name; fillCard(ranked, card); card.tabs.querySelector("[aria-selected=true]").focus(); };
  const tabs = offered.map(([name, [title]]) => make("button", {
    type: "button", role: "tab", id: `tab-${ranked.rank}-${name}`, "data-view": name, "aria-controls": `view-${ranked.rank}`,
    "aria-selected": String(name === card.view), tabindex: name === card.view ? 0 : -1, onclick: choose(name),
  }, title));
  walk(card.tabs, { ArrowRight: [tabs, 1], ArrowLeft: [tabs, -1] });
  card.tabs.replaceChildren(...tabs);
  card.tabs.hidden = tabs.length < 2;
  card.body.setAttribute("aria-labelledby", `tab-${ranked.rank}-${card.view}`);
  card.body.replaceChildren(offered.length ? VIEWS[card.view][1](ranked)(ranked) : make("p", { class: "text" }, ranked.text));
};

const windowOf = ({ how, number: which, windows }) => (how === "mean" ? `mean of ${windows}` : `best of ${windows}: number ${which.toLocaleString("en")}`);

// Where the best window is: a link to it in what the page carries of the document, which is open once it is followed.
const windowLine = (ranked) => {
  const { window: { number: which, first_character: first, last_character: last }, text, from, length } = ranked;
  if (which === null) return make("p", { class: "window" }, windowOf(ranked.window));
  const id = `window-${ranked.rank}`;
  const context = make("details", { class: "context" },
    make("summary", {}, lengthOf(text) < length ? "The window in the document around it" : "The window in the whole document"),
    make("p", { class: "text" },
      from > 0 ? make("span", { class: "cut" }, "… ") : null, cut(text, 0, first - from),
      make("mark", { id, tabindex: -1 }, cut(text, first - from, last - from)), cut(text, last - from),
      from + lengthOf(text) < length ? make("span", { class: "cut" }, " …") : null));
  const link = make("a", { href: `#${id}`, onclick: () => { context.open = true; } },
    `characters ${(first + 1).toLocaleString("en")} to ${last.toLocaleString("en")} of ${length.toLocaleString("en")}`);
  const alone = ranked.windowAlone ? make("p", { class: "alone" }, sentence(ranked.windowAlone)) : null;
  return make("div", { class: "window" }, `The ${windowOf(ranked.window)}, `, link, alone, context);
};

// A path that may be broken after each of its folders.
const folderOf = (path) => path.split("/").slice(0, -1).map((part) => [`${part}/`, make("wbr")]);

const documentCard = (ranked) => {
  const folder = ranked.name.lastIndexOf("/") + 1;
  const tabs = make("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
  const body = make("div", { class: "view", role: "tabpanel", id: `view-${ranked.rank}` });
  const card = { tabs, body, view: state.view };
  card.element = make("article", { id: `document-${ranked.rank}`, "aria-labelledby": `name-${ranked.rank}`, tabindex: -1 },
    make("header", {},
      make("span", { class: "rank" }, ranked.rank),
      make("h2", { id: `name-${ranked.rank}` }, make("bdi", {}, make("span", { class: "folder" }, folderOf(ranked.name.slice(0, folder))), ranked.name.slice(folder))),
      scoreOf(ranked)),
    ranked.window ? windowLine(ranked) : null,
    tabs, body);
  card.fill = () => fillCard(ranked, card);
  return card;
};
