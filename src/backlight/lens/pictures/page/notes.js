// What the replay writes on edges: the numbers that go along them, where they hide neither a box nor each other.

const NOTE = { height: 16, air: 3 };
// Points along a link from its end, the input, to its start; what stands on the last curve is nearest to the input.
const alongLink = (points) => {
  const found = [];
  for (let place = points.length - 1; place > 0; place -= 1) {
    const [x0, y0] = points[place - 1], [x1, y1] = points[place];
    if (Math.abs(y1 - y0) + Math.abs(x1 - x0) < NOTE.height) continue;
    for (const t of [0.7, 0.6, 0.5, 0.4, 0.8, 0.3, 0.2, 0.9]) found.push(onCurve([x0, y0], [x1, y1], t));
  }
  return found;
};
const overlap = (one, other) => {
  const across = Math.min(one.x + one.width, other.x + other.width) - Math.max(one.x, other.x), down = Math.min(one.y + one.height, other.y + other.height) - Math.max(one.y, other.y);
  return across > 0 && down > 0 ? across * down : 0;
};
// What has words that a note would hide: closed boxes, headers of open groups, beads with their names.
const worded = () => [
  ...[...scene.items].filter(([item]) => !isPoint(item)).map(([item, box]) => (isOpen(item) ? { ...box, height: HEADER } : box)),
  ...[...beadsOf(scene.links)].map(([item, box]) => ({ ...box, y: box.y - 3, width: 17 + widthOf(nodeOf(item).label, "row"), height: NOTE.height })),
];
// The labels of each link: of several edges that are drawn as one, all.
const labelsOfLinks = () => {
  const labels = new Map();
  for (const { from, to, label } of shownStates.edges) {
    const name = edgeName(from, to), on = label && scene.links.findLast(({ link }) => (link.wires ?? []).some((number) => wires[number].edges.includes(name)));
    if (on) labels.set(on, [...(labels.get(on) ?? []), label]);
  }
  return labels;
};
const drawEdgeNotes = () => {
  const labels = labelsOfLinks(), taken = labels.size ? worded() : [];
  at("notes").replaceChildren(...[...labels].flatMap(([on, lines]) => {
    const text = lines.join(", "), width = widthOf(text, "row") * 1.08 + 14;
    const boxAt = ([x, y]) => ({ x: x - width / 2, y: y - NOTE.height / 2, width, height: NOTE.height });
    const hidden = ({ x, y }) => taken.reduce((sum, other) => sum + overlap({ x: x - NOTE.air, y: y - NOTE.air, width: width + 2 * NOTE.air, height: NOTE.height + 2 * NOTE.air }, other), 0);
    const spots = alongLink(on.points).map(boxAt), [free] = spots.sort((one, other) => hidden(one) - hidden(other));
    if (!free) return [];
    taken.push(free);
    return make("bdi", { class: "note", style: `transform: translate(${free.x}px, ${free.y}px)` }, text);
  }));
};
