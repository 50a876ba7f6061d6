// Which words of the document each word of the query looks at, layer by layer and head by head, and the other way round.

const LINES = 48; // most lines at once
const FADED = 0.25; // how much of a line is seen behind the document, whose letters keep a rim of the card's ground

// Links of a head are [the largest share, then query word, document word, 0 to 255 of the largest, …].
const linksOf = (flat) => {
  const links = [];
  for (let place = 1; place < flat.length; place += 3) {
    links.push({ query: flat[place], document: flat[place + 1], share: (flat[place + 2] / 255) * flat[0], size: flat[place + 2] / 255 });
  }
  return links;
};

const plainWords = (text, places, read) => {
  const spans = [];
  const parts = [];
  let done = read[0];
  for (const [start, end] of places) {
    parts.push(cut(text, done, start));
    spans.push(make("span", { class: "word" }, cut(text, start, end)));
    parts.push(spans.at(-1));
    done = end;
  }
  return [spans, [...parts, cut(text, done, read[1])]];
};

// A slider with its name and a text that says where it stands.
const slider = (name, low, high, textOf, change) => {
  const said = make("output", {});
  const range = make("input", { type: "range", min: low, max: high, step: 1, "aria-label": name });
  const tell = () => { said.textContent = textOf(+range.value); range.setAttribute("aria-valuetext", said.textContent); };
  range.addEventListener("input", () => { tell(); change(+range.value); });
  return { element: make("label", { class: "slider" }, make("span", {}, name), range, said), set: (value) => { range.value = value; tell(); } };
};

const curve = (from, to, origin, size, back) => {
  const [x1, y1] = [from.left + from.width / 2 - origin.left, from.bottom - origin.top];
  const [x2, y2] = [to.left + to.width / 2 - origin.left, to.top - origin.top];
  const middle = (y1 + y2) / 2;
  return draw("path", { d: `M${x1} ${y1} C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`, class: back ? "back" : "", "stroke-width": (0.6 + 2.4 * size).toFixed(2), opacity: (0.15 + 0.85 * size).toFixed(2) });
};

const attentionView = (ranked) => {
  const found = ranked.attention;
  const [asked, askedParts] = plainWords(data.query, found.query, data.queryRead);
  const [documentWords, documentParts] = plainWords(ranked.text, found.document, ranked.read);
  const lines = draw("svg", { class: "lines", "aria-hidden": "true" });
  const text = make("p", { class: "text" }, documentParts);
  const stage = make("div", { class: "stage" }, lines, make("p", { class: "asked" }, askedParts), text);
  const status = make("p", { class: "apart", role: "status" });
  const chosen = { layer: found.layers - 1, head: 0, direction: 0, word: -1 };

  const redraw = () => {
    if (!stage.isConnected) return; // another view is shown
    const { links } = found.directions[chosen.direction];
    let shown = linksOf(links[chosen.layer][chosen.head]);
    if (chosen.word >= 0) shown = shown.filter((link) => link.query === chosen.word);
    shown = shown.slice(0, LINES);
    const sums = new Map();
    for (const link of shown) sums.set(link.document, Math.max(sums.get(link.document) || 0, link.size));
    documentWords.forEach((span, place) => lit(span, sums.get(place) || 0, false));
    asked.forEach((span, place) => span.classList.toggle("lifted", place === chosen.word));
    const origin = stage.getBoundingClientRect();
    const top = text.getBoundingClientRect().top - origin.top;
    lines.style.maskImage = `linear-gradient(#000 ${top - 12}px, rgb(0 0 0 / ${FADED}) ${top}px)`;
    lines.replaceChildren(...shown.map((link) => curve(asked[link.query].getBoundingClientRect(), documentWords[link.document].getClientRects()[0], origin, link.size, chosen.direction === 1)));
    const best = shown[0];
    const names = best ? [asked[best.query].textContent, documentWords[best.document].textContent] : [];
    if (chosen.direction === 1) names.reverse();
    status.textContent = best ? `Strongest here: “${names[0]}” → “${names[1]}”, ${(100 * best.share).toFixed(1)} % of the attention of “${names[0]}”.` : "No attention between the two here.";
  };
  asked.forEach((span, place) => {
    span.tabIndex = place ? -1 : 0;
    const look = (word) => () => { chosen.word = word; redraw(); };
    for (const event of ["mouseenter", "focus"]) span.addEventListener(event, look(place));
    for (const event of ["mouseleave", "blur"]) span.addEventListener(event, look(-1));
  });
  walk(stage, { ArrowRight: [asked, 1], ArrowLeft: [asked, -1] });

  const layer = slider("Layer", 1, found.layers, (value) => `${value} of ${found.layers}`, (value) => { chosen.layer = value - 1; redraw(); });
  const head = slider("Head", 0, found.heads, (value) => (value ? `${value} of ${found.heads}` : "mean of all"), (value) => { chosen.head = value; redraw(); });
  layer.set(found.layers);
  head.set(0);
  const ways = found.directions.map((one, number) => make("button", {
    type: "button", role: "radio", "aria-checked": String(number === 0), tabindex: number ? -1 : 0,
    onclick: () => { chosen.direction = number; ways.forEach((way, other) => way.setAttribute("aria-checked", String(other === number))); redraw(); },
  }, one.name));
  const group = make("div", { class: "methods", role: "radiogroup", "aria-label": "Direction of attention" }, ways);
  walk(group, { ArrowRight: [ways, 1], ArrowLeft: [ways, -1] });
  new ResizeObserver(redraw).observe(stage);
  return make("div", { class: "attention" },
    make("div", { class: "controls" }, layer.element, head.element, group),
    stage, status,
    make("p", { class: "apart" }, `Attention shows where a layer looks, not how much the score depends on it. Only the ${found.kept} strongest links of each word and head are shown.`));
};
