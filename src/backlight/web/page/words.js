// A text with its words lit. A word is [start, end, value, tokens, error or null], as web/island.py writes it.

const FAINT = 0.04; // the share of the strongest word from which a word is lit at all
const SIGN_FROM = 0.12; // and from which its sign is underlined: solid for +, dotted for −
const BRIGHT = 0.55; // and from which its ground is bright in the dark theme, and its letters dark

const shareOf = (value, most) => (most ? value / most : 0);

const lit = (element, share, isSigned) => {
  const size = Math.abs(share);
  element.style.setProperty("--share", size < FAINT ? 0 : size.toFixed(3));
  element.classList.toggle("bright", size >= BRIGHT);
  element.classList.toggle("minus", isSigned && share < 0);
  element.classList.toggle("signed", isSigned && size >= SIGN_FROM);
};

// Return the text, cut into words and what stands between them. `read` says where reading began and ended.
const litText = (text, words, read, isSigned, label) => {
  const most = largest(words.map((word) => word[2]));
  const order = [...words].sort((a, b) => Math.abs(b[2]) - Math.abs(a[2]));
  const rank = new Map(order.map((word, place) => [word[0], place + 1]));
  const digits = Math.max(2, digitsFor(most));
  const spans = new Map();
  const group = make("span", { class: "lit", role: "group", "aria-label": `${label}; arrow keys walk through the words` });
  let done = read[0];
  for (const word of words) {
    const [start, end, value, tokens, error] = word;
    if (start > done) group.append(text.slice(done, start));
    const span = make("span", { class: "word", tabindex: rank.get(start) === 1 ? 0 : -1, "data-start": start }, text.slice(start, end));
    lit(span, shareOf(value, most), isSigned);
    const told = (isSigned ? signed(value, digits) : number(value, digits)) + (error === null ? "" : ` ± ${number(error, digits)}`);
    span.dataset.value = told;
    tipped(span, () => [
      told,
      `${rank.get(start)} of ${words.length}` + (tokens > 1 ? ` · ${tokens} tokens` : ""),
      error !== null && Math.abs(value) < 2 * error ? "not told from zero" : "",
    ]);
    spans.set(start, span);
    group.append(span);
    done = end;
  }
  if (done < read[1]) group.append(text.slice(done, read[1]));
  const here = words.map((word) => spans.get(word[0]));
  const ranked = order.map((word) => spans.get(word[0]));
  walk(group, { ArrowRight: [here, 1], ArrowLeft: [here, -1], ArrowDown: [ranked, 1], ArrowUp: [ranked, -1] });
  return { group, spans, most, digits, order };
};

// List the strongest words as bars; with signs, from the middle to either side.
const strongestWords = (text, found, isSigned, count) => {
  const list = make("ol", { class: isSigned ? "strongest two-sided" : "strongest" });
  for (const word of found.order.slice(0, count)) {
    const [start, end, value, , error] = word;
    const width = 100 * Math.abs(shareOf(value, found.most));
    const bar = make("span", { class: value < 0 ? "fill minus" : "fill", style: `--width:${width.toFixed(1)}%` });
    if (error !== null) bar.append(make("i", { style: `--error:${((100 * error) / Math.abs(value || 1)).toFixed(1)}%` }));
    const entry = make("li", {},
      make("span", { class: "label" }, text.slice(start, end)),
      make("span", { class: "meter", "aria-hidden": "true" }, bar),
      make("span", { class: "value" }, isSigned ? signed(value, found.digits) : number(value, found.digits)));
    if (error !== null) entry.title = `± ${number(error, found.digits)}`;
    const span = found.spans.get(start);
    entry.addEventListener("mouseenter", () => span.classList.add("lifted"));
    entry.addEventListener("mouseleave", () => span.classList.remove("lifted"));
    list.append(entry);
  }
  return list;
};

// Say what a text lost because the model reads only so much.
const unread = (truncation, maxTokens) => truncation.tokens_left_out
  ? make("p", { class: "unread" },
      make("strong", {}, "Read in part. "),
      `${maxTokens === null ? "" : `The model reads ${many(maxTokens, "token")}; `}${many(truncation.words_left_out, "word")} ` +
      `(${many(truncation.tokens_left_out, "token")}) beyond this excerpt were left out of the score and of the explanation.`)
  : null;
