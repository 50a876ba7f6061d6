// Zoom and pan: wheel, pinch, drag, buttons and keys move one camera over the stage.

const frame = at("frame"), stage = at("stage");
const camera = { x: 0, y: 0, scale: 1, moved: false };
const BUTTONS = 44; // the height that they take, with their margins
const LEAST = 0.02, MOST = 4;
const bounded = (scale) => Math.min(MOST, Math.max(LEAST, scale));

const applyCamera = () => {
  stage.style.transform = `translate(${camera.x}px, ${camera.y}px) scale(${camera.scale})`;
  frame.dataset.far = camera.scale < 0.45 ? "yes" : "no";
  at("zoom").textContent = `${Math.round(camera.scale * 100)} %`;
};
const moveCamera = (x, y, scale = camera.scale) => {
  Object.assign(camera, { x, y, scale });
  applyCamera();
};

// Go somewhere in a fifth of a second, or at once where motion is not wanted.
let flight = 0;
const fly = (x, y, scale, lasts = 220) => {
  cancelAnimationFrame(flight);
  if (still.matches || !lasts) return moveCamera(x, y, scale);
  const from = { ...camera }, begin = performance.now();
  const go = (now) => {
    const t = eased(Math.min(1, Math.max(0, now - begin) / lasts));
    moveCamera(from.x + (x - from.x) * t, from.y + (y - from.y) * t, from.scale + (scale - from.scale) * t);
    if (t < 1) flight = requestAnimationFrame(go);
  };
  flight = requestAnimationFrame(go);
};
const eased = (t) => 1 - (1 - t) ** 3;

const zoomAt = (factor, x = frame.clientWidth / 2, y = frame.clientHeight / 2, lasts = 0) => {
  const scale = bounded(camera.scale * factor), grown = scale / camera.scale;
  camera.moved = true;
  fly(x - (x - camera.x) * grown, y - (y - camera.y) * grown, scale, lasts);
};

// How large the whole picture may be to be seen; a small one is not blown up.
const marginNow = () => Math.min(40, frame.clientWidth * 0.04);
const acrossScale = () => (frame.clientWidth - 2 * marginNow()) / scene.width;
const wholeScale = (room = frame.clientHeight - BUTTONS) => bounded(Math.min(1.25, acrossScale(), (room - marginNow()) / scene.height));

// Show the whole picture.
const fitAll = (lasts = 220) => {
  const scale = wholeScale(), room = frame.clientHeight - BUTTONS;
  camera.moved = false;
  fly((frame.clientWidth - scene.width * scale) / 2, (room + marginNow() / 2 - scene.height * scale) / 2, scale, lasts);
};
// Show the whole picture if it can be read so; else as much as fits across the ranks, from what is selected or from the
// first rank. Of a picture that is too large both ways, show what is around the root.
const TOO_SMALL = 0.36, READABLE = 0.5, SIDEWAYS = 0.6; // to the right more is seen at once if it is drawn smaller
const fitToRead = (lasts = 220) => {
  if (wholeScale() >= TOO_SMALL) return fitAll(lasts);
  const room = { x: frame.clientWidth, y: frame.clientHeight - BUTTONS }, margin = marginNow();
  const across = LOOK.sideways ? (room.y - margin) / scene.height : acrossScale(), scale = Math.min(LOOK.sideways ? SIDEWAYS : 1, Math.max(READABLE, across));
  const root = across < TOO_SMALL ? scene.items.get(rootsShown().map(standInOf)[0]) : null;
  const goal = scene.items.get(selection.item) ?? root ?? { x: 0, y: 0, width: LOOK.sideways ? 0 : scene.width, height: LOOK.sideways ? scene.height : 0 };
  const middled = (free, middle, whole) => (free > 0 ? free / 2 : Math.min(margin, Math.max(free - margin, whole / 2 - middle * scale)));
  const begun = (free, first) => (free > 0 ? free / 2 : Math.min(margin, Math.max(free, margin - first * scale)));
  const free = { x: room.x - scene.width * scale, y: room.y - scene.height * scale };
  camera.moved = false;
  if (LOOK.sideways) return fly(begun(free.x, goal.x), middled(free.y, goal.y + goal.height / 2, room.y), scale, lasts);
  fly(middled(free.x, goal.x + goal.width / 2, room.x), begun(free.y, goal.y), scale, lasts);
};
// Show one to one, around what is selected or the middle.
const fullSize = () => zoomAt(1 / camera.scale, undefined, undefined, 200);

// Bring a rectangle into view, moving no more than is needed: not at all where it is seen with a little air around it.
const SEEN = 8;
const bring = (box) => {
  const margin = 32, scale = camera.scale < TOO_SMALL ? READABLE : camera.scale;
  if (scale !== camera.scale) camera.moved = true;
  if (scale !== camera.scale) return fly(frame.clientWidth / 2 - (box.x + box.width / 2) * scale, frame.clientHeight / 2 - (box.y + Math.min(box.height, 60) / 2) * scale, scale);
  const shift = (low, high, room) => (low >= SEEN && high <= room - SEEN ? 0 : low < margin || high - low > room - 2 * margin ? margin - low : high > room - margin ? room - margin - high : 0);
  const left = box.x * scale + camera.x, top = box.y * scale + camera.y;
  const dx = shift(left, left + box.width * scale, frame.clientWidth), dy = shift(top, top + Math.min(box.height * scale, frame.clientHeight - 3 * margin), frame.clientHeight);
  if (dx || dy) camera.moved = true;
  if (dx || dy) fly(camera.x + dx, camera.y + dy, scale);
};

const pointers = new Map();
let dragged = false;
const spot = (event) => {
  const box = frame.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};
const middleAndSpread = () => {
  const [[x1, y1], [x2, y2]] = [...pointers.values()];
  return [(x1 + x2) / 2, (y1 + y2) / 2, Math.hypot(x1 - x2, y1 - y2)];
};

const listenToCamera = () => {
  frame.addEventListener("wheel", (event) => {
    event.preventDefault();
    cancelAnimationFrame(flight);
    if (event.shiftKey) return moveCamera(camera.x - (event.deltaX || event.deltaY), camera.y);
    const lines = event.deltaMode === 1 ? 18 : 1;
    zoomAt(Math.exp(-Math.max(-160, Math.min(160, event.deltaY * lines)) * (event.ctrlKey ? 0.01 : 0.002)), ...spot(event));
  }, { passive: false });
  frame.addEventListener("pointerdown", (event) => {
    if ((event.button !== 0 && event.button !== 1) || event.target.closest("#zooms")) return;
    pointers.set(event.pointerId, spot(event));
    if (pointers.size === 1) dragged = false;
  });
  frame.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) return;
    const before = pointers.get(event.pointerId), here = spot(event);
    if (pointers.size === 2) {
      const [x, y, spread] = middleAndSpread();
      pointers.set(event.pointerId, here);
      const [nextX, nextY, next] = middleAndSpread();
      zoomAt(spread ? next / spread : 1, x, y);
      moveCamera(camera.x + nextX - x, camera.y + nextY - y);
      dragged = true;
    } else if (dragged || Math.hypot(here[0] - before[0], here[1] - before[1]) > 4) {
      if (!dragged) frame.setPointerCapture(event.pointerId);
      cancelAnimationFrame(flight);
      dragged = camera.moved = true;
      pointers.set(event.pointerId, here);
      moveCamera(camera.x + here[0] - before[0], camera.y + here[1] - before[1]);
    }
    frame.classList.toggle("dragging", dragged);
  });
  for (const kind of ["pointerup", "pointercancel"]) frame.addEventListener(kind, (event) => {
    pointers.delete(event.pointerId);
    frame.classList.remove("dragging");
  });
  // the click that ends a drag is none
  frame.addEventListener("click", (event) => {
    if (!dragged) return;
    event.stopPropagation();
    dragged = false;
  }, true);
  new ResizeObserver(() => camera.moved || fitToRead(0)).observe(frame);
};
