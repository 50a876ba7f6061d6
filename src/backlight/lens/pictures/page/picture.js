// The picture, as the page reads it (see NOTE [A picture] in lens/pictures/boxes.py): items by name, who stands in whom, what is
// open. An item's name is a letter and a number: n7 a node's box, g3 a group, i5 and o6 ports, b8 a bend.

const picture = data.picture;
const groups = picture.groups;
const wires = picture.wires ?? [];
const boxes = new Map((picture.boxes ?? []).map(([id, group, bead, look, mask]) => [id, { id, group, bead, look, mask }]));
for (const group of groups) group.parent ??= null;
const groupOf = (item) => (item[0] === "g" ? groups[Number(item.slice(1))] : null);
const nodeOf = (item) => (item[0] === "n" ? nodes[Number(item.slice(1))] : null);
const isPoint = (item) => "iob".includes(item[0]);

// An output with −inf that a softmax makes 0 of is masked, not broken (lens/pictures/masks.py).
const isMasked = (id) => Boolean(boxes.get(id)?.mask);
const brokenOutput = (id) => !isMasked(id) && nodes[id].outputs.some(isBroken);
const maskedText = (summary) => `${summary.infs.toLocaleString("en")} of ${countOf(summary.shape).toLocaleString("en")} are −∞`;

// Plumbing that lies on no wire stands among the items, as a pill; the rest is beads.
const standing = new Set(groups.flatMap((group) => group.children ?? []));
const isPill = (item) => Boolean(item[0] === "n" && standing.has(item) && boxes.get(Number(item.slice(1)))?.bead);

// The record's edges that a wire runs along, from its user back over beads to what made the tensor: "user>input".
const edgeName = (user, input) => `${user}>${input}`;
for (const wire of wires) {
  const along = [wire.start, ...(wire.beads ?? []), wire.end];
  wire.edges = along.slice(1).map((user, place) => edgeName(user, along[place]));
}

// The groups around a node or a group, innermost first; the whole is not among them.
const around = (item) => {
  const found = [];
  let id = item[0] === "g" ? groupOf(item).parent : boxes.get(Number(item.slice(1)))?.group;
  for (; id; id = groups[id].parent) found.push(id);
  return found;
};

// All nodes in a group, those of its groups too.
const inside = groups.map(() => []);
for (const box of boxes.values()) for (let id = box.group; id !== null && id !== undefined; id = groups[id].parent) inside[id].push(box.id);
const nodesIn = (item) => (item[0] === "g" ? inside[groupOf(item).id] : [Number(item.slice(1))]);

const opened = new Set(groups.filter((group) => group.shown || group.parent === null).map((group) => group.id));
// What stands for an item now: itself, or the outermost closed group around it.
const standIn = (item) => {
  const closed = around(item).findLast((id) => !opened.has(id));
  return closed === undefined ? item : `g${closed}`;
};
const standInOf = (id) => standIn(`n${id}`);
const isOpen = (item) => item[0] === "g" && opened.has(groupOf(item).id);
const isRepeat = (group) => group.times > 1;

// How many items are seen while some groups are open.
const seenWith = (open) => {
  const count = (id) => (groups[id].children ?? []).reduce((sum, item) => sum + 1 + (item[0] === "g" && open.has(Number(item.slice(1))) ? count(Number(item.slice(1))) : 0), 0);
  return count(0);
};
