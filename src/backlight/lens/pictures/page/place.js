// Coordinates: each group's inside is placed by itself, row under row, then all are put together. Ranks and orders come
// from Python; where an item stands within its row is found here, since boxes that open change their size.

const ROW_GAP = 32, BEAD_GAP = 15, ITEM_GAP = 22, POINT = 7, FRAME = 16, HEADER = 30, SWEEPS = 10;

// The best positions of a row: as near as can be to where each item wants to be, in order and without overlap (pooling of
// adjacent violators). `wanted` are middles, `weights` how much each insists; returns middles.
const apart = (wanted, weights, sizes) => {
  const offsets = [0];
  for (let place = 1; place < sizes.length; place += 1) offsets.push(offsets[place - 1] + (sizes[place - 1] + sizes[place]) / 2 + gapBetween(sizes[place - 1], sizes[place]));
  const pools = [];
  wanted.forEach((middle, place) => {
    pools.push({ sum: (middle - offsets[place]) * weights[place], weight: weights[place], count: 1 });
    while (pools.length > 1 && pools.at(-2).sum / pools.at(-2).weight >= pools.at(-1).sum / pools.at(-1).weight) {
      const last = pools.pop(), first = pools.at(-1);
      first.sum += last.sum; first.weight += last.weight; first.count += last.count;
    }
  });
  const starts = pools.flatMap((pool) => Array(pool.count).fill(pool.sum / pool.weight));
  return starts.map((start, place) => start + offsets[place]);
};
const gapBetween = (one, other) => (one <= POINT || other <= POINT ? ITEM_GAP * 0.6 : ITEM_GAP);

// How far from its middle a link begins or ends at an item: at its port where it is open, else at a share of its width.
const offsetAt = (item, share, port, size) => {
  if (port && isOpen(item)) return size.inside.middles.get(port) - size.width / 2;
  return isPoint(item) ? 0 : ((share ?? 0.5) - 0.5) * size.width * 0.8;
};

// A long link is straight; a leaf stands beside the flow and does not bend it.
// Pairs of items in neighbouring ranks, with where on each the line between them ends.
const pullOf = (upper, lower) => {
  if (isPoint(upper) && isPoint(lower)) return 8;
  if (isPoint(upper) || isPoint(lower)) return 2;
  return upper[0] === "n" && isLeaf(nodeOf(upper)) ? 0.2 : 1;
};
const segmentsOf = (group, sizes) => (group.links ?? []).flatMap((link) => {
  const stops = [link.start, ...(link.bends ?? []), link.end];
  return stops.slice(1).map((lower, place) => {
    const upper = stops[place];
    return {
      upper, lower, heavy: pullOf(upper, lower),
      from: offsetAt(upper, place === 0 ? link.leaves_at : 0.5, place === 0 ? link.inside_start : null, sizes.get(upper)),
      to: offsetAt(lower, lower === link.end ? link.enters_at : 0.5, lower === link.end ? link.inside_end : null, sizes.get(lower)),
    };
  });
});

// The middles of all items of a group: rows are pulled towards their neighbours, downwards and upwards by turns.
const middlesOf = (group, sizes) => {
  const rows = group.ranks ?? [], middles = new Map(), above = new Map(), below = new Map();
  for (const row of rows) {
    const places = apart(row.map(() => 0), row.map(() => 1), row.map((item) => sizes.get(item).width));
    row.forEach((item, place) => { middles.set(item, places[place]); above.set(item, []); below.set(item, []); });
  }
  for (const { upper, lower, heavy, from, to } of segmentsOf(group, sizes)) {
    above.get(lower)?.push([upper, from - to, heavy]);
    below.get(upper)?.push([lower, to - from, heavy]);
  }
  const pull = (row, sides) => {
    const wanted = [], weights = [];
    for (const item of row) {
      const pulls = sides.flatMap((side) => side.get(item));
      const weight = pulls.reduce((sum, [, , heavy]) => sum + heavy, 0);
      wanted.push(weight ? pulls.reduce((sum, [other, shift, heavy]) => sum + (middles.get(other) + shift) * heavy, 0) / weight : middles.get(item));
      weights.push(Math.max(weight, 0.05));
    }
    apart(wanted, weights, row.map((item) => sizes.get(item).width)).forEach((middle, place) => middles.set(row[place], middle));
  };
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    if (sweep % 2) rows.toReversed().forEach((row) => pull(row, [below]));
    else rows.forEach((row) => pull(row, [above]));
  }
  for (const row of rows) pull(row, [above, below]);
  return middles;
};

// The room above each row: more where beads lie on the links into it.
const gapsOf = (group, rankOf) => {
  const gaps = (group.ranks ?? []).map(() => ROW_GAP);
  for (const link of group.links ?? []) {
    const beads = Math.min(link.beads?.length ?? 0, MOST_BEADS), rank = rankOf.get(link.end);
    if (beads && rank !== undefined) gaps[rank] = Math.max(gaps[rank], 26 + beads * BEAD_GAP);
  }
  return gaps;
};

// A group's inside: middles and tops of its items, relative to its left upper corner, and its size.
const insideOf = (group, sizeOf) => {
  const sizes = new Map((group.ranks ?? []).flat().map((item) => [item, isPoint(item) ? { width: POINT, height: 0 } : sizeOf(item)]));
  const middles = middlesOf(group, sizes), tops = new Map(), rankOf = new Map();
  const left = Math.min(...[...middles].map(([item, middle]) => middle - sizes.get(item).width / 2), 0);
  const right = Math.max(...[...middles].map(([item, middle]) => middle + sizes.get(item).width / 2), 0);
  const edge = group.parent === null ? 0 : FRAME;
  for (const [item, middle] of middles) middles.set(item, middle - left + edge);
  (group.ranks ?? []).forEach((row, rank) => row.forEach((item) => rankOf.set(item, rank)));
  const gaps = gapsOf(group, rankOf);
  const firstIsPorts = group.ranks?.length && group.ranks[0].every((item) => item[0] === "i");
  let y = group.parent === null ? 0 : HEADER + (firstIsPorts ? 0 : 10);
  (group.ranks ?? []).forEach((row, rank) => {
    const height = Math.max(...row.map((item) => sizes.get(item).height), 0);
    const ports = row.every((item) => "io".includes(item[0]));
    if (rank && !ports) y += gaps[rank];
    if (ports && rank) y += ROW_GAP / 2;
    row.forEach((item) => tops.set(item, { top: y, row: height, own: sizes.get(item).height }));
    y += height;
  });
  const height = y + (group.parent === null || lastIsPorts(group) ? 0 : FRAME);
  return { middles, tops, sizes, width: right - left + 2 * edge, height };
};
const lastIsPorts = (group) => group.ranks?.length && group.ranks.at(-1).every((item) => item[0] === "o");

// Everything that is seen, in the coordinates of the whole: `items` with their rectangles, `links` with the points that
// they pass. `closedSize(item)` is the size of a box or of a closed group.
const placeAll = (closedSize) => {
  const sizeOf = (item) => {
    if (!isOpen(item)) return closedSize(item);
    const within = insideOf(groupOf(item), sizeOf);
    const width = Math.max(within.width, headerWidth(groupOf(item)));
    const shift = (width - within.width) / 2;
    if (shift) for (const [one, middle] of within.middles) within.middles.set(one, middle + shift);
    return { width, height: within.height, inside: within };
  };
  const whole = insideOf(groups[0], sizeOf);
  const items = new Map(), links = [];
  const spread = (group, within, x0, y0, depth) => {
    for (const [item, middle] of within.middles) {
      const { width, height, inside: deeper } = within.sizes.get(item);
      const { top, row } = within.tops.get(item);
      const rectangle = { x: x0 + middle - width / 2, y: y0 + top + (row - height) / 2, width, height, depth, row: top + y0, below: top + row + y0 };
      items.set(item, rectangle);
      if (deeper) spread(groupOf(item), deeper, rectangle.x, rectangle.y, depth + 1);
    }
    (group.links ?? []).forEach((link, place) => links.push({ key: `${group.id}:${place}`, link, points: pointsOf(link, items, within) }));
  };
  spread(groups[0], whole, 0, 0, 0);
  return { items, links, width: whole.width, height: whole.height };
};

// The points that a link passes: out at the lower edge, straight through the rows of its bends, in at the upper edge.
const pointsOf = (link, items, within) => {
  const end = (item, share, port, low) => {
    const box = items.get(item), size = within.sizes.get(item);
    const x = box.x + box.width / 2 + offsetAt(item, share, port, size);
    return [x, low ? box.y + box.height : box.y];
  };
  const points = [end(link.start, link.leaves_at, link.inside_start, true)];
  for (const bend of link.bends ?? []) {
    const { x, width, row, below } = items.get(bend);
    points.push([x + width / 2, row], [x + width / 2, below]);
  }
  points.push(end(link.end, link.enters_at, link.inside_end, false));
  return points;
};
