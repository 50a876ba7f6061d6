// What all of the page uses, besides the elements of the kit (report/elements.js).

const at = (id) => document.getElementById(id);
const still = matchMedia("(prefers-reduced-motion: reduce)");
