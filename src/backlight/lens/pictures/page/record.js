// The record, as the page reads it (see NOTE [A record] in lens/records/record.py): what is left out in the data is put back, and
// what the page asks again and again is worked out once.

const record = data.record;
const nodes = record.nodes ?? [];

const NODE = { name: null, parameter: false, edges: [], outputs: [], module: "", module_type: "", place: null, stack: [], saved: [], hooks: [], version: 0, root: false, order: 1, seconds: null };
const STEP = { incoming: [], outgoing: [], grad_before: null, grad_after: null, changes: [], freed: 0, seconds: null };
const placed = (number) => (number === undefined || number === null ? null : data.places[number]);

const summed = (number) => (number === undefined || number === null ? null : data.summaries[number]);
for (const name of ["backwards", "writes"]) record[name] ??= [];
for (const write of record.writes) write.place = placed(write.place);
for (const node of nodes) {
  for (const [name, value] of Object.entries(NODE)) if (node[name] === undefined) node[name] = value;
  node.place = placed(node.place);
  node.stack = node.stack.map(placed);
  node.outputs = node.outputs.map(summed);
  node.grad = summed(node.grad);
  for (const edge of node.edges) if (edge) Object.assign(edge, { output: 0, name: "", formula: "", ...edge });
  for (const kept of node.saved) Object.assign(kept, { of: null, version: 0, written: 0, ...kept, summary: summed(kept.summary) });
}
for (const backward of record.backwards) {
  backward.place = placed(backward.place);
  backward.steps ??= [];
  backward.steps.forEach((step, number) => {
    Object.assign(step, { ...STEP, ...step, number });
    for (const name of ["incoming", "outgoing"]) step[name] = step[name].map(summed);
    for (const holder of [step, ...step.changes]) for (const name of ["grad_before", "grad_after", "before", "after"]) if (name in holder) holder[name] = summed(holder[name]);
  });
  backward.stepOf = new Map(backward.steps.map((step) => [step.node, step]));
}

// Who reads a node's output: pairs of a node and the number of its edge.
const users = nodes.map(() => []);
for (const node of nodes) node.edges.forEach((edge, number) => edge && users[edge.to].push([node.id, number]));

const isLeaf = (node) => node.kind === "leaf";
const nameOf = (node) => node.name || node.label || node.type;
const symbolOf = (node) => (isLeaf(node) ? node.name || node.label : node.label);
const placeText = (place) => (place ? `${place.file.split(/[\\/]/).at(-1)}:${place.line}` : "");

// Which backward is shown: its number in the record; null where none ran.
const shownRun = { number: data.picture.backward ?? null };
const run = () => (shownRun.number === null ? null : record.backwards[shownRun.number]);
const stepOf = (id) => run()?.stepOf.get(id) ?? null;

// What arrived at a node in the backward that is shown (of several outputs the first that got something), or null.
const arrived = (id) => stepOf(id)?.incoming.find(Boolean) ?? null;
// What the user finds in `.grad`, of leaves and of others whose gradient is retained: as the backward that is shown left
// it, or, where that did not come by and none came after it, as it is in the end.
const isLastRun = () => shownRun.number === null || shownRun.number === record.backwards.length - 1;
const gradientKept = (id) => stepOf(id)?.grad_after ?? (isLastRun() && !stepOf(id) ? nodes[id].grad : null);
const gradientOf = (id) => (isLeaf(nodes[id]) ? gradientKept(id) ?? arrived(id) : arrived(id));
// What a node handed along one of its edges.
const handed = (id, number) => stepOf(id)?.outgoing[number] ?? null;

// Memory that is kept for backward: shared memory counts once, parameters (held anyway) not at all.
const savedOf = (ids) => {
  const seen = new Map();
  for (const id of ids) for (const kept of nodes[id].saved) if (!heldAnyway(kept)) seen.set(kept.memory, kept.bytes);
  return [...seen.values()].reduce((sum, bytes) => sum + bytes, 0);
};
const heldAnyway = (kept) => kept.of !== null && isLeaf(nodes[kept.of]);

const sumKnown = (values) => {
  const known = values.filter((value) => value !== null && value !== undefined);
  return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
};
const timeOf = (ids) => sumKnown(ids.map((id) => nodes[id].seconds));
const backwardTimeOf = (ids) => sumKnown(ids.map((id) => stepOf(id)?.seconds));
// One measure of a group everywhere: the norm of its leaves' gradients as one vector; without leaves the largest in it.
const measuredIn = (ids) => { const leaves = ids.filter((id) => isLeaf(nodes[id])); return leaves.length ? leaves : ids; };
const normIn = (ids, of = gradientOf) => {
  const measured = measuredIn(ids), norms = measured.map((id) => of(id)?.norm).filter((norm) => norm !== undefined && norm !== null);
  if (!norms.length) return null;
  return isLeaf(nodes[measured[0]]) ? Math.hypot(...norms) : Math.max(...norms);
};
const normWord = (ids) => (ids.length < 2 || isLeaf(nodes[measuredIn(ids)[0]]) ? "‖grad‖" : "max ‖grad‖");
const brokenIn = (ids) => ids.filter((id) => isBroken(gradientOf(id)) || brokenOutput(id));
