// The tip: what an element says of itself, on hover and on focus. It stays on the screen at every width.

const tip = make("div", { id: "tip", role: "tooltip", hidden: true });

const showTip = (element, lines) => {
  tip.replaceChildren(...lines.filter(Boolean).map((line, place) => make(place ? "span" : "strong", {}, line)));
  tip.hidden = false;
  const box = element.getClientRects()[0] || element.getBoundingClientRect();
  const middle = box.left + box.width / 2 - tip.offsetWidth / 2;
  const above = box.top - tip.offsetHeight - 7;
  tip.style.left = `${Math.max(8, Math.min(middle, document.documentElement.clientWidth - tip.offsetWidth - 8)) + scrollX}px`;
  tip.style.top = `${(above < 4 ? box.bottom + 7 : above) + scrollY}px`;
};
const hideTip = () => { tip.hidden = true; };

// `lines` is called when it is needed: the method may have changed since.
const tipped = (element, lines) => {
  const show = () => showTip(element, lines());
  element.setAttribute("aria-describedby", "tip");
  for (const event of ["mouseenter", "focus"]) element.addEventListener(event, show);
  for (const event of ["mouseleave", "blur"]) element.addEventListener(event, hideTip);
  return element;
};
