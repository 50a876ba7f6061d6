// The panel: everything that is known of what is selected.

const section = (title, ...children) => (children.flat(Infinity).filter(Boolean).length ? make("section", {}, make("h3", {}, title), children) : null);
const fact = (name, ...value) => [make("dt", {}, name), make("dd", {}, value)];
const link = (id, text = nameOf(nodes[id])) => make("button", { type: "button", class: "go", "data-go": id, onclick: () => { reveal(id); select(`n${id}`, { focus: true }); } }, make("bdi", {}, text));
const code = (text) => make("code", {}, text);

// A small tensor whole: a table where it has two dimensions, else a list.
const wholeOf = (values) => {
  if (!Array.isArray(values)) return code(short(values));
  if (!values.length || !Array.isArray(values[0])) return code(`[${values.map((value) => short(value)).join(", ")}]`);
  if (Array.isArray(values[0][0])) return values.map((plane) => wholeOf(plane));
  const cell = (value) => make("td", { class: typeof value === "string" ? "broken" : null }, short(value));
  return make("div", { class: "scroll" }, make("table", { class: "values" }, values.map((row) => make("tr", {}, row.map(cell)))));
};

const summaryFacts = (summary, mask = false) => {
  if (!summary) return [make("p", { class: "absent" }, make("span", { class: "dash" }, ABSENT), " none")];
  const figures = [["min", summary.least], ["mean", summary.mean], ["max", summary.most], ["norm", summary.norm]].filter(([, value]) => value !== undefined && value !== null);
  const counts = [["NaN", summary.nans], ["inf", summary.infs], ["zeros", summary.zeros]].filter(([, count]) => count);
  return [
    make("p", { class: "kind" }, code(shapeText(summary.shape)), ` ${summary.dtype ?? ""}`, countOf(summary.shape) > 1 ? `, ${many(countOf(summary.shape), "element")}` : ""),
    isBroken(summary) && mask ? make("p", { class: "quiet" }, `${maskedText(summary)}: a mask, which the softmax makes 0 of.`) : null,
    isBroken(summary) && !mask ? make("p", { class: "alarm" }, `⚠ ${brokenText(summary)} of ${countOf(summary.shape).toLocaleString("en")}`) : null,
    summary.values !== undefined ? wholeOf(summary.values) : null,
    countOf(summary.shape) !== 1 && figures.length ? make("dl", { class: "figures" }, [...figures.map(([name, value]) => [name, short(value)]), ...counts.map(([name, count]) => [name, count.toLocaleString("en")])].map(([name, text]) => make("div", {}, fact(name, text)))) : null,
  ];
};

const linksTo = (ids, most = 12) => [ids.slice(0, most).map((id) => [link(id), " "]), ids.length > most ? make("span", { class: "quiet" }, `and ${many(ids.length - most, "more", "more")}`) : null];
const none = (text) => make("p", { class: "absent" }, make("span", { class: "dash" }, ABSENT), ` ${text}`);
const sentences = (lines) => lines.map(([text, ids]) => make("p", { class: "why" }, text, ids.length ? " " : null, linksTo(ids, 8)));

const gradientSection = (node) => {
  const step = stepOf(node.id), got = gradientOf(node.id);
  if (!got) return section("Gradient", none("no gradient yet"), sentences(whyNone(node.id)));
  const kept = step?.grad_after, before = step?.grad_before;
  return section(isLeaf(node) ? "Gradient, in .grad" : kept ? "Gradient, retained in .grad" : "Gradient that arrived",
    summaryFacts(kept ?? got),
    kept && before ? [make("p", { class: "sum" }, "Accumulated: there was a gradient before this backward, and this one was added."), make("details", {}, make("summary", {}, "before, and what arrived"), make("h4", {}, "before"), summaryFacts(before), make("h4", {}, "arrived"), summaryFacts(arrived(node.id)))] : null,
    (step?.changes ?? []).map((change) => make("details", { class: "change" }, make("summary", {}, "changed by hook ", code(change.hook)), make("h4", {}, "before"), summaryFacts(change.before), make("h4", {}, "after"), summaryFacts(change.after))));
};

const formulaRow = (node, edge, number) => {
  const gone = handed(node.id, number);
  return make("li", {}, make("div", { class: "formula" }, make("span", { class: "input" }, `${edge.name || `input ${number}`}:`), " ", code(edge.formula || "no formula is known")),
    make("div", { class: "to" }, "to ", link(edge.to), run() ? [" · ", gone ? make("span", { class: isBroken(gone) ? "broken" : "" }, brief(gone, 40) ?? "a gradient") : make("span", { class: "absent" }, `${ABSENT} none`)] : null));
};

const savedRow = (kept) => make("li", {}, code(kept.name), " ", code(shapeText(kept.summary.shape)), ` ${kept.summary.dtype ?? ""} · ${bytesText(kept.bytes)}`,
  kept.of !== null ? [" · ", heldAnyway(kept) ? "is " : "made by ", link(kept.of)] : null,
  kept.written !== kept.version ? make("p", { class: "alarm" }, `⚠ written to since it was saved: version ${kept.written}, saved at ${kept.version}`) : null);

const placeRow = (place) => make("li", {}, make("div", { class: "where", title: place.file }, make("bdi", {}, placeText(place)), place.function ? ` in ${place.function}` : ""), place.text ? make("pre", {}, place.text) : null);
const writeRow = (write) => make("li", {}, code(write.op), ` made version ${write.version}`, write.place ? make("ul", { class: "places" }, placeRow(write.place)) : null);

// The formulas on one path from the root to a node, and buttons that go through all paths.
const wayTable = (ways, number) => {
  const row = ({ id, edge }) => {
    const { name, formula } = nodes[id].edges[edge];
    return make("li", {}, link(id), make("div", { class: "formula" }, make("span", { class: "input" }, `${name || `input ${edge}`}:`), " ", code(formula || "no formula is known")));
  };
  return make("ol", { class: "way" }, wayNumbered(ways, number).map(row), make("li", {}, link(ways.target)));
};
const waysSection = (ways) => {
  if (!ways.roots.length) return section("Paths from the root", sentences(whyNone(ways.target)));
  let number = 0n;
  const holder = make("div", {}), position = make("span", { class: "position", role: "status" });
  const turn = (step) => {
    number = (number + step + ways.count) % ways.count;
    position.textContent = `${manyText(number + 1n)} of ${manyText(ways.count)}`;
    holder.replaceChildren(wayTable(ways, number));
  };
  const buttons = ways.count > 1n ? make("p", { class: "turns" }, make("button", { type: "button", "aria-label": "the path before", onclick: () => turn(-1n) }, "‹"), position, make("button", { type: "button", "aria-label": "the next path", onclick: () => turn(1n) }, "›")) : null;
  turn(0n);
  const more = ways.count > 1n ? "Its gradient is the sum over all of them; along each, these are multiplied:" : "Along it, these are multiplied:";
  return section(`${manyText(ways.count)} ${ways.count === 1n ? "path" : "paths"} from ${ways.roots.map((id) => nameOf(nodes[id])).join(", ")}`, make("p", { class: "quiet" }, more), buttons, holder);
};

const describeNode = (node) => {
  const step = stepOf(node.id), writes = record.writes.filter((write) => write.node === node.id);
  const title = isLeaf(node) ? symbolOf(node) : node.name ?? node.label;
  const lit = lighting.ways;
  return [
    make("header", {}, make("p", { class: "kicker" }, [isLeaf(node) ? (node.parameter ? "parameter" : "leaf") : node.type, ` ${numbered(node.id)}`, node.root ? " · root" : ""].join("")), make("h2", {}, title)),
    make("p", { class: "acts" }, make("button", { type: "button", class: "ways", "aria-pressed": String(Boolean(lit)), onclick: () => select(`n${node.id}`, { ways: !lit }) }, "Paths from the root", make("kbd", {}, "p"))),
    lit ? waysSection(lit) : null,
    section(isLeaf(node) ? "Value" : node.outputs.length > 1 ? "Outputs" : "Output", node.outputs.map((one) => summaryFacts(one, isMasked(node.id)))),
    gradientSection(node),
    section(isLeaf(node) ? "" : "Derivatives", isLeaf(node) ? null : make("ul", { class: "formulas" }, node.edges.map((edge, number) => edge && formulaRow(node, edge, number)))),
    node.saved.length ? section(`Saved for backward · ${bytesText(savedOf([node.id]))}`, make("ul", { class: "saved" }, node.saved.map(savedRow)), step?.freed ? make("p", { class: "quiet" }, `${bytesText(step.freed)} were freed when it had run.`) : null) : null,
    writes.length ? section("In-place writes", make("ul", {}, writes.map(writeRow))) : null,
    node.hooks.length ? section("Hooks", make("ul", {}, node.hooks.map((hook) => make("li", {}, code(hook))))) : null,
    section("Where", node.module || node.module_type ? make("p", {}, code(node.module || "the model"), node.module_type ? ` · ${node.module_type}` : "") : null,
      node.place ? make("ul", { class: "places" }, placeRow(node.place), node.stack.filter(Boolean).map(placeRow)) : none("the line is not known")),
    section("More", make("dl", { class: "facts" },
      fact("node", numbered(node.id)), fact("type", node.type), users[node.id].length ? fact("read by", linksTo([...new Set(usersOf(node.id))])) : null,
      step ? fact("fired", `${(step.number + 1).toLocaleString("en")} of ${run().steps.length.toLocaleString("en")}`) : null,
      node.seconds !== null ? fact("forward", timeText(node.seconds)) : null, step && step.seconds !== null ? fact("backward", timeText(step.seconds)) : null,
      node.version ? fact("version", `${node.version} when it was made`) : null,
      node.order > 1 ? fact("order", `made by a backward: ${node.order}`) : null)),
  ];
};

const describeGroup = (group) => {
  const ids = nodesIn(`g${group.id}`), leaves = ids.filter((id) => isLeaf(nodes[id])), without = leaves.filter((id) => !gradientOf(id)), broken = brokenIn(ids);
  const heaviest = ids.map((id) => [savedOf([id]), id]).filter(([bytes]) => bytes).sort(([one], [other]) => other - one).slice(0, 5);
  return [
    make("header", {}, make("p", { class: "kicker" }, group.kind), make("h2", {}, titleOf(group)), group.detail ? make("p", { class: "quiet" }, group.detail) : null),
    make("p", { class: "acts" }, make("button", { type: "button", onclick: () => toggle(`g${group.id}`) }, isOpen(`g${group.id}`) ? "Close" : "Open", make("kbd", {}, "Enter"))),
    section("Totals", make("dl", { class: "facts" },
      fact("nodes", ids.length.toLocaleString("en")), group.parameters ? fact("parameters", group.parameters.toLocaleString("en")) : null,
      group.times > 1 ? fact("repeated", `${group.times} times`) : null,
      fact("saved", bytesText(savedOf(ids))), timeOf(ids) === null ? null : fact("forward", timeText(timeOf(ids))), backwardTimeOf(ids) === null ? null : fact("backward", timeText(backwardTimeOf(ids))),
      fact(normWord(ids), short(normIn(ids))), leaves.length ? fact("with gradient", `${leaves.length - without.length} of ${many(leaves.length, "leaf", "leaves")}`) : null)),
    broken.length ? section("NaN or inf", make("p", { class: "alarm" }, `⚠ in ${many(broken.length, "node")}`), make("p", {}, linksTo(broken))) : null,
    without.length && run() ? section("No gradient yet", make("p", {}, linksTo(without))) : null,
    heaviest.length ? section("Saves most", make("ul", { class: "saved" }, heaviest.map(([bytes, id]) => make("li", {}, link(id), ` ${bytesText(bytes)}`)))) : null,
    leaves.length ? section("Leaves", make("ul", { class: "leaves" }, leaves.slice(0, 24).map((id) => make("li", {}, link(id), " ", make("span", { class: gradientOf(id) ? "quiet" : "absent" }, gradientOf(id) ? brief(gradientOf(id)) ?? "" : `${ABSENT} no gradient yet`)))), leaves.length > 24 ? make("p", { class: "quiet" }, `and ${leaves.length - 24} more`) : null) : null,
  ];
};

const describeRecord = () => {
  const all = nodes.map((node) => node.id), leaves = nodes.filter(isLeaf), without = leaves.filter((node) => !gradientOf(node.id)), broken = brokenIn(all);
  const numbers = leaves.filter((node) => node.parameter).reduce((sum, node) => sum + countOf(node.outputs[0]?.shape ?? [0]), 0);
  return [
    make("header", {}, make("p", { class: "kicker" }, "Graph"), make("h2", {}, record.title || "Graph")),
    section("Totals", make("dl", { class: "facts" },
      fact("nodes", nodes.length.toLocaleString("en")), numbers ? fact("parameters", numbers.toLocaleString("en")) : null, fact("leaves", leaves.length.toLocaleString("en")),
      fact("root", rootsShown().length ? rootsShown().map((id) => [link(id), " "]) : ABSENT), fact("saved", bytesText(savedOf(all))),
      run() ? fact("backward", `${many(run().steps.length, "node")} fired`) : fact("backward", "none has run"), fact("with gradient", `${leaves.length - without.length} of ${many(leaves.length, "leaf", "leaves")}`),
      record.left_out ? fact("left out", many(record.left_out, "node")) : null)),
    run()?.problem ? section("This backward failed", make("p", { class: "alarm" }, run().problem)) : null,
    broken.length ? section("NaN or inf", make("p", { class: "alarm" }, `⚠ in ${many(broken.length, "node")}, first made:`), make("p", {}, linksTo(broken))) : null,
    without.length && run() ? section("No gradient yet", make("p", {}, linksTo(without.map((node) => node.id)))) : null,
    run()?.place ? section("Backward was called at", make("ul", { class: "places" }, placeRow(run().place))) : null,
    make("p", { class: "quiet hint" }, "Click a node to see its values, gradient, formulas and source line; a group to open it; a leaf to light all paths from the root to it. Press ", make("kbd", {}, "?"), " for the keys."),
  ];
};

const describe = (item) => {
  const shown = !item ? describeRecord() : item[0] === "g" ? describeGroup(groupOf(item)) : describeNode(nodeOf(item));
  at("panel").replaceChildren(...shown.filter(Boolean));
  at("panel").scrollTop = 0;
};
