// The page: put up what the record and the picture say, listen, and begin.

const html = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (html.dataset.theme ? html.dataset.theme === "dark" : system.matches);
const nameTheme = () => {
  at("theme").textContent = isDark() ? "Light" : "Dark";
  at("theme").setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
};
const turnTheme = () => {
  html.dataset.theme = isDark() ? "light" : "dark";
  nameTheme();
};

// The ways to colour of which the record knows something.
const offeredModes = () => Object.keys(SCALES).filter((mode) => !SCALES[mode].of || nodes.some((node) => SCALES[mode].of([node.id])));
const drawModes = () => {
  const buttons = offeredModes().map((mode) => make("button", { type: "button", role: "radio", "data-mode": mode, onclick: () => setMode(mode) }, SCALES[mode].title));
  at("modes").replaceChildren(...buttons);
  at("modes").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = buttons[(buttons.indexOf(event.target) + step + buttons.length) % buttons.length];
    setMode(next.dataset.mode);
    next.focus();
  });
};
const drawRuns = () => {
  at("runs").parentNode.hidden = record.backwards.length < 2;
  at("runs").replaceChildren(...record.backwards.map((backward, number) => make("option", { value: number, selected: number === shownRun.number }, `${number + 1} of ${record.backwards.length}`)));
  at("runs").addEventListener("change", () => showRun(Number(at("runs").value)));
};

// A click opens or closes a group around the pointer, and selects; one on the ground selects nothing.
const clicked = (event) => {
  if (event.target.closest("#zooms")) return;
  const element = event.target.closest(".item");
  if (!element) return event.target.closest(".link") ? clickedLink(event.target.closest(".link")) : select(null);
  const item = element.dataset.item;
  if (item[0] === "g") {
    const box = now.get(item), [x, y] = spot(event);
    if (isOpen(item) && !event.target.closest(".head")) return select(item);
    const share = ((x - camera.x) / camera.scale - box.x) / box.width;
    toggle(item, { x: Math.min(1, Math.max(0, share)), y: Math.min(box.height, Math.max(0, (y - camera.y) / camera.scale - box.y)) });
  }
  select(item);
  elements.get(item)?.focus({ preventScroll: true });
};
// An edge leads to the node whose derivative goes along it.
const clickedLink = (element) => {
  const { link: one } = paths.get(element.dataset.link);
  const wire = wires[(one.wires ?? [])[0]];
  if (wire) select(standInOf(wire.end));
};

// The tip says what one cannot read from far: the whole name, the edge's formula.
const tipOf = (target) => {
  const element = target.closest?.(".item, .link");
  if (!element) return null;
  if (element.dataset.item) {
    const item = element.dataset.item, node = nodeOf(item);
    return node ? [spoken(item), [node.module, placeText(node.place)].filter(Boolean).join(" · ")] : [spoken(item)];
  }
  const { link: one } = paths.get(element.dataset.link), first = wires[(one.wires ?? [])[0]];
  if (!first) return null;
  if (one.wires.length > 1) return [many(one.wires.length, "edge")];
  const made = nodes[first.start].outputs[first.output ?? 0];
  return [`${nameOf(nodes[first.start])} → ${nameOf(nodes[first.end])}${first.name ? `, as ${first.name}` : ""}`, made ? `${shapeText(made.shape)} ${made.dtype ?? ""}` : "", first.formula ? `backward: ${first.formula}` : ""];
};
// It would hide what a click has just opened, and what stands in an open group: it comes back with the next item.
const listenToTips = () => {
  const tip = at("tip");
  let clickedItem = null;
  const itemAt = (target) => target.closest?.(".item, .link")?.dataset.item ?? null;
  frame.addEventListener("click", (event) => { clickedItem = itemAt(event.target); tip.hidden = true; });
  frame.addEventListener("pointerover", (event) => {
    const item = itemAt(event.target);
    if (item !== clickedItem) clickedItem = null;
    const inTheWay = item && (item === clickedItem || (isOpen(item) && !event.target.closest(".head")));
    const lines = event.pointerType === "touch" || inTheWay ? null : tipOf(event.target);
    tip.hidden = !lines;
    if (lines) tip.replaceChildren(...lines.filter(Boolean).map((text) => make("span", {}, text)));
  });
  frame.addEventListener("pointermove", (event) => {
    if (tip.hidden) return;
    const { clientWidth, clientHeight } = html;
    tip.style.left = `${Math.min(event.clientX + 14, clientWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${event.clientY + 18 + tip.offsetHeight > clientHeight ? event.clientY - tip.offsetHeight - 12 : event.clientY + 18}px`;
  });
  for (const kind of ["pointerleave", "pointerdown"]) frame.addEventListener(kind, () => { tip.hidden = true; });
};

const printed = () => {
  const { x, y, scale: size, moved } = camera;
  addEventListener("afterprint", () => { moveCamera(x, y, size); camera.moved = moved; }, { once: true });
  fitAll(0);
};

// NOTE [The first view]
// It is fitted to this screen. Downwards and from left to right are both tried: the smallest groups are closed until all
// can be read, and then groups are opened, those with the most nodes first and repeated ones last, as long as the whole
// still can. The way that shows more at once wins; downwards where both show about the same, and on a narrow
// screen, which is scrolled.
const LEGIBLE = 0.6, COMFORTABLE = 0.75, FEWEST = 5, BARS = 80, MOST_AT_FIRST = 40, NARROW = 720;
const firstScale = () => wholeScale(frame.clientHeight - BUTTONS - BARS);
const innermost = () => [...opened].filter((id) => groups[id].parent !== null && !groups.some((one) => one.parent === id && opened.has(one.id)));
const closeUntilLegible = () => {
  while (firstScale() < LEGIBLE && seenWith(opened) > FEWEST) {
    const [smallest] = innermost().sort((one, other) => inside[one].length - inside[other].length);
    if (smallest === undefined) break;
    opened.delete(smallest);
    scene = place(LOOK);
  }
};
const openWhileComfortable = () => {
  const refused = new Set();
  const closed = () => groups.filter((one) => one.parent !== null && !opened.has(one.id) && opened.has(one.parent) && !refused.has(one.id));
  for (let next = closed(); next.length && seenWith(opened) < MOST_AT_FIRST; next = closed()) {
    const [largest] = next.sort((one, other) => isRepeat(one) - isRepeat(other) || inside[other.id].length - inside[one.id].length);
    opened.add(largest.id);
    scene = place(LOOK);
    if (firstScale() >= COMFORTABLE && seenWith(opened) <= MOST_AT_FIRST) continue;
    opened.delete(largest.id);
    refused.add(largest.id);
  }
  scene = place(LOOK);
};
const fitFirstView = () => {
  const planned = [...opened], tried = [];
  for (const sideways of [false, true]) {
    LOOK.sideways = sideways;
    opened.clear();
    planned.forEach((id) => opened.add(id));
    scene = place(LOOK);
    closeUntilLegible();
    openWhileComfortable();
    tried.push({ sideways, open: [...opened], worth: seenWith(opened) * Math.min(1, firstScale()) ** 2 });
  }
  const [down, right] = tried, best = frame.clientWidth >= NARROW && right.worth > 1.2 * down.worth ? right : down;
  LOOK.sideways = best.sideways;
  opened.clear();
  best.open.forEach((id) => opened.add(id));
};

const begin = () => {
  const requested = location.hash.slice(1);
  if (requested === "dark" || requested === "light") html.dataset.theme = requested;
  at("theme").addEventListener("click", turnTheme);
  system.addEventListener("change", nameTheme);
  nameTheme();
  drawModes();
  drawRuns();
  drawDepths();
  for (const [id, call] of [["in", () => zoomAt(1.25, undefined, undefined, 120)], ["out", () => zoomAt(0.8, undefined, undefined, 120)], ["zoom", fullSize], ["fit", () => fitAll()], ["open-all", openAll], ["close-all", closeAll], ["flow", () => setFlow(!state.flow)], ["layout", turnLayout], ["help", () => at("keys").showModal()]]) at(id).addEventListener("click", call);
  at("open-all").hidden = at("close-all").hidden = groups.length < 2;
  frame.addEventListener("click", clicked);
  frame.addEventListener("focusin", (event) => {
    const item = event.target.dataset?.item;
    if (item && item !== selection.item && event.target.matches(":focus-visible")) select(item);
  });
  addEventListener("beforeprint", printed);
  listenToCamera();
  listenToSearch();
  listenToKeys();
  listenToTips();
  fitFirstView();
  nameLayout();
  scene = { items: new Map(), links: [], width: 0, height: 0 };
  setMode("kind");
  fitToRead(0);
  describe(null);
  html.dataset.ready = "yes";
  tell("ready");
};
begin();
