"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const tip = document.getElementById("tip");
  const words = [...document.querySelectorAll(".word")];

  // Theme: the address may ask for one (#dark, #light), else the system decides, until the button is pressed.
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const nameButton = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
    button.setAttribute("aria-pressed", String(isDark()));
  };
  const asked = location.hash.slice(1);
  if (asked === "dark" || asked === "light") root.dataset.theme = asked;
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameButton();
  });
  system.addEventListener("change", nameButton);
  nameButton();

  // The tip: a word's value, rank and number of tokens, on hover and on focus.
  const show = (word) => {
    const { value, rank, words: all, tokens } = word.dataset;
    tip.textContent = `${value} · rank ${rank} of ${all}` + (tokens === "1" ? "" : ` · ${tokens} tokens`);
    tip.hidden = false;
    const box = word.getClientRects()[0];
    const left = Math.max(8, Math.min(box.left + box.width / 2 - tip.offsetWidth / 2, innerWidth - tip.offsetWidth - 8));
    const above = box.top - tip.offsetHeight - 6;
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${(above < 4 ? box.bottom + 6 : above) + scrollY}px`;
  };
  const hide = () => { tip.hidden = true; };
  for (const word of words) {
    word.removeAttribute("title");
    word.setAttribute("aria-describedby", "tip");
    word.addEventListener("mouseenter", () => show(word));
    word.addEventListener("mouseleave", hide);
    word.addEventListener("focus", () => show(word));
    word.addEventListener("blur", hide);
  }
  addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

  // Keyboard: a text is one stop; left and right walk through it, up and down through the ranks.
  for (const text of document.querySelectorAll(".lit")) {
    const here = [...text.querySelectorAll(".word")];
    const ranked = [...here].sort((a, b) => a.dataset.rank - b.dataset.rank);
    text.addEventListener("keydown", (event) => {
      const [order, step] = { ArrowRight: [here, 1], ArrowLeft: [here, -1], ArrowDown: [ranked, 1], ArrowUp: [ranked, -1] }[event.key] || [];
      if (!order) return;
      event.preventDefault();
      const next = order[order.indexOf(event.target) + step];
      if (!next) return;
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
  }

  // A word in the list of the strongest shows where it stands.
  for (const entry of document.querySelectorAll(".strongest li")) {
    const word = entry.closest("article").querySelector(`.text .word[data-start="${entry.dataset.start}"]`);
    entry.addEventListener("mouseenter", () => word.classList.add("lifted"));
    entry.addEventListener("mouseleave", () => word.classList.remove("lifted"));
  }
})();
