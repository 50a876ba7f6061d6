// How the score builds up: what it would be were each layer the last, and what each layer adds.

const layersView = (ranked) => {
  const after = ranked.layers.after;
  const [width, height, left, bottom] = [640, 240, 52, 30];
  const [low, high] = [Math.min(0, ...after), Math.max(0, ...after)];
  const spread = high - low || 1;
  const step = (width - left - 24) / (after.length - 0.5);
  const x = (place) => left + step * (place + 0.25);
  const y = (score) => 16 + ((height - 16 - bottom) * (high - score)) / spread;
  const digits = digitsFor(largest(after));
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": `The ${data.unit} after each layer` });
  for (const score of [low, 0, high].filter((score, place, all) => all.indexOf(score) === place)) {
    picture.append(
      draw("line", { x1: left, x2: width - 8, y1: y(score), y2: y(score), class: score === 0 ? "axis" : "grid" }),
      draw("text", { x: left - 8, y: y(score) + 4, "text-anchor": "end" }, number(score, digits)));
  }
  after.forEach((score, place) => {
    if (!place) return;
    const before = after[place - 1];
    picture.append(draw("rect", {
      x: x(place) - step / 2 + 3, width: Math.max(1, step - 6), y: Math.min(y(before), y(score)), height: Math.max(1, Math.abs(y(before) - y(score))),
      class: score < before ? "step minus" : "step",
    }));
  });
  picture.append(draw("polyline", { points: after.map((score, place) => `${x(place)},${y(score)}`).join(" "), class: "course" }));
  after.forEach((score, place) => {
    const dot = draw("circle", { cx: x(place), cy: y(score), r: 4.5, class: "dot", tabindex: place ? -1 : 0, role: "img", "aria-label": `after layer ${place}: ${number(score, digits)}` });
    const added = place ? `layer ${place} adds ${signed(score - after[place - 1], digits)}` : "what the first layer is given";
    picture.append(tipped(dot, () => [number(score, digits), added]));
    picture.append(draw("text", { x: x(place), y: height - 8, "text-anchor": "middle" }, place ? String(place) : "in"));
  });
  const dots = [...picture.querySelectorAll(".dot")];
  walk(picture, { ArrowRight: [dots, 1], ArrowLeft: [dots, -1] });
  return make("div", { class: "layers" },
    make("h3", {}, `The ${data.unit}, were each layer the last`), make("div", { class: "scroll" }, picture),
    make("p", { class: "apart" }, "Bars: what each layer adds (orange) or takes (blue, dashed). The model was trained to score by its last layer only: an early score says what it makes of those states, not what the model had understood by then."));
};
