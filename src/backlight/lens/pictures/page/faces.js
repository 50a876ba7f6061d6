// How an item looks: what is written on it, how large it is, and the elements that show it.

const MOST_BEADS = 3;
const canvas = document.createElement("canvas").getContext("2d");
const SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Liberation Sans", sans-serif';
const MONO = 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
const FONTS = { head: `600 14px ${SANS}`, name: `12px ${MONO}`, row: `11px ${MONO}`, small: `11px ${SANS}` };
const measured = new Map();
const widthOf = (text, font) => {
  const key = font + text;
  if (!measured.has(key)) {
    canvas.font = FONTS[font];
    measured.set(key, canvas.measureText(text).width);
  }
  return measured.get(key);
};

// What a step of the replay says of a node: state, badge, and value and gradient as they are at that moment.
const shownStates = { of: null, edges: [] };
const stateOf = (id) => shownStates.of?.get(id) ?? null;
// A node's gradient at that moment: none before all of it has arrived.
const gradientNow = (id) => {
  if (!shownStates.of) return gradientOf(id);
  const state = stateOf(id);
  return state && (state.gradient === undefined || (state.whole ?? state.gradient)) ? arrived(id) : null;
};
const brokenNow = (ids) => brokenIn(ids).filter((id) => isBroken(gradientNow(id)) || ((!shownStates.of || stateOf(id)) && brokenOutput(id)));

const valueText = (id) => {
  const made = nodes[id].outputs[0];
  // a number that was not recorded, the replay may have worked out
  if (made?.values === undefined) return made && !made.shape.length ? stateOf(id)?.value ?? null : null;
  const whole = listed(made.values);
  if (whole.length > 24) return null; // its box has no room for one, in the replay neither
  if (!shownStates.of) return whole;
  const state = stateOf(id);
  return (state?.value === undefined && state ? whole : state?.value) ?? ABSENT;
};
const gradientText = (id) => {
  const state = stateOf(id);
  if (shownStates.of && (!state || state.gradient !== undefined)) return state?.gradient ?? ABSENT;
  return gradientOf(id) ? brief(gradientOf(id)) ?? "arrived" : ABSENT;
};

// The rows beneath a box's head: [what, text, class].
const rowsOf = (id) => {
  const node = nodes[id], made = node.outputs[0], rows = [], value = valueText(id);
  if (made && (value === null || made.shape.length)) rows.push(["", shapeText(made.shape) + (made.dtype && made.dtype !== "float32" ? ` ${made.dtype}` : ""), "shape"]);
  if (value !== null) rows.push(["value", value, isBroken(made) && !isMasked(id) ? "broken" : ""]);
  else if (isBroken(made) && isMasked(id)) rows.push(["mask", maskedText(made), ""]);
  else if (isBroken(made)) rows.push(["value", `⚠ ${brokenText(made)}`, "broken"]);
  rows.push(scale.rowOf([id]) ?? ["grad", (isBroken(gradientNow(id)) ? "⚠ " : "") + gradientText(id), isBroken(gradientNow(id)) ? "broken" : gradientText(id) === ABSENT ? "absent" : ""]);
  return rows;
};

// The shapes of what other nodes read of some nodes, or of their roots; "" if they are many or not known.
const shapesGivenBy = (ids) => {
  const own = new Set(ids), read = ids.filter((id) => nodes[id].root || usersOf(id).some((user) => !own.has(user)));
  const shapes = [...new Set(read.filter((id) => !isLeaf(nodes[id])).map((id) => nodes[id].outputs[0] && shapeText(nodes[id].outputs[0].shape)))];
  return shapes.length && shapes.length < 3 && shapes.every(Boolean) ? shapes.join(", ") : "";
};
const rowsOfGroup = (group) => {
  const ids = nodesIn(`g${group.id}`), rows = [];
  const parts = [group.ops ? many(group.ops, "op") : "", group.parameters ? many(group.parameters, "parameter") : ""].filter(Boolean);
  if (group.detail) rows.push(["", group.detail, "shape"]);
  if (parts.length) rows.push(["", parts.join(" · "), "counts"]);
  const given = shapesGivenBy(ids);
  if (given) rows.push(["gives", given, "shape"]);
  const broken = brokenNow(ids).length, norm = normIn(ids, gradientNow);
  const row = scale.rowOf(ids) ?? (norm !== null ? [normWord(ids), short(norm, 3), ""] : measuredIn(ids).some((id) => gradientNow(id)) ? null : ["grad", ABSENT, "absent"]);
  if (broken) rows.push(["", `⚠ NaN or inf in ${broken}`, "broken"]);
  else if (row) rows.push(row);
  return rows;
};

const titleOf = (group) => group.title || group.detail || `group ${group.id}`;
const headOf = (item) => {
  if (item[0] === "g") return [titleOf(groupOf(item)), ""];
  const node = nodeOf(item);
  if (isLeaf(node)) return [node.parameter ? (node.name ?? node.label).split(".").at(-1) : symbolOf(node), ""];
  return [node.label, node.name && node.name !== node.label ? node.name : ""];
};

const LIMITS = { n: [76, 360], g: [132, 460] }; // long names stand there in full
const closedSize = (item) => {
  const group = groupOf(item), [head, name] = headOf(item);
  if (isPill(item)) return { width: Math.max(30, Math.round(widthOf(head, "row")) + 22), height: 22 };
  const rows = group ? rowsOfGroup(group) : rowsOf(Number(item.slice(1)));
  const wide = rows.map(([what, text, kind]) => widthOf(text, "row") * (kind === "broken" ? 1.12 : 1) + (what ? widthOf(what, "small") + 14 : 0));
  const top = widthOf(head, "head") + (name ? widthOf(name, "name") + 14 : 0) + (group ? 20 : 0) + (nodeOf(item) ? widthOf(numbered(nodeOf(item).id), "row") + 12 : 0) + (nodesIn(item).some((id) => nodes[id].root) ? 46 : 0);
  const [least, most] = LIMITS[item[0]];
  return { width: Math.round(Math.min(most, Math.max(least, top, ...wide) + 27)), height: 30 + rows.length * 16 + 6 };
};

// What placing asks (see place.js): the sizes of what is closed and of ports (those above end beneath the header); how wide
// a header is; more room above a row where beads with names lie on links into it, and beneath a header.
const BEAD_GAP = 15, ABOVE_BEADS = 30, UNDER_HEADER = 14;
const sizeOf = (item) => (isPoint(item) ? { width: 0, height: item[0] === "i" && !LOOK.sideways ? HEADER : 0 } : closedSize(item));
const leastWidth = (group) => widthOf(titleOf(group), "head") + widthOf(group.detail ?? "", "small") + 72;

const roomsOf = (group) => {
  const rowOf = new Map(group.ranks.flatMap((row, number) => row.map((item) => [item, number])));
  const rooms = group.ranks.map(() => 0);
  if (group.parent !== null) rooms[1] = group.ranks[0].length ? ROW_GAP : LOOK.sideways ? 0 : UNDER_HEADER;
  for (const { end, beads = [] } of group.links ?? []) {
    if (beads.length) rooms[rowOf.get(end)] = Math.max(rooms[rowOf.get(end)], roomOfBeads(beads.slice(0, MOST_BEADS)));
  }
  return rooms;
};
// Names of beads stand beside them on a link downwards, and above them on one to the right.
const roomOfBeads = (beads) => {
  if (!LOOK.sideways) return ABOVE_BEADS + beads.length * BEAD_GAP;
  return ABOVE_BEADS + Math.max(...beads.map((id) => widthOf(nodes[id].label, "row") + 4)) * beads.length;
};
const LOOK = { size: sizeOf, least: leastWidth, rooms: roomsOf, sideways: false };

// What a screen reader says of an item.
const spoken = (item) => {
  const group = groupOf(item);
  if (group) return `${titleOf(group)}, ${group.detail ? `${group.detail}, ` : ""}group of ${many(nodesIn(item).length, "node")}, ${isOpen(item) ? "open" : "closed"}`;
  const id = Number(item.slice(1)), node = nodes[id], made = node.outputs[0];
  const lines = [isLeaf(node) ? `leaf ${nameOf(node)}` : `${node.label}${node.name ? ` ${node.name}` : ""}`, node.root ? "root" : "", made ? `shape ${shapeText(made.shape)}` : "", valueText(id) ? `value ${valueText(id)}` : "", gradientText(id) === ABSENT ? "no gradient yet" : `gradient ${gradientText(id)}`];
  return [...lines.filter(Boolean), `number ${id}`].join(", ");
};

const kindOf = (item) => (item[0] === "g" ? "group" : isPill(item) ? `${nodeOf(item).kind} pill` : boxes.get(Number(item.slice(1)))?.bead ? "bead" : nodeOf(item).kind);
const rowElements = (rows) => rows.map(([what, text, kind]) => make("div", { class: `row ${kind}`, title: kind === "absent" ? "no gradient yet: none has arrived here" : null }, what ? make("span", { class: "what" }, what) : null, make("span", { class: "text" }, text)));

// A node's number, as the replay and the terminal write it.
const numbered = (id) => `#${id}`;
const badgesOf = (item) => {
  const ids = nodesIn(item), node = nodeOf(item), marks = [];
  if (node) marks.push(make("span", { class: "number" }, numbered(node.id)));
  if (node?.root) marks.push(make("span", { class: "mark root" }, "root"));
  if (node?.hooks.length) marks.push(make("span", { class: "mark", title: `hooks: ${node.hooks.join(", ")}` }, "hook"));
  if (item[0] === "g" && ids.some((id) => nodes[id].root) && !isOpen(item)) marks.push(make("span", { class: "mark root" }, "root"));
  return marks;
};

// The contents of an item's element.
const faceOf = (item) => {
  if (kindOf(item) === "bead") return [make("span", { class: "bead-name" }, nodeOf(item).label)];
  if (isPill(item)) return [make("span", { class: "symbol" }, nodeOf(item).label), stateBadge(item)];
  const group = groupOf(item), [head, name] = headOf(item);
  const top = make("div", { class: "head" },
    group ? make("span", { class: "turn", "aria-hidden": "true" }, isOpen(item) ? "▾" : "▸") : null,
    make("bdi", { class: "symbol" }, head), name ? make("bdi", { class: "name" }, name) : null,
    group && isOpen(item) && group.detail ? make("bdi", { class: "detail" }, group.detail) : null, badgesOf(item));
  if (isOpen(item)) return [top, stateBadge(item)];
  return [top, make("div", { class: "rows" }, rowElements(group ? rowsOfGroup(group) : rowsOf(Number(item.slice(1))))), stateBadge(item)];
};

// The replay's small badge; of a group, how many of its nodes have fired.
const stateBadge = (item) => {
  if (!shownStates.of) return null;
  if (item[0] === "n") return stateOf(Number(item.slice(1)))?.badge ? make("span", { class: "badge" }, stateOf(Number(item.slice(1))).badge) : null;
  const found = nodesIn(item).map(stateOf).filter(Boolean);
  const done = found.filter((one) => DONE.has(one.state)).length;
  return found.length && !isOpen(item) ? make("span", { class: "badge" }, `${done} of ${found.length}`) : null;
};
const DONE = new Set(["fired", "accumulated", "freed"]);
const stateOfItem = (item) => {
  if (!shownStates.of) return null;
  if (item[0] === "n") return stateOf(Number(item.slice(1)))?.state ?? "idle";
  const states = nodesIn(item).map((id) => stateOf(id)?.state ?? "idle");
  if (states.includes("firing")) return "firing";
  if (states.some((state) => state === "ready")) return "ready";
  return states.every((state) => state === "idle") ? "idle" : states.some((state) => DONE.has(state)) ? "fired" : states[0];
};
