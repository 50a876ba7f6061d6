// What each word of the query and each word of the document bring together: a heat map, and the text lit by one row.

const COLUMNS = 26; // document words that the heat map shows at first

const rowTotals = (matrix) => matrix.document.map((word) => [...word.slice(0, 4), null, null, 0]);

const textByRow = (matrix, row, place) => {
  const words = row < 0 ? rowTotals(matrix) : matrix.document.map((word, column) => [word[0], word[1], matrix.values[row][column], word[3], null, null, 0]);
  const look = { signed: matrix.signed, scale: row < 0 ? 0 : largest(matrix.values.flat()), verdict: null };
  place.replaceChildren(litText(matrix.documentText, words, matrix.read, look, "the document").group);
};

// One query word at a time lights the document; the first choice is what all of them bring.
const rowSwitch = (matrix, place) => {
  const names = ["all words", ...matrix.query.map(([start, end]) => cut(matrix.queryText, start, end))];
  const buttons = names.map((name, number) => make("button", {
    type: "button", role: "radio", "aria-checked": String(number === 0), tabindex: number === 0 ? 0 : -1, "data-row": number - 1,
    onclick: () => {
      buttons.forEach((button, other) => button.setAttribute("aria-checked", String(other === number)));
      textByRow(matrix, number - 1, place);
    },
  }, name));
  const group = make("div", { class: "methods", role: "radiogroup", "aria-label": "Word of the query" }, buttons);
  walk(group, { ArrowRight: [buttons, 1], ArrowLeft: [buttons, -1] });
  return group;
};

// Punctuation has no column, unless there is nothing else.
const wordColumns = (matrix) => {
  const columns = matrix.document.map((_, column) => column);
  const words = columns.filter((column) => !isMark(cut(matrix.documentText, ...matrix.document[column])));
  return words.length ? words : columns;
};

const shownColumns = (matrix, all) => {
  const columns = wordColumns(matrix);
  if (all || columns.length <= COLUMNS) return columns;
  const sizes = new Map(columns.map((column) => [column, largest(matrix.values.map((row) => row[column]))]));
  const chosen = new Set([...columns].sort((a, b) => sizes.get(b) - sizes.get(a)).slice(0, COLUMNS));
  return columns.filter((column) => chosen.has(column));
};

const cellOf = (matrix, row, column, most, digits) => {
  const value = matrix.values[row][column];
  const written = matrix.signed ? signed(value, digits) : number(value, digits);
  const [asked, found] = [matrix.query[row], matrix.document[column]];
  const names = `${cut(matrix.queryText, asked[0], asked[1])} × ${cut(matrix.documentText, found[0], found[1])}`;
  const cell = make("td", { tabindex: -1, "aria-label": `${names}: ${written}`, "data-value": written });
  lit(cell, shareOf(value, most), matrix.signed);
  return tipped(cell, () => [written, names]);
};

const heatMap = (matrix, all) => {
  const columns = shownColumns(matrix, all);
  const most = largest(matrix.values.flat());
  const digits = digitsFor(most);
  const heads = columns.map((column) => make("th", { scope: "col" }, make("span", {}, cut(matrix.documentText, ...matrix.document[column]))));
  const rows = matrix.query.map(([start, end], row) => {
    const cells = columns.map((column) => cellOf(matrix, row, column, most, digits));
    return [cells, make("tr", {}, make("th", { scope: "row" }, cut(matrix.queryText, start, end)), cells)];
  });
  const cells = rows.map(([found]) => found);
  if (cells.length && cells[0].length) cells[0][0].tabIndex = 0;
  const table = make("table", { class: "heat" }, make("thead", {}, make("tr", {}, make("td"), heads)), make("tbody", {}, rows.map(([, row]) => row)));
  table.addEventListener("keydown", (event) => {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] || [];
    if (down === undefined) return;
    event.preventDefault();
    const row = cells.findIndex((found) => found.includes(event.target));
    const next = row < 0 ? null : cells[row + down]?.[cells[row].indexOf(event.target) + right];
    if (!next) return;
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  return table;
};

const strongestPairs = (matrix) => {
  const isWord = (text, [start, end]) => !isMark(cut(text, start, end));
  const links = matrix.values.flatMap((row, place) => row.map((value, column) => [value, place, column])).filter(([, row, column]) =>
    isWord(matrix.queryText, matrix.query[row]) && isWord(matrix.documentText, matrix.document[column]));
  links.sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]));
  const most = Math.abs(links[0]?.[0] || 0);
  const list = make("ol", { class: matrix.signed ? "strongest two-sided wide" : "strongest wide" });
  for (const [value, row, column] of links.slice(0, 8)) {
    const width = 100 * Math.abs(shareOf(value, most));
    list.append(make("li", {},
      make("span", { class: "label" }, `${matrix.queryNames[row]} × ${matrix.documentNames[column]}`),
      make("span", { class: "meter", "aria-hidden": "true" }, make("span", { class: value < 0 ? "fill minus" : "fill", style: `--width:${width.toFixed(1)}%` })),
      make("span", { class: "value" }, signed(value, digitsFor(most)))));
  }
  return list;
};

const matrixOf = (matrix) => {
  const text = make("p", { class: "text" });
  textByRow(matrix, -1, text);
  const holder = make("div", { class: "scroll" });
  const count = wordColumns(matrix).length;
  let all = false;
  const more = make("button", { type: "button", onclick: () => { all = !all; fill(); } });
  const fill = () => {
    holder.replaceChildren(heatMap(matrix, all));
    more.textContent = all ? `Show the ${COLUMNS} strongest columns` : `Show all ${count} words`;
  };
  fill();
  return [
    matrix.signed ? legendOf(true, ["together lower the score", "together raise it"],
      "Orange cells: the two words raise the score more together than each alone. Blue cells with a dot: together they lower it.") : null,
    make("h3", {}, "How a query word interacts with each word of the document"),
    rowSwitch(matrix, text), text,
    make("div", { class: "heat-head" }, make("h3", {}, "All pairs"), count > COLUMNS ? more : null), holder,
    make("h3", {}, "Strongest pairs"), strongestPairs(matrix),
    account(matrix),
  ];
};

const matrixView = (matrices) => make("div", { class: "matrix" }, matrices.map(matrixOf));
