"use strict";
(() => {
  const make = (name, attributes, parent) => {
    const one = document.createElementNS(parent.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
    parent.append(one);
    return one;
  };
  const between = (value, low, high) => Math.min(high, Math.max(low, value));
  const text = (value, share) => {
    if (value === null) return "none";
    if (typeof value === "string") return value;
    if (share) return `${Number((100 * value).toPrecision(3))} %`;
    const size = Math.abs(value);
    return size && (size < 1e-3 || size >= 1e6) ? value.toExponential(2) : String(Number(value.toPrecision(4)));
  };
  const steps = ([first, last]) => (first === last ? `step ${first}` : `steps ${first}–${last}`);

  // A cursor in a heat map is a cell; in curves it is a step. Both move by pointer and by keys, and say what is there.
  const inMap = (svg, chart, say) => {
    const [left, top, right, bottom] = chart.box;
    const wide = (right - left) / chart.columns.length;
    const high = (bottom - top) / chart.names.length;
    const frame = make("rect", { class: "cursor", width: wide, height: high, visibility: "hidden" }, svg);
    const show = (column, row) => {
      const at = { column: between(column, 0, chart.columns.length - 1), row: between(row, 0, chart.names.length - 1) };
      frame.setAttribute("x", left + at.column * wide);
      frame.setAttribute("y", top + at.row * high);
      frame.setAttribute("visibility", "visible");
      say(`${chart.names[at.row]} · ${steps(chart.columns[at.column])} · ${text(chart.values[at.row][at.column], chart.share)}`);
      return at;
    };
    return {
      start: () => show(chart.columns.length - 1, 0),
      at: (x, y) => (x < left || x > right || y < top || y > bottom ? null : show(Math.floor((x - left) / wide), Math.floor((y - top) / high))),
      move: (at, across, down) => show(at.column + across, at.row + down),
      end: (at, across) => show(across < 0 ? 0 : chart.columns.length - 1, at.row),
      hide: () => frame.setAttribute("visibility", "hidden"),
    };
  };
  const inCurves = (svg, chart, say) => {
    const [left, top, right, bottom] = chart.box;
    const all = [...new Set(chart.series.flatMap((one) => one.points.map((point) => point[0])))].sort((a, b) => a - b);
    const line = make("line", { class: "cursor", y1: top, y2: bottom, visibility: "hidden" }, svg);
    const nearest = (points, step) => points.reduce((best, point) => (Math.abs(point[0] - step) < Math.abs(best[0] - step) ? point : best));
    const show = (place) => {
      const at = { place: between(place, 0, all.length - 1) };
      const step = all[at.place];
      const x = left + (step / (chart.last || 1)) * (right - left);
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
      line.setAttribute("visibility", "visible");
      const values = chart.series.filter((one) => one.points.length).map((one) => {
        const [there, value] = nearest(one.points, step);
        return `${one.name} ${text(value)}${there === step ? "" : ` (step ${there})`}`;
      });
      say(`step ${step} · ${values.join(" · ")}`);
      return at;
    };
    const closest = (step) => all.reduce((best, one, place) => (Math.abs(one - step) < Math.abs(all[best] - step) ? place : best), 0);
    return {
      start: () => show(all.length - 1),
      at: (x) => (x < left - 4 || x > right + 4 ? null : show(closest(((x - left) / (right - left)) * chart.last))),
      move: (at, across) => show(at.place + across),
      end: (at, across) => show(across < 0 ? 0 : all.length - 1),
      hide: () => line.setAttribute("visibility", "hidden"),
    };
  };

  const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  for (const svg of document.querySelectorAll("svg[data-hover]")) {
    const chart = JSON.parse(svg.dataset.hover);
    const readout = document.createElement("p");
    readout.className = "readout";
    readout.setAttribute("aria-live", "polite");
    svg.after(readout);
    const cursor = (chart.kind === "map" ? inMap : inCurves)(svg, chart, (words) => (readout.textContent = words));
    let at = null;
    const hide = () => {
      cursor.hide();
      readout.textContent = "";
      at = null;
    };
    const point = (event) => {
      const seen = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const found = cursor.at(seen.x, seen.y);
      if (found) at = found;
      else hide();
    };
    svg.tabIndex = 0;
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", () => document.activeElement !== svg && hide());
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return hide();
      const known = event.key in KEYS || event.key === "Home" || event.key === "End";
      if (!known || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      if (at === null) at = cursor.start();
      else if (event.key in KEYS) at = cursor.move(at, ...KEYS[event.key]);
      else at = cursor.end(at, event.key === "Home" ? -1 : 1);
    });
  }

  // Heat maps of several quantities share a card: one is shown, and a row of buttons chooses. Without a script all are.
  for (const card of document.querySelectorAll(".views")) {
    const views = [...card.querySelectorAll(".view")];
    const tabs = card.querySelector(".tabs");
    const choose = (chosen) => {
      views.forEach((view, place) => {
        view.hidden = place !== chosen;
        tabs.children[place].setAttribute("aria-pressed", String(place === chosen));
      });
    };
    views.forEach((view, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = view.dataset.name;
      button.addEventListener("click", () => choose(place));
      tabs.append(button);
    });
    tabs.addEventListener("keydown", (event) => {
      const across = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!across) return;
      const next = (views.length + [...tabs.children].indexOf(document.activeElement) + across) % views.length;
      choose(next);
      tabs.children[next].focus();
    });
    card.classList.add("chosen");
    choose(0);
  }
})();
