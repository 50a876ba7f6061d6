// The stage: elements for what is seen and for nothing else. They are kept by name, so that what stays can glide.

const layers = { frames: at("frames"), links: at("links"), boxes: at("boxes") };
let scene = { items: new Map(), links: [], width: 0, height: 0 };
const elements = new Map(); // item → its element
const paths = new Map(); // key of a link → its elements
let now = new Map(); // item → the rectangle at which it is painted
let glide = 0;

// A point of a link, which is [y, x] where ranks run from left to right, as it is drawn.
const turned = ([x, y]) => (LOOK.sideways ? [y, x] : [x, y]);
const written = (point) => turned(point).join(" ");
const curveOf = (points) => points.slice(1).reduce((text, [x, y], place) => {
  const [x0, y0] = points[place];
  if (Math.abs(x - x0) < 0.01 && Math.abs(y - y0) < 0.01) return text;
  if (Math.abs(x - x0) < 0.5) return `${text}L${written([x, y])}`;
  const middle = (y0 + y) / 2;
  return `${text}C${written([x0, middle])} ${written([x, middle])} ${written([x, y])}`;
}, `M${written(points[0])}`);

// The point at a share t of the curve between two points of a link, as it is drawn.
const onCurve = ([x0, y0], [x1, y1], t) => {
  const s = 1 - t;
  return turned([x0 * (s ** 3 + 3 * s * s * t) + x1 * (t ** 3 + 3 * t * t * s), y0 * s ** 3 + 1.5 * (y0 + y1) * s * s * t + 1.5 * (y0 + y1) * t * t * s + y1 * t ** 3]);
};
// Where a bead lies on the last curve of a link.
const beadSpot = (points, place, count) => onCurve(...points.slice(-3, -1), (place + 1) / (count + 1));

// The beads that are seen, with their rectangles; of many on one link some stand for the rest.
const beadsOf = (links) => {
  const found = new Map();
  for (const { link, points } of links) {
    const shown = (link.beads ?? []).slice(0, MOST_BEADS);
    shown.forEach((id, place) => {
      const [x, y] = beadSpot(points, place, shown.length);
      found.set(`n${id}`, { x: x - 6, y: y - 6, width: 12, height: 12, depth: 9 });
    });
  }
  return found;
};

// In a comparison an item is added, gone, changed or the same; a group is what all in it are, or changed.
const lookOf = (item) => (item[0] === "g" ? groupOf(item) : boxes.get(Number(item.slice(1))))?.look;

const itemElement = (item) => {
  const look = lookOf(item);
  const element = make("div", {
    class: `item ${kindOf(item)}${look ? ` look-${look}` : ""}`, role: "treeitem", tabindex: -1, "data-item": item, "aria-level": around(item).length + 1,
  });
  element.dataset.name = item[0] === "g" ? titleOf(groupOf(item)) : nameOf(nodeOf(item));
  return element;
};

// Write on an element what the item is now.
const dress = (item) => {
  const element = elements.get(item), ids = nodesIn(item), node = nodeOf(item), open = isOpen(item);
  element.replaceChildren(...faceOf(item).filter(Boolean));
  element.classList.toggle("open", open);
  element.classList.toggle("repeated", item[0] === "g" && isRepeat(groupOf(item)) && !open);
  element.classList.toggle("rooted", Boolean(node?.root));
  element.classList.toggle("parameter", Boolean(node?.parameter));
  element.classList.toggle("broken", !open && brokenNow(ids).length > 0);
  element.setAttribute("aria-label", spoken(item));
  if (item[0] === "g") element.setAttribute("aria-expanded", String(open));
  const share = open ? null : scale.share(ids), hue = scale.chosen.hue;
  element.dataset.hue = hue && !open ? (share === null ? "none" : hue) : "";
  element.style.setProperty("--share", share ?? 0);
  element.classList.toggle("bright", share !== null && share > 0.5);
  const state = stateOfItem(item);
  if (state) element.dataset.state = state;
  else delete element.dataset.state;
};

// Mark what is selected, on the lit ways, found by the search; the rest is dimmed.
const mark = () => {
  const lit = lighting.nodes, current = stateEdges();
  for (const [item, element] of elements) {
    const ids = nodesIn(item);
    element.classList.toggle("selected", item === selection.item);
    element.setAttribute("aria-selected", String(item === selection.item));
    element.tabIndex = item === (selection.item && elements.has(selection.item) ? selection.item : elements.keys().next().value) ? 0 : -1;
    element.classList.toggle("lit", Boolean(lit) && ids.some((id) => lit.has(id)));
    element.classList.toggle("dimmed", Boolean(lit) && !ids.some((id) => lit.has(id)));
    const hits = found.nodes ? ids.filter((id) => found.nodes.has(id)).length : 0;
    element.classList.toggle("found", hits > 0 && !isOpen(item));
    element.classList.toggle("current", found.current !== null && ids.includes(found.current) && !isOpen(item));
    if (hits > 1 && item[0] === "g") element.dataset.hits = String(hits);
    else delete element.dataset.hits;
  }
  for (const [, { group, link }] of paths) {
    const edges = (link.wires ?? []).flatMap((number) => wires[number].edges);
    const on = lighting.edges && edges.some((edge) => lighting.edges.has(edge));
    group.classList.toggle("lit", Boolean(on));
    group.classList.toggle("dimmed", Boolean(lit) && !on);
    group.classList.toggle("near", !lit && touches(link));
    group.classList.toggle("current", edges.some((edge) => current.has(edge)));
  }
  layers.links.append(...[...paths.values()].filter(({ group }) => group.matches(".lit, .near, .current")).map(({ group }) => group));
  drawEdgeNotes();
  markDepths();
};
const touches = (link) => selection.item && [link.start, link.end].includes(selection.item);
const stateEdges = () => new Set(shownStates.edges.map((edge) => edgeName(edge.from, edge.to)));

// Whether a gradient went along a link in the backward that is shown, and whether it ends at something closed.
const gradientWent = (link) => (link.wires ?? []).some((number) => {
  const user = wires[number].end;
  return nodes[user].edges.some((edge, place) => edge && wires[number].edges.includes(edgeName(user, edge.to)) && handed(user, place));
});
const linkElement = ({ key, link }) => {
  const line = draw("path", { class: "line" }), touch = draw("path", { class: "touch" });
  const group = draw("g", { class: "link", "data-link": key }, touch, line);
  group.classList.toggle("went", gradientWent(link));
  group.style.setProperty("--wide", Math.min(5, 1.4 + Math.log2((link.wires ?? []).length || 1) * 0.6));
  return { group, line, touch, link };
};
const ended = (item, port) => !isPoint(item) && !(port && isOpen(item));

const paintLink = (key, points) => {
  const { line, touch, link } = paths.get(key);
  const last = points.at(-1), tip = ended(link.end, link.inside_end) && !state.flow, tail = ended(link.start, link.inside_start) && state.flow;
  const stops = [...points.slice(0, -1), [last[0], last[1] - (tip ? 6 : 0)]];
  if (tail) for (const place of [0, 1]) stops[place] = [stops[place][0], Math.max(stops[place][1], points[0][1] + 6)];
  const text = curveOf(stops);
  line.setAttribute("d", text);
  touch.setAttribute("d", text);
  line.setAttribute("marker-end", tip ? "url(#forward)" : "");
  line.setAttribute("marker-start", tail ? "url(#backward)" : "");
};

const paintItem = (item, { x, y, width, height }, opacity) => {
  const { style } = elements.get(item);
  style.transform = `translate(${x}px, ${y}px)`;
  style.width = `${width}px`;
  style.height = `${height}px`;
  style.opacity = opacity === 1 ? "" : opacity;
};

// Make and drop elements so that they are those of a scene, and begin to glide to it.
const paint = (next, lasts) => {
  const shown = new Map([...next.items].filter(([item]) => !isPoint(item)));
  for (const [item, box] of beadsOf(next.links)) shown.set(item, box);
  for (const [item, element] of elements) if (!shown.has(item)) { element.remove(); elements.delete(item); }
  for (const [item, { depth }] of shown) {
    const layer = isOpen(item) ? layers.frames : layers.boxes;
    if (!elements.has(item)) elements.set(item, itemElement(item));
    if (elements.get(item).parentNode !== layer) layer.append(elements.get(item));
    elements.get(item).style.zIndex = depth;
    dress(item);
  }
  const keys = new Set(next.links.map(({ key }) => key));
  for (const [key, { group }] of paths) if (!keys.has(key)) { group.remove(); paths.delete(key); }
  const old = new Map(scene.links.map(({ key, points }) => [key, points]));
  for (const one of next.links) {
    if (!paths.has(one.key)) paths.set(one.key, linkElement(one));
    layers.links.append(paths.get(one.key).group);
  }
  const from = new Map([...shown].map(([item, box]) => [item, now.get(item) ?? bornAt(item, box)]));
  scene = next;
  glideTo(shown, from, old, lasts);
};

// New items grow out of the group that opened; what had been there before comes from where it stood in.
const bornAt = (item, box) => {
  const home = around(item).map((id) => now.get(`g${id}`)).find(Boolean);
  return home ? { x: home.x + home.width / 2 - box.width / 2, y: home.y + 8, width: box.width, height: box.height, fresh: true } : { ...box, fresh: true };
};

const mix = (one, other, t) => one + (other - one) * t;
const glideTo = (shown, from, old, lasts) => {
  cancelAnimationFrame(glide);
  const begin = performance.now(), length = still.matches ? 0 : lasts;
  const step = (time) => {
    const t = length ? eased(Math.min(1, Math.max(0, time - begin) / length)) : 1;
    now = new Map();
    for (const [item, to] of shown) {
      const start = from.get(item);
      const box = { x: mix(start.x, to.x, t), y: mix(start.y, to.y, t), width: mix(start.width, to.width, t), height: mix(start.height, to.height, t) };
      now.set(item, box);
      paintItem(item, box, start.fresh ? t : 1);
    }
    for (const { key, points } of scene.links) {
      const before = old.get(key), same = before?.length === points.length;
      paintLink(key, same ? points.map(([x, y], place) => [mix(before[place][0], x, t), mix(before[place][1], y, t)]) : points);
      paths.get(key).group.style.opacity = same || t === 1 ? "" : t;
    }
    if (t < 1) glide = requestAnimationFrame(step);
  };
  step(length ? begin : Infinity);
};
