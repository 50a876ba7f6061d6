// The keyboard: arrows walk along edges, and a key for everything that a button does.

// The items that edges lead to from an item, upwards (to inputs) or downwards (to what reads it), nearest first; through
// ports and open groups one walks to the item that is seen behind them.
const neighbours = (item, up) => {
  const met = new Set();
  for (const id of nodesIn(item)) {
    const next = up ? inputsOf(id) : usersOf(id);
    for (const other of next) {
      let seen = standInOf(other);
      // a bead on a link is passed where it is not shown
      if (!now.has(seen)) seen = (up ? inputsOf(other) : usersOf(other)).map(standInOf).find((one) => now.has(one));
      if (seen && seen !== item && !nodesIn(seen).includes(id)) met.add(seen);
    }
  }
  const middle = (one) => (LOOK.sideways ? now.get(one).y + now.get(one).height / 2 : now.get(one).x + now.get(one).width / 2), here = now.get(item) ? middle(item) : 0;
  return [...met].filter((one) => now.has(one)).sort((one, other) => Math.abs(middle(one) - here) - Math.abs(middle(other) - here));
};

// What stands beside an item, in about the same row, inside the same group or else anywhere.
const beside = (item, step) => {
  const here = now.get(item), home = around(item)[0];
  const middle = (box) => { const [across, along] = [box.x + box.width / 2, box.y + box.height / 2]; return LOOK.sideways ? [along, across] : [across, along]; };
  const [x, y] = middle(here);
  const far = (one) => { const [x1, y1] = middle(now.get(one)); return Math.abs(x1 - x) + 4 * Math.abs(y1 - y) + (around(one)[0] === home ? 0 : 400); };
  return [...now.keys()].filter((one) => one !== item && !isOpen(one) && (middle(now.get(one))[0] - x) * step > 1).sort((one, other) => far(one) - far(other))[0];
};

const current = () => (selection.item && now.has(selection.item) ? selection.item : null);
const firstItem = () => {
  const root = rootsShown().map(standInOf).find((item) => now.has(item));
  return root ?? [...now.keys()].find((item) => !isOpen(item));
};
const walkTo = (item) => item && select(item, { focus: true });
// Left is towards the inputs where ranks run from left to right: then the keys are those of the ranks downwards, turned.
const TURNED = { up: "left", left: "up", down: "right", right: "down" };
const walk = (pressed) => {
  const direction = LOOK.sideways ? TURNED[pressed] : pressed;
  const here = current();
  if (!here) return walkTo(firstItem());
  if (direction === "up" || direction === "down") {
    const [next] = neighbours(here, direction === "up");
    return next ? walkTo(next) : announce(direction === "up" ? "No input is seen." : "Nothing that reads it is seen.");
  }
  return walkTo(beside(here, direction === "left" ? -1 : 1));
};
const pan = (dx, dy) => { camera.moved = true; fly(camera.x + dx, camera.y + dy, camera.scale, 120); };

const enter = () => {
  const here = current();
  if (!here) return walkTo(firstItem());
  if (here[0] === "g") toggle(here);
  else select(here, { ways: !lighting.ways });
  elements.get(here)?.focus({ preventScroll: true });
};
const clear = () => {
  if (found.nodes) { at("search").value = ""; return search(""); }
  select(null);
};
const togglePath = () => { const here = current(); if (here?.[0] === "n") select(here, { ways: !lighting.ways }); };
const nextMode = () => { const modes = offeredModes(); setMode(modes[(modes.indexOf(scale.mode) + 1) % modes.length]); };

const KEYS = {
  ArrowUp: () => walk("up"), ArrowDown: () => walk("down"), ArrowLeft: () => walk("left"), ArrowRight: () => walk("right"),
  Enter: enter, " ": enter, Escape: clear, Backspace: () => current() && closeAround(current()),
  "+": () => zoomAt(1.25, undefined, undefined, 120), "=": () => zoomAt(1.25, undefined, undefined, 120), "-": () => zoomAt(0.8, undefined, undefined, 120), 0: fullSize, f: () => fitAll(),
  "/": () => { at("search").focus(); at("search").select(); }, n: () => goToHit(1), N: () => goToHit(-1),
  e: openAll, c: closeAll, p: togglePath, g: () => setFlow(!state.flow), m: nextMode, d: () => turnLayout(), t: () => turnTheme(), "?": () => at("keys").showModal(),
  r: () => walkTo(firstItem()),
};
const PANS = { ArrowUp: [0, 80], ArrowDown: [0, -80], ArrowLeft: [80, 0], ArrowRight: [-80, 0] };

const listenToKeys = () => addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || at("keys").open || event.target.matches?.("input, select, textarea, summary")) return;
  const pressed = event.target.closest?.("button, [role=radio], #panel, #replay");
  if (pressed && (["Enter", " "].includes(event.key) || event.key.startsWith("Arrow"))) return;
  const call = event.shiftKey && PANS[event.key] ? () => pan(...PANS[event.key]) : view.keys.get(event.key) ?? KEYS[event.key];
  if (!call) return;
  event.preventDefault();
  call(event);
});
