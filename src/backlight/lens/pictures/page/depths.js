// The strip beneath the graph: how large gradients are at each distance from the root (lens/records/depths.py), the root at
// the right, so that one sees at once where they vanish or explode.

const FEWEST_LEVELS = 4, MOST_BARS = 120;
const DEPTH_WORDS = { vanished: "Vanished", exploding: "Exploding" };
const depthsShown = () => (shownRun.number === null ? null : { levels: [], ...(data.depths ?? [])[shownRun.number] });

// Of more levels than there is room for, the largest gradient of every few.
const barsOf = ({ levels }) => {
  const each = Math.ceil(levels.length / MOST_BARS), bars = [];
  for (let first = 0; first < levels.length; first += each) bars.push({ first, ...levels.slice(first, first + each).reduce((one, other) => (other.broken || other.norm > one.norm ? other : one)) });
  return bars;
};

// The longest bar is the largest norm, the shortest the smallest that is not 0; over less than a factor of 1,000 they differ less.
const heightsOf = (bars) => {
  const logs = bars.filter(({ norm }) => norm > 0).map(({ norm }) => Math.log10(norm));
  const high = Math.max(...logs), low = Math.min(Math.min(...logs), high - 3);
  return bars.map(({ norm }) => (norm > 0 ? 0.06 + 0.94 * ((Math.log10(norm) - low) / (high - low)) : 0));
};

const sentenceOf = ({ levels, word, at: from }) => {
  const first = levels[0], last = levels.at(-1), ends = `‖grad‖ ${short(first.norm, 3)} at the loss, ${short(last.norm, 3)} at the end`;
  if (!word) return ends;
  const where = `from ${nameOf(nodes[levels[from].node])} #${levels[from].node}, ${many(levels[from].depth, "op")} away from it, on`;
  return `${ends}; ${word === "vanished" ? "lost in rounding" : "10,000 times larger"} ${where}`;
};

const barElement = (bar, height, lost) => make("button", {
  type: "button", tabindex: -1, class: `level${lost ? " lost" : ""}${bar.broken ? " broken" : ""}`, "data-node": bar.node, style: `--high: ${height}`,
  title: `${nameOf(nodes[bar.node])} #${bar.node}, ${many(bar.depth, "op")} from the loss: ${bar.broken ? "NaN or inf" : `‖grad‖ ${short(bar.norm, 3)}`}`,
  onclick: () => { reveal(bar.node); select(`n${bar.node}`); },
});
const drawDepths = () => {
  const depths = depthsShown(), strip = at("depths");
  strip.hidden = !depths || depths.levels.length < FEWEST_LEVELS;
  if (strip.hidden) return;
  const bars = barsOf(depths), heights = heightsOf(bars), { word = "" } = depths;
  const from = word ? depths.at : Infinity;
  strip.dataset.word = word;
  strip.replaceChildren(
    make("p", {}, make("strong", {}, "Gradient by depth"), word ? make("span", { class: "verdict" }, `⚠ ${DEPTH_WORDS[word]}`) : null, make("span", { class: "quiet" }, sentenceOf(depths))),
    make("div", { class: "levels", role: "img", "aria-label": `Gradient by depth${word ? `: ${word}` : ""}. ${sentenceOf(depths)}` },
      bars.map((bar, place) => barElement(bar, heights[place], bar.first >= from))),
  );
};
const markDepths = () => {
  for (const bar of at("depths").querySelectorAll(".level")) bar.classList.toggle("current", selection.item === `n${bar.dataset.node}`);
};
