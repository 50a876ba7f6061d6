// Search: by name, op, module, shape, file or line; the hits are counted, and the keys go from one to the next.

const found = { nodes: null, order: [], current: null };
const textOf = (...parts) => parts.filter(Boolean).join("\n").toLowerCase();
const searchable = nodes.map((node) => ({
  own: textOf(node.name, node.label),
  names: textOf(node.name, node.label, node.type.replace(/Backward\d*$|^AccumulateGrad$/, ""), node.module, node.module_type, node.outputs[0] && shapeText(node.outputs[0].shape), ...node.hooks, isLeaf(node) ? "leaf" : "", node.parameter ? "parameter" : "", node.root ? "root" : ""),
  source: textOf(placeText(node.place), node.place?.text, node.place?.function),
}));
const groupTexts = groups.map((group) => textOf(group.title, group.detail));

// A word of one or two letters is the whole of a name, or each `w` would find everything; a longer one is a part of one.
const isIn = (text, word) => (word.length > 2 ? text.includes(word) : text.split(/[^\p{L}\p{N}_×÷+−·]+/u).includes(word));
// How well a node answers: by its own name, by other names, by the line or a group around it; 0 where it does not.
const answers = (id, word) => {
  const { own, names, source } = searchable[id];
  if (own === word) return 4;
  if (isIn(own, word)) return 3;
  if (isIn(names, word)) return 2;
  return word.length > 2 && (source.includes(word) || around(`n${id}`).some((group) => groupTexts[group].includes(word))) ? 1 : 0;
};

// Every word must be found; the best answers come first.
const search = (text) => {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const scores = new Map(words.length ? [...boxes.keys()].map((id) => [id, Math.min(...words.map((word) => answers(id, word)))]) : []);
  const hits = [...boxes.keys()].filter((id) => scores.get(id)).sort((one, other) => scores.get(other) - scores.get(one) || one - other);
  Object.assign(found, { nodes: words.length ? new Set(hits) : null, order: hits, current: null });
  at("hits").textContent = words.length ? (hits.length ? many(hits.length, "hit") : "nothing found") : "";
  for (const button of [at("next"), at("previous")]) button.disabled = !hits.length;
  at("found").replaceChildren(...hits.slice(0, MOST_LISTED).map(hitElement));
  mark();
};

const MOST_LISTED = 8;
const hitElement = (id) => make("li", {}, make("button", { type: "button", tabindex: -1, "data-hit": id, onclick: () => showHit(id) },
  make("bdi", {}, nameOf(nodes[id])), make("bdi", { class: "of" }, [isLeaf(nodes[id]) ? "leaf" : nodes[id].label, nodes[id].module || placeText(nodes[id].place)].filter(Boolean).join(" · "))));

const goToHit = (step) => {
  if (!found.order.length) return;
  const here = found.current === null ? (step > 0 ? -1 : 0) : found.order.indexOf(found.current);
  showHit(found.order[(here + step + found.order.length) % found.order.length]);
};
const showHit = (id) => {
  found.current = id;
  reveal(id);
  select(`n${id}`, { ways: false });
  for (const button of at("found").querySelectorAll("button")) button.classList.toggle("current", button.dataset.hit === String(id));
  at("hits").textContent = `${found.order.indexOf(id) + 1} of ${found.order.length.toLocaleString("en")}`;
  announce(`${at("hits").textContent}: ${spoken(`n${id}`)}`);
};

const listenToSearch = () => {
  const field = at("search");
  field.addEventListener("input", () => search(field.value));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); goToHit(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { field.value = ""; search(""); field.blur(); event.stopPropagation(); }
    if (event.key === "ArrowDown" && selection.item) { event.preventDefault(); elements.get(selection.item)?.focus({ preventScroll: true }); }
  });
  at("next").addEventListener("click", () => goToHit(1));
  at("previous").addEventListener("click", () => goToHit(-1));
};
