// How numbers, shapes, sizes and times are written. What is absent is a dash, never 0.

const ABSENT = "—";
const NAMED = { nan: "NaN", inf: "∞", "-inf": "−∞" };

// Four figures, a true minus, and powers of ten where a plain number would be long. One that has more figures shows all four,
// zeros too, as in the replay's text (NOTE [Shortened numbers] in lens/replays/wording.py): 288.0 is not 288.
const short = (value, figures = 4) => {
  if (value === null || value === undefined) return ABSENT;
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return NAMED[value] || value;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) {
    const [front, power] = value.toExponential(Math.max(0, figures - 2)).split("e");
    const whole = Math.abs(Number(`${front}e${power}`) - value) <= EXACT * size;
    return `${whole ? Number(front) : front}e${Number(power)}`.replaceAll("-", "−");
  }
  return plain(value, figures).replace("-", "−");
};
const EXACT = 1e-6;
const plain = (value, figures) => {
  if (Number.isInteger(value)) return String(value);
  const written = value.toPrecision(figures);
  if (Math.abs(Number(written) - value) <= EXACT * Math.abs(value)) return String(Number(written));
  return /\.\d*$/.test(written) ? written : value.toFixed(1);
};

// A count of any size: residual connections double the number of paths with every layer.
const manyText = (count) => {
  const digits = String(count);
  return digits.length <= 15 ? count.toLocaleString("en") : `${digits[0]}.${digits.slice(1, 3)}e${digits.length - 1}`;
};

const shapeText = (shape) => (shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`);
const countOf = (shape) => shape.reduce((product, size) => product * size, 1);
const listed = (values) => (Array.isArray(values) ? `[${values.map(listed).join(", ")}]` : short(values));
const isBroken = (summary) => Boolean(summary && (summary.nans || summary.infs));

const bytesText = (bytes) => {
  if (bytes < 1024) return `${bytes} B`;
  const power = Math.min(4, Math.floor(Math.log2(bytes) / 10));
  return `${short(bytes / 1024 ** power, 3)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
};

const timeText = (seconds) => {
  if (seconds === null || seconds === undefined) return ABSENT;
  if (seconds < 1e-3) return `${short(seconds * 1e6, 3)} µs`;
  return seconds < 1 ? `${short(seconds * 1e3, 3)} ms` : `${short(seconds, 3)} s`;
};

// A tensor in a few characters: all of it if it is tiny, else its norm; null where nothing of it is known.
const brief = (summary, room = 24) => {
  if (!summary) return null;
  if (summary.values !== undefined) {
    const whole = listed(summary.values);
    if (whole.length <= room) return whole;
  }
  if (isBroken(summary)) return brokenText(summary);
  return summary.norm === undefined ? null : `‖·‖ ${short(summary.norm, 3)}`;
};

const brokenText = (summary) => [summary.nans ? `${summary.nans.toLocaleString("en")} NaN` : "", summary.infs ? `${summary.infs.toLocaleString("en")} inf` : ""].filter(Boolean).join(", ");
