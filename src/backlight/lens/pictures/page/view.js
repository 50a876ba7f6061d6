// The view: what is open, selected, lit and found, and how all of that changes.

// NOTE [The view's interface]
// Panels (the replay) are files after this one, which work through `view` and read `record`, `picture` and `data.replay`:
//   view.show(states, { edges })  draw nodes in states, or as they are after the backward: view.show(null). `states` is a
//       Map or an object: node id → { state, badge, value, gradient }. `state` is "idle" (not there yet), "ready" (its
//       gradient is being gathered), "firing", "fired", "accumulated" or "freed"; nodes without one are idle. `badge` is a
//       few characters. `whole`: whether all of the gradient has arrived. `value` and `gradient` are texts to show instead of the record's; null shows a dash. `edges` are
//       { from: user, to: input, label } along which a gradient goes at this moment.
//   view.reveal(id, { focus })    open the groups around a node and bring it into view; its element, or null.
//   view.select(id)               select a node and describe it; view.select(null) selects none.
//   view.light(ids)               light some nodes and dim the rest; view.light(null) ends it.
//   view.on(event, call)          "select" (item or null), "ready" (the page stands), "run" (the backward that is shown).
//   view.run(number)              show another backward.
//   view.announce(text)           tell a screen reader.
//   view.slot                     the element for the panel, beneath the graph; unhide it. Its keys: view.keys.set(key, call)
//       and view.help(key, what) for the list of keys.

const GLIDE = 240;
const state = { flow: false };
const selection = { item: null };
const lighting = { nodes: null, edges: null, ways: null };
const listeners = new Map();
const tell = (event, ...values) => (listeners.get(event) ?? []).forEach((call) => call(...values));
const announce = (text) => { at("said").textContent = text; };

// Place everything anew; what is at a point of one item stays there: `hold` is { item, x, y }, shares of its rectangle.
const arrange = ({ hold = null, fit = false, lasts = GLIDE } = {}) => {
  const before = hold ? now.get(hold.item) : null;
  const next = place(LOOK);
  scale.fit([...next.items.keys()].filter((item) => !isPoint(item) && !isOpen(item)));
  paint(next, lasts);
  const after = hold ? next.items.get(hold.item) : null;
  if (before && after) {
    const dx = after.x + hold.x * after.width - (before.x + hold.x * before.width);
    const dy = after.y + Math.min(hold.y, HEADER * 0.6) - (before.y + hold.y);
    camera.moved = true;
    fly(camera.x - dx * camera.scale, camera.y - dy * camera.scale, camera.scale, lasts);
  } else if (fit) fitToRead(lasts);
  mark();
  drawLegend();
  at("count").textContent = `${many(elements.size, "item")} shown, of ${many(nodes.length, "node")}`;
};

const setOpen = (id, open) => (open ? opened.add(id) : opened.delete(id));
const toggle = (item, { x = 0.5, y = HEADER / 2 } = {}) => {
  const id = groupOf(item).id;
  setOpen(id, !opened.has(id));
  arrange({ hold: { item, x, y } });
  announce(`${titleOf(groupOf(item))} ${opened.has(id) ? "open" : "closed"}`);
};

// Open level by level as long as that does not show more than one can look at; close all but the whole.
const MOST_SEEN = 1500;
const openAll = () => {
  let left = [...groups].filter((group) => !opened.has(group.id));
  let refused = 0;
  for (const group of left) {
    const wider = new Set(opened).add(group.id);
    if ((group.parent === null || opened.has(group.parent)) && seenWith(wider) <= MOST_SEEN) opened.add(group.id);
    else refused += 1;
  }
  arrange({ fit: true });
  announce(refused ? `Opened what fits ${MOST_SEEN} items; ${many(refused, "group")} stay closed.` : "All groups are open.");
};
const closeAll = () => {
  for (const id of [...opened]) if (groups[id].parent !== null) opened.delete(id);
  arrange({ fit: true });
  announce("All groups are closed.");
};
const closeAround = (item) => {
  const [home] = around(item);
  if (home === undefined) return;
  setOpen(home, false);
  arrange({ hold: { item: `g${home}`, x: 0.5, y: HEADER / 2 } });
  select(`g${home}`, { focus: true });
};

// Light the paths to a node, or end that.
const lightWays = (id) => {
  const ways = id === null ? null : waysTo(id);
  const any = ways?.roots.length;
  Object.assign(lighting, { ways, nodes: any ? ways.nodes : null, edges: any ? new Set([...ways.edges].map((edge) => { const [from, number] = edge.split(":").map(Number); return edgeName(from, nodes[from].edges[number].to); })) : null });
};
const lightNodes = (ids) => Object.assign(lighting, { ways: null, nodes: ids ? new Set(ids) : null, edges: null });

const select = (item, { focus = false, ways = undefined } = {}) => {
  selection.item = item;
  const node = item ? nodeOf(item) : null;
  if (ways ?? (node && isLeaf(node))) lightWays(node.id);
  else lightWays(null);
  mark();
  describe(item);
  if (focus && elements.has(item)) {
    elements.get(item).focus({ preventScroll: true });
    bring(now.has(item) ? scene.items.get(item) ?? now.get(item) : { x: 0, y: 0, width: 0, height: 0 });
  }
  tell("select", item);
};

const reveal = (id, { focus = false } = {}) => {
  const item = `n${id}`, closed = around(item).filter((group) => !opened.has(group));
  const stand = standIn(item);
  closed.forEach((group) => opened.add(group));
  // at once: where a node will be brought to is reckoned from where everything stands in the end
  if (closed.length) arrange({ hold: scene.items.has(stand) ? { item: stand, x: 0.5, y: HEADER / 2 } : null, lasts: 0 });
  const box = scene.items.get(item) ?? now.get(item);
  if (box) bring(box);
  if (focus) elements.get(item)?.focus({ preventScroll: true });
  return elements.get(item) ?? null;
};

const show = (states, { edges = [] } = {}) => {
  shownStates.of = states ? (states instanceof Map ? states : new Map(Object.entries(states).map(([id, one]) => [Number(id), one]))) : null;
  shownStates.edges = edges;
  for (const item of elements.keys()) dress(item);
  mark();
};

const setMode = (mode) => {
  scale.mode = mode;
  for (const button of at("modes").children) {
    button.setAttribute("aria-checked", String(button.dataset.mode === mode));
    button.tabIndex = button.dataset.mode === mode ? 0 : -1;
  }
  arrange({ hold: selection.item && scene.items.has(selection.item) ? { item: selection.item, x: 0.5, y: 10 } : null, lasts: 0 });
};

// From left to right instead of downwards, or the other way round.
const nameLayout = () => {
  at("layout").textContent = LOOK.sideways ? "Downwards" : "To the right";
  frame.classList.toggle("sideways", LOOK.sideways);
};
const turnLayout = () => {
  LOOK.sideways = !LOOK.sideways;
  nameLayout();
  arrange({ fit: true, lasts: 0 });
  announce(LOOK.sideways ? "The graph runs from left to right." : "The graph runs downwards.");
};

const setFlow = (flow) => {
  state.flow = flow;
  at("flow").setAttribute("aria-pressed", String(flow));
  layers.links.classList.toggle("flow", flow);
  for (const { key, points } of scene.links) paintLink(key, points);
  announce(flow ? "Arrows show where gradients go." : "Arrows show where values go.");
};

const showRun = (number) => {
  shownRun.number = number;
  at("runs").value = number;
  for (const { group, link } of paths.values()) group.classList.toggle("went", gradientWent(link));
  drawDepths();
  arrange({ lasts: 0 });
  select(selection.item);
  tell("run", number);
};

const view = {
  show, reveal, announce, slot: at("replay"), keys: new Map(),
  select: (id) => select(id === null ? null : `n${id}`),
  light: (ids) => { lightNodes(ids); mark(); },
  on: (event, call) => listeners.set(event, [...(listeners.get(event) ?? []), call]),
  run: showRun,
  help: (key, what) => at("keys").querySelector("dl").append(make("dt", {}, make("kbd", {}, key)), make("dd", {}, what)),
};
