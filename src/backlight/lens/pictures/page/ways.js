// Ways through the graph: from the root of the backward to a node, how many there are, what is on them, why there is none.

// All nodes that one can go to from some, along edges (down: to inputs) or against them (to users).
const reached = (from, next) => {
  const seen = new Set(from), left = [...from];
  while (left.length) for (const other of next(left.pop())) if (!seen.has(other)) { seen.add(other); left.push(other); }
  return seen;
};
const inputsOf = (id) => nodes[id].edges.filter(Boolean).map((edge) => edge.to);
const usersOf = (id) => users[id].map(([user]) => user);
const rootsShown = () => (run() ? run().roots : nodes.filter((node) => node.root).map((node) => node.id));

// The nodes and edges ("5:0", a node and the number of its edge) on all ways from the roots to a node; how many ways.
const waysTo = (target) => {
  const above = reached([target], usersOf);
  const roots = rootsShown().filter((id) => above.has(id));
  const below = reached(roots, (id) => inputsOf(id).filter((to) => above.has(to)));
  const counts = new Map([[target, 1n]]);
  // users are made after what they use: in the order of the numbers every input is counted before its users
  const ordered = [...below].sort((one, other) => one - other);
  const edges = new Set();
  for (const id of ordered) {
    nodes[id].edges.forEach((edge, number) => edge && below.has(edge.to) && above.has(edge.to) && edges.add(`${id}:${number}`));
    if (id !== target) counts.set(id, inputsOf(id).reduce((sum, to) => sum + (below.has(to) ? counts.get(to) ?? 0n : 0n), 0n));
  }
  return { target, nodes: below, edges, roots, count: roots.reduce((sum, id) => sum + counts.get(id), 0n), counts };
};

// One of the ways, by its number: at each node, edges are taken in their order.
const wayNumbered = (ways, number) => {
  let left = number, id = null;
  for (const root of ways.roots) {
    if (left < ways.counts.get(root)) { id = root; break; }
    left -= ways.counts.get(root);
  }
  const steps = [];
  while (id !== null && id !== ways.target) {
    let next = null;
    for (const [place, edge] of nodes[id].edges.entries()) {
      const through = edge && ways.nodes.has(edge.to) ? ways.counts.get(edge.to) ?? 0n : 0n;
      if (left < through) { next = [place, edge.to]; break; }
      left -= through;
    }
    steps.push({ id, edge: next[0] });
    id = next[1];
  }
  return steps;
};

// Why no gradient came to a node: sentences, each with the nodes that it speaks of.
const whyNone = (id) => {
  const what = `“${nameOf(nodes[id])}”`;
  const ways = waysTo(id);
  if (!rootsShown().length) return [[`No backward ran from this graph, and no root is known, so nothing can have arrived at ${what}.`, []]];
  const roots = rootsShown().map((root) => `“${nameOf(nodes[root])}”`).join(", ");
  if (!ways.roots.length) {
    const ends = [...reached([id], usersOf)].filter((end) => !users[end].length && end !== id);
    return ends.length
      ? [[`No path leads from ${roots} to ${what}. What was computed from it ends here, and ${roots} was not computed from that:`, ends]]
      : [[`No path leads from ${roots} to ${what}: no node of this graph uses it.`, []]];
  }
  if (!run()) return [[`A path leads from ${roots} to ${what}; no backward has run yet.`, []]];
  const stopped = [...ways.edges].map((edge) => edge.split(":").map(Number)).filter(([from, number]) => stepOf(from) && !handed(from, number));
  if (stopped.length) return [[`A path leads from ${roots} to ${what}, but these gave no gradient for the input on it:`, stopped.map(([from]) => from)]];
  return [[`A path leads from ${roots} to ${what}, but this backward did not take it: it was asked for other inputs only, or it ended before.`, []]];
};
