"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const { rows, signed, unit } = JSON.parse(at("data").textContent);
  const ROWS = 25; // on a page
  const BRIGHT = 0.55; // the share from which a word's ground is bright in the dark theme, and its letters dark
  const FAINT = 0.04; // and from which it has a sign
  const ESTIMATED = 0.4; // of a measured word's shade: an estimated word's
  const FULL = 0.95; // the share of pairs whose words are all within the scale; stronger words have a full shade

  const made = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const plain = (pieces) => pieces.map((piece) => (typeof piece === "string" ? piece : piece[0])).join("");
  const shown = (value, digits) => value.toFixed(digits).replace(/^-(?=0\.?0*$)/, "").replace("-", "\u2212");
  for (const row of rows) {
    row.queryText = plain(row.query);
    row.documentText = plain(row.document);
    row.all = `${row.id}\n${row.queryText}\n${row.documentText}`.toLowerCase();
  }

  // What can be shown: each choice keeps some rows, and brings the order that it asks for.
  const labelled = rows.some((row) => row.label !== null);
  const choices = {
    all: ["all pairs", () => true],
    best: ["highest scores", () => true, "score-down"],
    worst: ["lowest scores", () => true, "score-up"],
    ...(labelled && {
      "false-positives": ["false positives: not relevant, high score", (row) => row.label !== null && row.label <= 0, "score-down"],
      "false-negatives": ["false negatives: relevant, low score", (row) => row.label > 0, "score-up"],
    }),
    ...(rows.some((row) => row.unread) && { unread: ["read in part", (row) => row.unread > 0] }),
    ...(rows.some((row) => row.why.includes("sampled")) && { sampled: ["the sample only", (row) => row.why.includes("sampled")] }),
  };
  const orders = {
    line: (a, b) => a.line - b.line,
    "score-down": (a, b) => b.score - a.score,
    "score-up": (a, b) => a.score - b.score,
    "label-down": (a, b) => (b.label ?? -Infinity) - (a.label ?? -Infinity),
    "length-down": (a, b) => b.documentText.length - a.documentText.length,
    query: (a, b) => a.queryText.localeCompare(b.queryText),
  };
  for (const [name, [says]] of Object.entries(choices)) at("show").append(new Option(says, name));

  const isMark = (text) => !/[\p{L}\p{N}]/u.test(text); // punctuation has no colour; its value is in the tip
  // The value of a full shade, one for all pairs, so that shades can be compared from pair to pair.
  const scaleOf = (side) => {
    const strongest = (pieces) => Math.max(...pieces.map((piece) => (typeof piece === "string" || isMark(piece[0]) ? 0 : Math.abs(piece[1]))), 0);
    const sorted = rows.map((row) => strongest(row[side])).sort((a, b) => a - b);
    return sorted[Math.ceil(FULL * sorted.length) - 1] || sorted.at(-1) || 0;
  };
  const scale = { query: scaleOf("query"), document: scaleOf("document") };
  if (at("scale")) at("scale").textContent = `Shades compare words of all pairs: a full one stands for ${Number(scale.query.toPrecision(3))} in a query, ${Number(scale.document.toPrecision(3))} in a document${rows.length > 20 ? ", or more" : ""}.`;
  // A text of a pair with its words lit, and what was searched for underlined.
  const lit = (row, side, terms) => {
    const words = row[side].filter((piece) => typeof piece !== "string");
    const ranked = [...words].sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const beside = [...row.query, ...row.document].some((piece) => piece[2] === 1);
    const text = made("p", "text");
    let first = true;
    for (const piece of row[side]) {
      if (typeof piece === "string") { text.append(...marked(piece, terms)); continue; }
      const [word, value, estimated] = piece;
      const pale = row.verdict === "no effect" || isMark(word) || !scale[side];
      const share = pale ? 0 : Math.min(1, Math.abs(value) / scale[side]) * (estimated ? ESTIMATED : 1);
      const place = made("span", "lit-word");
      if (row.verdict === "fails") place.classList.add("fails");
      else {
        const harms = signed && share >= FAINT && value < 0;
        if (harms) place.classList.add("harms");
        if (harms && !estimated) place.classList.add("below");
        if (share >= BRIGHT) place.classList.add("bright");
        if (beside && !estimated && !isMark(word)) place.classList.add("measured");
      }
      place.style.setProperty("--share", share.toFixed(3));
      place.tabIndex = first ? 0 : -1;
      first = false;
      place.dataset.tip = `${shown(value, 4)}${estimated ? ", estimated" : ""} · rank ${ranked.indexOf(piece) + 1} of ${words.length}`;
      place.append(...marked(word, terms));
      text.append(place);
    }
    return text;
  };
  const marked = (text, terms) => {
    const lower = text.toLowerCase();
    if (lower.length !== text.length) return [text];
    const found = [];
    let done = 0;
    while (done < text.length) {
      const next = terms.map((term) => [lower.indexOf(term, done), term.length]).filter(([place]) => place >= 0).sort((a, b) => a[0] - b[0])[0];
      if (!next) break;
      if (next[0] > done) found.push(text.slice(done, next[0]));
      found.push(made("mark", "", text.slice(next[0], next[0] + next[1])));
      done = next[0] + next[1];
    }
    if (done < text.length) found.push(text.slice(done));
    return found;
  };

  // The list: filtered, sorted, a page at a time. A pair's words are drawn when it is opened.
  let found = rows;
  let page = 0;
  const terms = () => at("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const choose = () => {
    const wanted = terms();
    const [, keeps] = choices[at("show").value];
    found = rows.filter((row) => keeps(row) && wanted.every((term) => row.all.includes(term)));
    found.sort((a, b) => orders[at("order").value](a, b) || a.line - b.line);
    page = 0;
    draw();
  };
  const draw = () => {
    const pages = Math.max(1, Math.ceil(found.length / ROWS));
    at("rows").replaceChildren(...found.slice(page * ROWS, (page + 1) * ROWS).map(entry));
    at("count").textContent = found.length === rows.length ? `${rows.length.toLocaleString("en")} pairs` : `${found.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} pairs`;
    at("pager").hidden = pages === 1;
    at("place").textContent = `${page + 1} of ${pages}`;
    at("back").disabled = page === 0;
    at("on").disabled = page === pages - 1;
  };
  const entry = (row) => {
    const item = made("li");
    const head = made("button", "row");
    head.type = "button";
    head.setAttribute("aria-expanded", "false");
    const label = row.label === null ? "" : row.label > 0 ? `✓ ${row.label}` : `✗ ${row.label}`;
    const mark = made("span", "label", label);
    if (label) mark.title = row.label > 0 ? "relevant by its label" : "not relevant by its label";
    const wanted = terms();
    const query = made("span", "one");
    query.append(...marked(row.queryText.slice(0, 300), wanted));
    const told = made("span", "one told");
    told.append(...marked(row.documentText.slice(0, 300), wanted));
    head.append(made("span", "number", shown(row.score, 3)), mark, query, told);
    head.addEventListener("click", () => {
      const open = head.getAttribute("aria-expanded") !== "true";
      head.setAttribute("aria-expanded", String(open));
      if (open) item.append(opened(row));
      else item.lastElementChild.remove();
    });
    item.append(head);
    return item;
  };
  const opened = (row) => {
    const box = made("div", "open");
    const unread = row.unread ? ` · ${row.unread} tokens were not read` : "";
    const label = row.label === null ? "" : ` · label ${row.label}`;
    const likely = row.probability === null ? "" : ` · probability ${row.probability}`;
    const why = row.why.length ? ` · shown as: ${row.why.join(", ")}` : "";
    box.append(made("p", "facts-line", `line ${row.line} · id ${row.id} · ${unit} ${shown(row.score, 6)}${likely}${label}${unread}${why}`));
    if (row.check) box.append(made("p", { holds: "check", fails: "check failed" }[row.verdict] || "check weak", `${row.check}.`));
    box.append(made("h3", "", "Query"), lit(row, "query", terms()), made("h3", "", "Document"), lit(row, "document", terms()));
    return box;
  };
  at("find").addEventListener("input", choose);
  at("order").addEventListener("change", choose);
  at("show").addEventListener("change", () => {
    at("order").value = choices[at("show").value][2] || at("order").value;
    choose();
  });
  at("tools").addEventListener("submit", (event) => event.preventDefault());
  const turn = (step) => { page += step; draw(); at("tools").scrollIntoView({ block: "start" }); };
  at("back").addEventListener("click", () => turn(-1));
  at("on").addEventListener("click", () => turn(1));
  at("tools").hidden = at("row-heads").hidden = false;
  choose();

  // The tip: a word's value and rank, on hover and on focus. Left and right walk through the words of a text.
  const tip = at("tip");
  const tell = (event) => {
    const word = event.target.closest?.(".lit-word");
    tip.hidden = !word;
    if (!word) return;
    tip.textContent = word.dataset.tip;
    const box = word.getClientRects()[0];
    const left = Math.max(8, Math.min(box.left + box.width / 2 - tip.offsetWidth / 2, innerWidth - tip.offsetWidth - 8));
    const above = box.top - tip.offsetHeight - 6;
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${(above < 4 ? box.bottom + 6 : above) + scrollY}px`;
  };
  at("rows").addEventListener("mouseover", tell);
  at("rows").addEventListener("focusin", tell);
  at("rows").addEventListener("mouseleave", () => { tip.hidden = true; });
  at("rows").addEventListener("focusout", () => { tip.hidden = true; });
  at("rows").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const here = event.target.closest(".lit-word");
    if (!step || !here) return;
    event.preventDefault();
    const words = [...here.parentElement.querySelectorAll(".lit-word")];
    const next = words[words.indexOf(here) + step];
    if (!next) return;
    here.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") tip.hidden = true;
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      event.preventDefault();
      at("find").focus();
    }
  });

  // Tables of words: a click on a column's name sorts by it, another one turns the order round.
  for (const table of document.querySelectorAll("table[data-sortable]")) {
    const heads = [...table.tHead.rows[0].cells];
    const value = (line, column) => line.cells[column].dataset.value ?? line.cells[column].textContent;
    heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
      const order = head.getAttribute("aria-sort") === "descending" || (column === 0 && !head.hasAttribute("aria-sort")) ? "ascending" : "descending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const compare = column === 0 ? (a, b) => a.localeCompare(b) : (a, b) => a - b;
      const lines = [...table.tBodies[0].rows].sort((a, b) => sign * compare(value(a, column), value(b, column)));
      table.tBodies[0].append(...lines);
    }));
  }
  const wordTools = at("word-tools");
  if (wordTools) {
    wordTools.hidden = false;
    at("word-find").addEventListener("input", () => {
      const part = at("word-find").value.toLowerCase().trim();
      for (const line of document.querySelectorAll("table[data-sortable] tbody tr")) line.hidden = !line.cells[0].textContent.toLowerCase().includes(part);
    });
  }
})();
