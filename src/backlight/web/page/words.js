// A text with its words lit. A word is [start, end, value, tokens, error, effect, estimated] (see web/page_data.py).

const FAINT = 0.04; // the share of the scale from which a word is lit at all
const SIGN_FROM = 0.12; // and from which its sign is underlined thickly: solid for +, dotted for −
const BRIGHT = 0.55; // and from which its ground is bright in the dark theme, and its letters dark
const ESTIMATED = 0.4; // of a measured word's shade: an estimated word's

const shareOf = (value, most) => (most ? value / most : 0);
const isMark = (text) => !/[\p{L}\p{N}]/u.test(text);

// `weak` is "estimated" (a paler shade, no line), "fails" (hatched, no colour), "measured" (beside estimated words: a line
// under the word however pale it is), or null.
const lit = (element, share, isSigned, weak = null) => {
  const size = Math.abs(share) * (weak === "estimated" ? ESTIMATED : 1);
  element.style.setProperty("--share", Math.abs(share) < FAINT ? 0 : size.toFixed(3));
  const full = weak === null || weak === "measured";
  element.classList.toggle("bright", size >= BRIGHT && full);
  element.classList.toggle("minus", isSigned && share < 0);
  element.classList.toggle("signed", isSigned && Math.abs(share) >= SIGN_FROM && full);
  element.classList.toggle("measured", weak === "measured");
  element.classList.toggle("estimated", weak === "estimated");
  element.classList.toggle("fails", weak === "fails");
};

// Whether any word that a method explains on this page is estimated.
const estimatesOf = (method) => data.documents.some(({ explanations: { [method]: made } }) => made && hasEstimates([...made.query, ...made.document]));

// How a text is shown: whether values have signs, the value of a full shade (see NOTE [One scale] in explain/presentation/scales.py),
// the verdict of the explanation's check, and whether there are estimated words, here or in a text beside it.
const hasEstimates = (words) => words.some((word) => word[6]);
const lookOf = (made, scale) => ({ signed: made.signed, scale, verdict: made.verdict, estimates: estimatesOf(made.method) });

// The strongest words first, as TextAttribution.strongest has them: measured before estimated ones, marks last.
const byStrength = (text, words) => {
  const keys = new Map(words.map((word) => [word, [isMark(cut(text, word[0], word[1])), word[6], -Math.abs(word[2])]]));
  const compare = (a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
  return [...words].sort((a, b) => compare(keys.get(a), keys.get(b)));
};

// What is known of a word's value: that it was measured, or estimated; for other methods what the check measured.
const knownOf = ([, , value, , , effect, estimated]) => {
  if (estimated) return "estimated, not measured";
  if (effect === null) return "";
  return effect === value ? "measured" : `measured: ${signed(effect, digitsFor(Math.abs(effect)))}`;
};

// Return the text, cut into words and what stands between them. `read` says where reading began and ended, `without` what
// would be without a word, if that is known.
const litText = (text, words, read, look, label, without = () => "") => {
  const most = look.scale || largest(words.filter((word) => !isMark(cut(text, word[0], word[1]))).map((word) => word[2]));
  const order = byStrength(text, words);
  const rank = new Map(order.map((word, place) => [word[0], place + 1]));
  const count = words.filter((word) => !isMark(cut(text, word[0], word[1]))).length; // punctuation is not counted
  const beside = look.estimates && look.verdict !== "no effect" ? "measured" : null;
  const digits = digitsFor(most);
  const spans = new Map();
  const group = make("span", { class: "lit", role: "group", "aria-label": `${label}; arrow keys walk through the words` });
  let done = read[0];
  for (const word of words) {
    const [start, end, value, tokens, error, , estimated] = word;
    if (start > done) group.append(cut(text, done, start));
    const span = make("span", { class: "word", tabindex: rank.get(start) === 1 ? 0 : -1, "data-start": start }, cut(text, start, end));
    const mark = isMark(cut(text, start, end)); // punctuation has no colour; its value is in the tip
    const share = mark || look.verdict === "no effect" ? 0 : shareOf(value, most);
    lit(span, share, look.signed, look.verdict === "fails" ? "fails" : estimated ? "estimated" : mark ? null : beside);
    const written = (look.signed ? signed(value, digits) : number(value, digits)) + (error === null ? "" : ` ± ${number(error, digits)}`);
    span.dataset.value = written;
    tipped(span, () => [
      written,
      knownOf(word),
      without(word),
      (mark ? "punctuation" : `word ${rank.get(start)} of ${count} by strength`) + (look.signed && data.unit === "logit" ? " · change of the logit" : "") + (tokens > 1 ? ` · ${tokens} tokens` : ""),
      error !== null && Math.abs(value) < 2 * error ? "may be zero: less than two standard errors" : "",
    ]);
    spans.set(start, span);
    group.append(span);
    done = end;
  }
  if (done < read[1]) group.append(cut(text, done, read[1]));
  const here = words.map((word) => spans.get(word[0]));
  const ranked = order.map((word) => spans.get(word[0]));
  walk(group, { ArrowRight: [here, 1], ArrowLeft: [here, -1], ArrowDown: [ranked, 1], ArrowUp: [ranked, -1] });
  return { group, spans, most, digits, order, look };
};

// List the strongest words as bars on the text's scale; with signs, from the middle to either side.
const strongestWords = (text, found, count) => {
  const isSigned = found.look.signed;
  const list = make("ol", { class: isSigned ? "strongest two-sided" : "strongest" });
  const words = found.order.filter((word) => !isMark(cut(text, word[0], word[1])));
  for (const word of (words.length ? words : found.order).slice(0, count)) {
    const [start, end, value, , error, , estimated] = word;
    const width = found.look.verdict === "no effect" ? 0 : 100 * Math.min(1, Math.abs(shareOf(value, found.most)));
    const weak = found.look.verdict === "fails" ? " fails" : estimated ? " estimated" : "";
    const bar = make("span", { class: `fill${value < 0 ? " minus" : ""}${weak}`, style: `--width:${width.toFixed(1)}%` });
    if (error !== null) bar.append(make("i", { style: `--error:${((100 * error) / Math.abs(value || 1)).toFixed(1)}%` }));
    const written = isSigned ? signed(value, found.digits) : number(value, found.digits);
    const entry = make("li", {},
      make("span", { class: "label" }, cut(text, start, end)),
      make("span", { class: "meter", "aria-hidden": "true" }, bar),
      make("span", { class: estimated ? "value estimated" : "value", title: estimated ? "estimated, not measured" : null }, estimated ? `~ ${written}` : written));
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
