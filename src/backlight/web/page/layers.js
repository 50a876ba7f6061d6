// How the score builds up: what it would be if each layer were the last, and what each layer adds.

const NARROWEST = 260; // pixels of the chart, and the width that it has before it is laid out
const WIDEST = 640;
const LABELLED = 26; // pixels that the name of a layer needs

// The chart at its width on the screen, so that its letters are never scaled.
const layersChart = (after, width) => {
  const [height, left, bottom, top] = [width < 480 ? 200 : 240, 52, 30, 16];
  const [low, high] = [Math.min(0, ...after), Math.max(0, ...after)];
  const spread = high - low || 1;
  const step = (width - left - 16) / (after.length - 0.5);
  const x = (place) => left + step * (place + 0.25);
  const y = (score) => top + ((height - top - bottom) * (high - score)) / spread;
  const gap = Math.min(3, step / 6);
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "chart", role: "img", "aria-label": `The ${data.unit} after each layer` });
  const marks = [0, low, high].filter((score, place, all) => all.indexOf(score) === place && (!score || Math.abs(y(score) - y(0)) >= 13));
  for (const score of marks) {
    picture.append(
      draw("line", { x1: left, x2: width - 8, y1: y(score), y2: y(score), class: score === 0 ? "axis" : "grid" }),
      draw("text", { x: left - 8, y: y(score) + 4, "text-anchor": "end" }, score ? number(score) : "0"));
  }
  after.forEach((score, place) => {
    if (!place) return;
    const before = after[place - 1];
    picture.append(draw("rect", {
      x: x(place) - step / 2 + gap, width: Math.max(1, step - 2 * gap), y: Math.min(y(before), y(score)), height: Math.max(1, Math.abs(y(before) - y(score))),
      class: score < before ? "step minus" : "step",
    }));
  });
  picture.append(draw("polyline", { points: after.map((score, place) => `${x(place)},${y(score)}`).join(" "), class: "course" }));
  const every = Math.ceil(LABELLED / step); // of a deep model in a narrow window, some layers have no name
  const digits = digitsFor(largest(after.slice(1).map((score, place) => score - after[place])));
  after.forEach((score, place) => {
    const dot = draw("circle", { cx: x(place), cy: y(score), r: Math.min(4.5, step / 3), class: "dot", tabindex: place ? -1 : 0, role: "img", "aria-label": `after layer ${place}: ${number(score)}` });
    const added = place ? `layer ${place} adds ${signed(score - after[place - 1], digits)}` : "the input of the first layer";
    picture.append(tipped(dot, () => [number(score), added]));
    const last = after.length - 1;
    if (place === last || (place % every === 0 && (last - place) * step >= LABELLED)) {
      picture.append(draw("text", { x: x(place), y: height - 8, "text-anchor": "middle" }, place ? String(place) : "in"));
    }
  });
  const dots = [...picture.querySelectorAll(".dot")];
  walk(picture, { ArrowRight: [dots, 1], ArrowLeft: [dots, -1] });
  return picture;
};

const layersView = (ranked) => {
  const holder = make("div", { class: "scroll" }, layersChart(ranked.layers.after, WIDEST));
  new ResizeObserver(() => {
    const width = Math.round(Math.min(WIDEST, Math.max(NARROWEST, holder.clientWidth)));
    if (holder.firstChild.getAttribute("width") !== String(width)) holder.replaceChildren(layersChart(ranked.layers.after, width));
  }).observe(holder);
  return make("div", { class: "layers" },
    make("h3", {}, `The ${data.unit} if each layer were the last`), holder,
    make("p", { class: "apart" }, "Bars: what each layer adds (orange) or subtracts (blue, dashed). The model was trained to score from its last layer only: an early score is what its head makes of those states, not what the model has understood by then."));
};
