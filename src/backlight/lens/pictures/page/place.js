// Coordinates: ranks and orders, which come from Python, become places and routes.

// NOTE [Two passes that are one]
// This is the pass of lens/pictures/place.py, name by name, and its NOTE [Placing] says what is done: who changes one
// changes the other (tests/lens/test_lens_place_page.py compares what both find). What depends on how the page draws comes
// from the `look` that `place` is given:
//   size(item)    { width, height } of a box, a closed group or a port; a port is as high as what covers it.
//   least(group)  the least width of an open group: that of its header.
//   rooms(group)  for each row, the least that is free above it.
//   sideways      whether ranks run from left to right; the points of links are then [y, x].

const GAP = 22, BEND_GAP = 12, ROW_GAP = 32, MOST_ROW_GAP = 84, PAD = 16, HEADER = 30, LEAD = 7, SLOPE = 0.08;
const SWEEPS = ["down", "up", "down", "up", "both", "up", "down"];
const LEAF_PULL = 0.2, PULLS = [1, 2, 8]; // a link's pull, by how many of its ends are bends

// A group's inside: sizes first, then x, row by row, then y.
class Inside {
  constructor(group, insides, look) {
    this.group = group;
    this.insides = insides;
    this.sideways = Boolean(look.sideways);
    const size = (item) => { const { width, height } = look.size(item); return this.sideways ? { width: height, height: width } : { width, height }; };
    this.rows = group.ranks ?? [];
    this.links = group.links ?? [];
    this.rowOf = new Map(this.rows.flatMap((items, row) => items.map((item) => [item, row])));
    this.size = new Map([...this.rowOf.keys()].map((item) => [item, insides.get(item) ?? (item[0] === "b" ? { width: 0, height: 0 } : size(item))]));
    this.x = new Map();
    this.pulls();
    for (const row of this.rows) this.pack(row);
    for (const way of SWEEPS) this.sweep(way);
    this.frame(look.least);
    this.stack(look.rooms(group), look.least);
  }

  // Who pulls at whom: for each item [neighbour, place on the neighbour − place on the item, weight].
  pulls() {
    this.above = new Map([...this.rowOf.keys()].map((item) => [item, []]));
    this.below = new Map([...this.rowOf.keys()].map((item) => [item, []]));
    const seen = new Set();
    for (const link of this.links) {
      const chain = chainOf(link);
      chain.slice(1).forEach((lower, place) => {
        const upper = chain[place], pair = `${upper} ${lower}`;
        if (this.rowOf.get(lower) - this.rowOf.get(upper) !== 1 || seen.has(pair)) return;
        seen.add(pair);
        const bends = (upper[0] === "b") + (lower[0] === "b");
        const weight = upper[0] === "n" && isLeaf(nodeOf(upper)) ? LEAF_PULL : PULLS[bends];
        const shift = this.leaving(link, upper) - this.entering(link, lower);
        this.above.get(lower).push([upper, shift, weight]);
        this.below.get(upper).push([lower, -shift, weight]);
      });
    }
  }

  // Where a link leaves and enters an item, from its left.
  leaving(link, item) {
    if (item !== link.start) return 0;
    const inside = this.insides.get(item);
    return inside ? inside.x.get(link.inside_start) : this.size.get(item).width * link.leaves_at;
  }
  entering(link, item) {
    if (item !== link.end) return 0;
    const inside = this.insides.get(item);
    return inside ? inside.x.get(link.inside_end) : this.size.get(item).width * link.enters_at;
  }

  // How far each item of a row is at least from the first.
  steps(row) {
    const steps = [0];
    for (let place = 1; place < row.length; place += 1) steps.push(steps[place - 1] + (this.size.get(row[place - 1]).width + gapBetween(row[place - 1], row[place])));
    return steps;
  }

  // Put a row's items side by side, its middle at 0.
  pack(row) {
    const steps = this.steps(row), end = row.length ? steps.at(-1) + this.size.get(row.at(-1)).width : 0;
    row.forEach((item, place) => this.x.set(item, steps[place] - end / 2));
  }

  sweep(way) {
    for (const row of way === "up" ? this.rows.toReversed() : this.rows) {
      const asked = row.map((item) => {
        const pulls = [...(way === "up" ? [] : this.above.get(item)), ...(way === "down" ? [] : this.below.get(item))];
        return medianOf(pulls.map(([other, shift, weight]) => [this.x.get(other) + shift, weight]).sort(inOrder));
      });
      this.settle(row, asked);
    }
  }

  // Move a row's items as near to what they ask for as their order and gaps allow.
  settle(row, asked) {
    const steps = this.steps(row), blocks = []; // of [place, what its items ask for, how many]
    row.forEach((item, number) => {
      const [wanted, weight] = asked[number] ?? [this.x.get(item), 0.01];
      let place = wanted - steps[number], members = [[place, weight]], count = 1;
      while (blocks.length && blocks.at(-1)[0] > place) {
        const [, others, more] = blocks.pop();
        members = merged(others, members);
        count += more;
        [place] = medianOf(members);
      }
      blocks.push([place, members, count]);
    });
    const places = blocks.flatMap(([place, , count]) => Array(count).fill(place));
    row.forEach((item, number) => this.x.set(item, places[number] + steps[number]));
  }

  // Move everything so that the group's left border is 0, and find its width.
  frame(least) {
    let left = Infinity, right = -Infinity;
    for (const [item, x] of this.x) [left, right] = [Math.min(left, x), Math.max(right, x + this.size.get(item).width)];
    if (!this.x.size) left = right = 0;
    const inner = this.group.parent !== null;
    const [before, after] = inner ? [this.sideways ? HEADER + BEND_GAP : PAD, PAD] : [0, 0];
    this.width = Math.max(right - left + before + after, inner && !this.sideways ? least(this.group) : 0);
    const move = before + (this.width - (right - left) - before - after) / 2 - left;
    for (const [item, x] of this.x) this.x.set(item, x + move);
  }

  // Find each row's top and height; rows stand further apart where links run far across.
  stack(rooms, least) {
    const across = Array(this.rows.length + 1).fill(0), last = this.rows.length - 1;
    for (const [upper, pulls] of this.below) {
      const row = this.rowOf.get(upper);
      for (const [lower, shift] of pulls) across[row] = Math.max(across[row], Math.abs(this.x.get(upper) - this.x.get(lower) - shift));
    }
    const inner = this.group.parent !== null;
    this.heights = this.rows.map((row) => Math.max(0, ...row.map((item) => this.size.get(item).height)));
    this.top = [];
    let y = inner ? (this.sideways ? PAD : HEADER) : 0;
    this.heights.forEach((height, number) => {
      let gap = 0;
      if (number > 1 && number < last) gap = Math.min(ROW_GAP + SLOPE * across[number - 1], MOST_ROW_GAP);
      else if (inner && number) gap = Math.min(SLOPE * across[number - 1], MOST_ROW_GAP - ROW_GAP);
      y += Math.max(gap, rooms[number] ?? 0);
      this.top.push(number ? y : 0);
      if (number && number !== last) y += height;
    });
    this.height = Math.max(y + (inner ? PAD : 0), inner && this.sideways ? least(this.group) : 0);
    if (this.top.length) this.top[last] = this.height;
  }

  // Where each item is in the group; in the middle of its row's height.
  spots() {
    return new Map([...this.rowOf].map(([item, row]) => {
      const { width, height: own } = this.size.get(item), height = item[0] === "b" ? this.heights[row] : own;
      return [item, { x: this.x.get(item), y: this.top[row] + (this.heights[row] - height) / 2, width, height }];
    }));
  }

  // A link's points: straight down to the end of a row, a curve across the gap, straight down again.
  route(link) {
    const points = [], chain = chainOf(link);
    chain.slice(1).forEach((lower, place) => {
      const upper = chain[place], x = this.x.get(upper) + this.leaving(link, upper), row = this.rowOf.get(upper);
      if (!points.length) points.push([x, this.edges(upper)[1]]);
      points.push([x, this.top[row] + this.heights[row]]);
      points.push([this.x.get(lower) + this.entering(link, lower), this.top[this.rowOf.get(lower)] - ("ng".includes(lower[0]) ? LEAD : 0)]);
    });
    return [...points, [points.at(-1)[0], this.edges(link.end)[0]]];
  }

  // An item's upper and lower edge.
  edges(item) {
    const row = this.rowOf.get(item), { height } = this.size.get(item);
    const top = this.top[row] + (this.heights[row] - height) / 2;
    return [top, top + height];
  }
}

const chainOf = (link) => [link.start, ...(link.bends ?? []), link.end];
const gapBetween = (item, after) => ("ng".includes(item[0]) && "ng".includes(after[0]) ? GAP : BEND_GAP);
const inOrder = ([one, light], [other, heavy]) => one - other || light - heavy;

// Of pairs of a place and its weight, in order: the weighted median and the sum of weights; between two that weigh the
// same, the middle.
const medianOf = (pulls) => {
  if (!pulls.length) return null;
  const total = pulls.reduce((sum, [, weight]) => sum + weight, 0);
  let passed = 0;
  for (const [number, [place, weight]] of pulls.entries()) {
    passed += weight;
    if (passed > total / 2 + 1e-9) return [place, total];
    if (passed >= total / 2 - 1e-9) return [(place + pulls[number + 1][0]) / 2, total];
  }
  return [pulls.at(-1)[0], total];
};

// Two lists that are in order as one that is.
const merged = (some, others) => {
  const both = [];
  let place = 0;
  for (const one of some) {
    while (place < others.length && inOrder(others[place], one) < 0) both.push(others[place++]);
    both.push(one);
  }
  return [...both, ...others.slice(place)];
};

// Everything that is seen, in the coordinates of the whole: `items` with their rectangles, `links` with the points that
// they pass, outer groups first.
const place = (look) => {
  const insides = new Map(), items = new Map(), links = [];
  const seen = (group) => [group, ...(group.children ?? []).filter(isOpen).flatMap((item) => seen(groupOf(item)))];
  for (const group of seen(groups[0]).reverse()) insides.set(`g${group.id}`, new Inside(group, insides, look));
  const spread = (item, left, top, depth) => {
    const inside = insides.get(item);
    for (const [one, spot] of inside.spots()) {
      items.set(one, { ...spot, x: left + spot.x, y: top + spot.y, depth });
      if (insides.has(one)) spread(one, left + spot.x, top + spot.y, depth + 1);
    }
    inside.links.forEach((link, number) => links.push({ key: `${inside.group.id}:${number}`, link, points: inside.route(link).map(([x, y]) => [left + x, top + y]) }));
  };
  const whole = insides.get("g0");
  spread("g0", 0, 0, 0);
  if (!look.sideways) return { items, links, width: whole.width, height: whole.height };
  for (const [item, { x, y, width, height, depth }] of items) items.set(item, { x: y, y: x, width: height, height: width, depth });
  return { items, links, width: whole.height, height: whole.width };
};
