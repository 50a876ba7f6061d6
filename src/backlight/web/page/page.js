// The page: draw it for the method that is chosen, draw it again when that changes, and obey the keyboard.

const root = document.documentElement;
const themeButton = document.getElementById("theme");
const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

// The address may ask for a theme (#dark, #light), else the system decides, until the button is pressed.
const nameTheme = () => {
  themeButton.textContent = isDark() ? "Light" : "Dark";
  themeButton.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
};
const turnTheme = () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  nameTheme();
};

const heading = document.getElementById("heading");
const main = document.querySelector("main");
const nav = document.querySelector("nav");
const cards = new Map(data.documents.filter((ranked) => Object.keys(ranked.explanations).length || ranked.matrices.length).map((ranked) => [ranked.rank, documentCard(ranked)]));
const entries = new Map(data.documents.map((ranked) => [ranked.rank, entryOf(ranked)]));
const field = make("input", { type: "search", id: "search", placeholder: "Search the texts", "aria-label": "Search names and texts", autocomplete: "off" });
const status = make("span", { class: "found-count", role: "status" });

const rankedOf = (rank) => {
  const explained = data.documents.filter((ranked) => ranked.explanations[state.method]);
  return explained.find((ranked) => ranked.rank === rank) || explained[0];
};

const drawHeading = () => {
  heading.replaceChildren(...[
    litQuery(rankedOf(state.shown)),
    data.queryTruncation ? unread(data.queryTruncation, data.maxTokens) : null,
    data.language ? make("p", { class: "unread" }, sentence(data.language)) : null,
    data.spelling ? make("p", { class: "unread" }, sentence(data.spelling)) : null,
    data.unanswered ? make("p", { class: "unread" }, sentence(data.unanswered)) : null,
    facts(), methodSwitch(chooseMethod), rankingLegend(),
    data.closeness ? make("p", { class: "closeness" }, sentence(data.closeness)) : null,
  ].filter(Boolean));
};

// Light the query for the document in view.
const showQueryFor = (rank) => {
  if (rank === undefined || rank === state.shown) return;
  state.shown = rank;
  document.getElementById("query").replaceWith(litQuery(rankedOf(rank)));
};

const rankOfCardWith = (element) => [...cards].find(([, card]) => card.element.contains(element))?.[0];

// The document in view: the one whose word has the focus while that is on the screen; else the last whose card begins
// in the window's upper part; before all of them, the first.
const inView = () => {
  const focused = document.activeElement || document.body;
  const box = focused.getBoundingClientRect();
  if (main.contains(focused) && box.bottom > 0 && box.top < innerHeight) return rankOfCardWith(focused);
  const shown = [...cards].filter(([, card]) => !card.element.hidden);
  const above = shown.filter(([, card]) => card.element.getBoundingClientRect().top < innerHeight * 0.4);
  return (above.at(-1) || shown[0])?.[0];
};

const drawAll = () => {
  hideTip();
  drawHeading();
  for (const card of cards.values()) card.fill();
  search(field.value, entries, cards, status);
};

const chooseMethod = (name) => {
  const focused = document.activeElement?.dataset?.method;
  state.method = name;
  drawAll();
  if (focused) heading.querySelector("[aria-checked=true]").focus();
};

const nextOf = (all, here, step) => all[(all.indexOf(here) + step + all.length) % all.length];

// Go to the next card: the one after that which the window's upper half shows.
const goOn = (step) => {
  const shown = [...main.children].filter((card) => !card.hidden);
  if (!shown.length) return;
  const here = shown.includes(document.activeElement) ? shown.indexOf(document.activeElement) : step > 0 ? -1 : shown.length;
  const next = shown[Math.max(0, Math.min(shown.length - 1, here + step))];
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "start" });
};

const help = document.getElementById("keys");
const KEYS = {
  m: () => data.methods.length && chooseMethod(nextOf(data.methods.map(({ name }) => name), state.method, 1)),
  M: () => data.methods.length && chooseMethod(nextOf(data.methods.map(({ name }) => name), state.method, -1)),
  j: () => goOn(1),
  k: () => goOn(-1),
  t: turnTheme,
  "/": () => field.focus(),
  "?": () => help.showModal(),
};
addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideTip();
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input") || help.open) return;
  if (!KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});

const begin = () => {
  const asked = location.hash.slice(1);
  if (asked === "dark" || asked === "light") root.dataset.theme = asked;
  themeButton.hidden = false;
  themeButton.addEventListener("click", turnTheme);
  document.getElementById("help").addEventListener("click", () => help.showModal());
  system.addEventListener("change", nameTheme);
  nameTheme();
  field.addEventListener("input", () => search(field.value, entries, cards, status));
  if (data.documents.length) {
    nav.append(make("h2", {}, "Ranking"));
    if (data.documents.length > 1) nav.append(make("div", { class: "search" }, field, status));
    nav.append(make("ol", {}, [...entries.values()]));
    if (data.notReranked.length) nav.append(...notReranked());
  }
  if (data.comparisons.length) {
    const against = data.comparisons.map(({ a, b }, place) => make("li", {}, make("a", { class: "against", href: `#comparison-${place}` }, make("bdi", {}, a.name.split("/").at(-1)), " against ", make("bdi", {}, b.name.split("/").at(-1)))));
    nav.append(make("h2", {}, "A against B"), make("ol", {}, against));
  }
  nav.hidden = !nav.children.length;
  main.replaceChildren(...[...cards.values()].map((card) => card.element), ...data.comparisons.map(comparisonCard));
  document.body.append(tip);
  drawAll();
  addEventListener("scroll", () => requestAnimationFrame(() => showQueryFor(inView())), { passive: true });
  main.addEventListener("focusin", (event) => showQueryFor(rankOfCardWith(event.target)));
  if (asked && document.getElementById(asked)) document.getElementById(asked).scrollIntoView();
};
begin();
