// The replay: a bar beneath the graph with which one steps through a recorded pass (see NOTE [A replay] in lens/replays/replay.py).
// What each step says is in `data.replay`; here it is shown, and its traces are drawn into the graph through `view`.

const SPEEDS = [0.5, 1, 2, 4];
const LINGER = 1600; // milliseconds that a step is shown while it plays
const steps = (data.replay?.steps ?? []).map((step, number) => ({ parts: [], flows: [], held: 0, ...step, number }));
const mostHeld = Math.max(1, ...steps.map((step) => step.held));
const replaying = { at: 0, open: false, timer: null, speed: 1, flowed: false };

// In a box there is room for a few characters: of a large tensor, its norm.
const compact = (text) => text?.replace(/^\(.*\) of norm (\S+)/, "‖·‖ $1") ?? null;

// What each node has got by the end of a step: its value, the gradient as far as it is gathered, its `.grad`.
const tracesAt = (number) => {
  const states = new Map(), of = (id) => states.get(id) ?? states.set(id, { state: "made", value: null, gradient: null }).get(id);
  for (const step of steps.slice(0, number + 1)) {
    const current = step.number === number;
    if (step.kind === "forward") Object.assign(of(step.node), { state: current ? "firing" : "made", value: compact(step.value) });
    else if (step.kind === "begin") for (const one of states.values()) Object.assign(one, { state: "made", gradient: null, whole: false });
    else if (step.node !== undefined) {
      const left = step.kind === "grad" ? "accumulated" : step.freed ? "freed" : "fired";
      Object.assign(of(step.node), { state: current ? "firing" : left, gradient: compact(step.gradient), whole: Boolean(step.gradient) });
      if (step.grad) of(step.node).badge = `.grad ${compact(step.grad)}`;
    }
    for (const { end, gradient, total, waiting } of step.flows) {
      if (gradient === "none") continue;
      Object.assign(of(end), { state: "ready", gradient: waiting ? `${compact(total)} …` : compact(total), whole: !waiting });
    }
  }
  return states;
};

// A label on an edge is a few characters: of what is longer, the norm; of what is not known, the shape.
const labelOf = ({ end, output, gradient }, given) => {
  if (gradient === "none") return "";
  const text = compact(gradient), made = nodes[end].outputs[output];
  if (text.length <= 16) return text;
  return given?.norm !== undefined ? `‖·‖ ${short(given.norm)}` : made ? shapeText(made.shape) : text;
};

// The edges along which something goes in a step: inputs of an op in the forward, gradients in the backward.
const goingAt = (step) => {
  if (step.kind !== "forward") {
    const given = step.flows.length ? nodes[step.node].edges.flatMap((edge, place) => (edge ? [handed(step.node, place)] : [])) : [];
    return step.flows.map((flow, number) => ({ from: flow.start, to: flow.end, label: labelOf(flow, given[number]) }));
  }
  return nodes[step.node].edges.filter(Boolean).map(({ to }) => ({ from: step.node, to, label: "" }));
};

const partElement = ({ kind, heading = "", lines = [] }) => [
  make("dt", { class: `part-${kind}` }, heading),
  make("dd", { class: `part-${kind}` }, make("pre", {}, lines.join("\n"))),
];
const sayStep = (step) => {
  at("replay-title").textContent = step.title;
  at("replay-place").textContent = step.place ?? "";
  at("replay-parts").replaceChildren(...step.parts.flatMap(partElement));
  at("replay-number").textContent = `${step.number + 1} of ${steps.length}`;
  at("replay-slider").value = step.number;
  at("replay-slider").setAttribute("aria-valuetext", `step ${step.number + 1}: ${step.title}`);
  at("replay-held").style.width = `${(100 * step.held) / mostHeld}%`;
  at("replay-bytes").textContent = `${bytesText(step.held)} held`;
  for (const id of ["first", "back"]) at(`replay-${id}`).disabled = step.number === 0;
  for (const id of ["next", "last"]) at(`replay-${id}`).disabled = step.number === steps.length - 1;
};

// The backward that runs at a step, or ran last before it.
const runAt = (number) => {
  while (number >= 0 && steps[number].backward === undefined) number -= 1;
  return steps[number]?.backward;
};
// The panel is as high as its longest step so far: were it to shrink again, the graph would jump.
const growPanel = () => {
  const body = at("replay-body");
  body.style.minHeight = `${Math.min(body.scrollHeight + body.offsetHeight - body.clientHeight, MOST_PANEL * innerHeight)}px`;
};
const MOST_PANEL = 0.35;

const goTo = (number, { quietly = false, fit = false } = {}) => {
  replaying.at = Math.max(0, Math.min(steps.length - 1, number));
  const step = steps[replaying.at], backwards = step.kind !== "forward";
  const run = runAt(replaying.at);
  if (run !== undefined && run !== shownRun.number) view.run(run);
  if (state.flow !== backwards) setFlow(backwards);
  view.show(tracesAt(replaying.at), { edges: goingAt(step) });
  sayStep(step);
  growPanel();
  if (fit) fitToRead(0);
  if (step.node !== undefined) view.reveal(step.node);
  if (!quietly) view.announce(`Step ${step.number + 1}: ${step.title}. ${step.parts.map(({ heading = "", lines = [] }) => `${heading} ${lines.join(", ")}`).join(". ")}`);
  if (replaying.at === steps.length - 1) pause();
};

const pause = () => {
  clearInterval(replaying.timer);
  replaying.timer = null;
  at("replay-play").textContent = "Play";
  at("replay-play").setAttribute("aria-pressed", "false");
};
const play = () => {
  if (replaying.timer !== null) return pause();
  if (replaying.at === steps.length - 1) goTo(0, { quietly: true });
  replaying.timer = setInterval(() => goTo(replaying.at + 1, { quietly: true }), LINGER / replaying.speed);
  at("replay-play").textContent = "Pause";
  at("replay-play").setAttribute("aria-pressed", "true");
};
const setSpeed = (speed) => {
  replaying.speed = speed;
  if (replaying.timer !== null) { pause(); play(); }
};
const move = (number) => { pause(); goTo(number); };

const STEPPING = {
  ArrowLeft: () => move(replaying.at - 1), ArrowRight: () => move(replaying.at + 1),
  Home: () => move(0), End: () => move(steps.length - 1), " ": play,
};
const firstBackward = () => Math.max(0, steps.findIndex(({ kind }) => kind === "begin"));

// Open the panel at a step, or close it and show the graph as it is after all.
const openReplay = (number = 0) => {
  replaying.open = true;
  replaying.flowed = state.flow;
  view.slot.classList.add("open");
  at("replay-toggle").setAttribute("aria-expanded", "true");
  at("replay-toggle").textContent = "Close";
  for (const [key, call] of Object.entries(STEPPING)) view.keys.set(key, call);
  at("replay-body").style.minHeight = "";
  goTo(number, { fit: true }); // the panel has taken some of the room
};
const closeReplay = () => {
  pause();
  replaying.open = false;
  view.slot.classList.remove("open");
  at("replay-toggle").setAttribute("aria-expanded", "false");
  at("replay-toggle").textContent = "Step through it";
  for (const key of Object.keys(STEPPING)) view.keys.delete(key);
  if (state.flow !== replaying.flowed) setFlow(replaying.flowed);
  view.show(null);
};
const toggleReplay = () => (replaying.open ? closeReplay() : openReplay(replaying.at));

const replayButton = (id, text, label, call) => make("button", { type: "button", id: `replay-${id}`, "aria-label": label, title: label, onclick: call }, text);
const drawReplay = () => {
  const slider = make("input", { type: "range", id: "replay-slider", min: 0, max: steps.length - 1, value: 0, "aria-label": "Step" });
  slider.addEventListener("input", () => move(Number(slider.value)));
  const speed = make("select", { id: "replay-speed", "aria-label": "Speed" }, SPEEDS.map((one) => make("option", { value: one, selected: one === 1 }, `${one}×`)));
  speed.addEventListener("change", () => setSpeed(Number(speed.value)));
  view.slot.replaceChildren(
    make("div", { id: "replay-bar" },
      make("h2", {}, "Replay"),
      make("button", { type: "button", id: "replay-toggle", "aria-expanded": "false", "aria-controls": "replay-body", onclick: toggleReplay }, "Step through it"),
      make("span", { id: "replay-controls", role: "toolbar", "aria-label": "Replay" },
        replayButton("first", "|◀\uFE0E", "First step (Home)", () => move(0)),
        replayButton("back", "◀\uFE0E", "One step back (←)", () => move(replaying.at - 1)),
        make("button", { type: "button", id: "replay-play", "aria-pressed": "false", title: "Play (space)", onclick: play }, "Play"),
        replayButton("next", "▶\uFE0E", "Next step (→)", () => move(replaying.at + 1)),
        replayButton("last", "▶\uFE0E|", "Last step (End)", () => move(steps.length - 1)),
        make("button", { type: "button", id: "replay-backward", onclick: () => move(firstBackward()) }, "Backward"),
        slider, make("span", { id: "replay-number" }), speed,
        make("span", { id: "replay-memory", title: "Memory that is kept for backward" }, make("span", { class: "bar" }, make("span", { id: "replay-held" })), make("span", { id: "replay-bytes" })),
      ),
    ),
    make("div", { id: "replay-body" },
      make("p", { id: "replay-head" }, make("strong", { id: "replay-title" }), make("code", { id: "replay-place" })),
      make("dl", { id: "replay-parts" }),
    ),
  );
  at("replay-backward").hidden = !steps.some(({ kind }) => kind === "begin");
  view.slot.addEventListener("keydown", (event) => {
    const call = STEPPING[event.key];
    if (!call || !replaying.open || event.target.matches("input, select") || (event.key === " " && event.target.matches("button"))) return;
    event.preventDefault();
    call();
  });
};

// `#step-7` in the address opens the replay there; a page that was made for the replay opens at its first backward.
const beginReplay = () => {
  if (data.replay?.left_out) {
    view.slot.hidden = false;
    view.slot.append(make("p", { id: "replay-left-out" }, make("strong", {}, "Replay"), ` Its steps would make this page of ${many(nodes.length, "node")} large: `, make("code", {}, "backlight replay"), " steps through it in a terminal, and with ", make("code", {}, "--html"), " makes a page with them."));
  }
  if (!steps.length) return;
  drawReplay();
  view.slot.hidden = false;
  view.help("← →", "while the replay is open: one step back, the next step");
  view.help("Home End", "its first step, its last; space plays and pauses");
  view.keys.set("s", toggleReplay);
  view.help("s", "open or close the replay");
  const named = /step-(\d+)/.exec(location.hash);
  if (named) openReplay(Number(named[1]) - 1);
  else if (data.replay.open) openReplay(firstBackward());
};
view.on("ready", beginReplay);
