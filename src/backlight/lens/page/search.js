// Search: by name, op, module, shape, file or line; the hits are counted, and the keys go from one to the next.

const found = { nodes: null, order: [], current: null };
const searchable = nodes.map((node) => [
  node.name, node.label, node.type, node.module, node.module_type, placeText(node.place), node.place?.text, node.place?.function,
  node.outputs[0] ? shapeText(node.outputs[0].shape) : "", node.hooks.join(" "), isLeaf(node) ? "leaf" : "", node.parameter ? "parameter" : "", node.root ? "root" : "",
].filter(Boolean).join("\n").toLowerCase());
const groupTexts = groups.map((group) => [group.title, group.detail].filter(Boolean).join("\n").toLowerCase());

// Every word must be found in a node, or in the title of a group around it.
const search = (text) => {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const holds = (id, word) => searchable[id].includes(word) || around(`n${id}`).some((group) => groupTexts[group].includes(word));
  const hits = words.length ? [...boxes.keys()].filter((id) => words.every((word) => holds(id, word))) : [];
  // the forward's end first: the root is where one looks from
  Object.assign(found, { nodes: words.length ? new Set(hits) : null, order: hits, current: null });
  at("hits").textContent = words.length ? (hits.length ? many(hits.length, "hit") : "nothing found") : "";
  for (const button of [at("next"), at("previous")]) button.disabled = !hits.length;
  mark();
};

const goToHit = (step) => {
  if (!found.order.length) return;
  const here = found.current === null ? (step > 0 ? -1 : 0) : found.order.indexOf(found.current);
  const place = (here + step + found.order.length) % found.order.length;
  found.current = found.order[place];
  reveal(found.current);
  select(`n${found.current}`, { ways: false });
  at("hits").textContent = `${place + 1} of ${found.order.length.toLocaleString("en")}`;
  announce(`${at("hits").textContent}: ${spoken(`n${found.current}`)}`);
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
