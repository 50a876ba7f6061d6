// Colour by kind, gradient norm, bytes saved or time: a shade from 0 to 1 for a set of nodes, and the legend.

const SCALES = {
  kind: { title: "Kind", hue: null },
  gradient: { title: "Gradient norm", hue: "gradient", unit: "‖grad‖, log scale; of a group over its leaves, else the largest in it", of: (ids) => normIn(ids), now: (ids) => normIn(ids, gradientNow), text: (value) => short(value, 3), what: "grad", log: true, none: "no gradient yet" },
  bytes: { title: "Bytes saved", hue: "bytes", unit: "kept for backward, parameters apart; memory shared counts once", of: (ids) => savedOf(ids) || null, text: bytesText, what: "saved", none: "nothing saved" },
  time: { title: "Time", hue: "time", unit: "forward and backward", of: (ids) => sumKnown([timeOf(ids), backwardTimeOf(ids)]), text: timeText, what: "time", none: "not measured" },
};

const scale = {
  mode: "kind",
  ends: null,
  get chosen() { return SCALES[scale.mode]; },
  // The ends of the scale: over what is seen, so that the shades tell seen items apart.
  fit: (items) => {
    if (!scale.chosen.of) { scale.ends = null; return; }
    const known = items.map((item) => scale.chosen.of(nodesIn(item))).filter((value) => value !== null && (value > 0 || !scale.chosen.log));
    scale.ends = known.length ? [Math.min(...known), Math.max(...known)] : null;
  },
  // From 0 to 1; null where there is nothing to shade.
  share: (ids) => {
    const value = (scale.chosen.now ?? scale.chosen.of)?.(ids) ?? null;
    if (value === null || !scale.ends) return null;
    const [low, high] = scale.ends;
    if (!scale.chosen.log) return high > 0 ? value / high : null;
    if (value <= 0) return 0;
    return high > low ? 0.08 + 0.92 * (Math.log(value / low) / Math.log(high / low)) : 1;
  },
  // The row that a box has instead of its gradient's.
  rowOf: (ids) => {
    if (!["bytes", "time"].includes(scale.mode)) return null;
    const value = scale.mode === "bytes" ? savedOf(ids) : scale.chosen.of(ids);
    return [scale.chosen.what, value === null ? ABSENT : scale.chosen.text(value), value === null ? "absent" : ""];
  },
};

const swatch = (kind, text) => make("span", { class: "key" }, make("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), text);
const LOOKS = { added: "+ added", gone: "− gone", changed: "~ changed", same: "the same" };
const compared = new Set([...boxes.values()].map((box) => box.look).filter(Boolean));
const kindKeys = () => (compared.size
  ? Object.entries(LOOKS).filter(([look]) => compared.has(look)).map(([look, text]) => swatch(`look-${look}`, text))
  : [swatch("leaf", "leaf"), swatch("op", "intermediate"), swatch("rooted", "root"), groups.length > 1 ? swatch("group", "group") : null]);
const drawLegend = () => {
  const chosen = scale.chosen;
  at("legend").replaceChildren(...(chosen.of ? [
    make("span", { class: "key" }, scale.ends ? chosen.text(chosen.log ? scale.ends[0] : 0) : ABSENT),
    make("span", { class: `ramp ${chosen.hue}`, "aria-hidden": "true" }),
    make("span", { class: "key" }, scale.ends ? chosen.text(scale.ends[1]) : ABSENT),
    swatch("none", chosen.none), brokenIn(nodes.map((node) => node.id)).length ? swatch("broken", "NaN or inf") : null,
    make("span", { class: "unit" }, chosen.unit),
  ] : [
    ...kindKeys(),
    [...boxes.values()].some((box) => box.bead) ? swatch("bead", "view or copy") : null,
    brokenIn(nodes.map((node) => node.id)).length ? swatch("broken", "NaN or inf") : null,
    make("span", { class: "key" }, make("span", { class: "dash" }, ABSENT), "no gradient yet"),
  ]).filter(Boolean));
};
