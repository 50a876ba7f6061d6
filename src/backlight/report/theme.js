"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");

  // Theme: the address may name one (#dark, #light), else the system decides, until the button is pressed.
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const nameButton = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
    button.setAttribute("aria-pressed", String(isDark()));
  };
  const requested = location.hash.slice(1);
  if (requested === "dark" || requested === "light") root.dataset.theme = requested;
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameButton();
  });
  system.addEventListener("change", nameButton);
  nameButton();
})();
