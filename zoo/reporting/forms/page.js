"use strict";

// Numbers of a column that has any, else its texts; null where there is none, which comes last either way.
function worths(rows, at) {
  const cells = rows.map((row) => row.cells[at]);
  const numbers = cells.some((cell) => cell.dataset.value !== undefined);
  if (!numbers) return cells.map((cell) => cell.textContent.trim() || null);
  return cells.map((cell) => (cell.dataset.value === undefined ? null : Number(cell.dataset.value)));
}

function compare(a, b) {
  return typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
}

function sort(table, at) {
  const heads = [...table.tHead.rows[0].cells];
  const way = heads[at].getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  heads[at].setAttribute("aria-sort", way);
  const body = table.tBodies[0];
  const values = worths([...body.rows], at);
  const rows = [...body.rows].map((row, number) => [values[number], row]);
  const known = rows.filter(([value]) => value !== null);
  known.sort(([a], [b]) => (way === "ascending" ? compare(a, b) : compare(b, a)));
  const unknown = rows.filter(([value]) => value === null);
  body.append(...[...known, ...unknown].map(([, row]) => row));
}

function filter(field) {
  const rows = [...document.getElementById(field.dataset.filters).tBodies[0].rows];
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
  const shown = rows.filter((row) => !row.hidden).length;
  field.closest("p").querySelector("output").value = field.value ? `${shown} of ${rows.length} rows` : "";
}

for (const head of document.querySelectorAll("thead th")) {
  const table = head.closest("table");
  head.querySelector("button").addEventListener("click", () => sort(table, head.cellIndex));
}
for (const field of document.querySelectorAll("[data-filters]")) {
  field.closest("p").hidden = false;
  field.addEventListener("input", () => filter(field));
}

// Titles of points become tips that come with the focus too; one stop of the Tab key per picture, arrows within it.
const tip = document.createElement("div");
tip.id = "tip";
tip.setAttribute("role", "tooltip");
tip.hidden = true;
document.querySelector("main").append(tip);

let shown = null;

function show(point) {
  shown = point;
  tip.textContent = point.dataset.tip;
  tip.hidden = false;
  const place = point.getBoundingClientRect();
  const left = place.left + place.width / 2 - tip.offsetWidth / 2;
  const above = place.top - tip.offsetHeight - 8;
  tip.style.left = `${Math.max(4, Math.min(left, document.documentElement.clientWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${above > 4 ? above : place.bottom + 8}px`;
}

function hide() {
  shown = null;
  tip.hidden = true;
}

for (const title of document.querySelectorAll("svg title")) {
  const point = title.parentElement;
  point.dataset.tip = title.textContent;
  title.remove();
  point.addEventListener("pointerenter", () => show(point));
  point.addEventListener("pointerleave", hide);
}

for (const picture of document.querySelectorAll(".area, .bars")) {
  const points = [...picture.querySelectorAll(".point")];
  points.forEach((point, at) => {
    point.setAttribute("tabindex", at ? "-1" : "0");
    point.setAttribute("role", "img");
    point.setAttribute("aria-label", point.dataset.tip);
    point.addEventListener("focus", () => show(point));
    point.addEventListener("blur", hide);
  });
  picture.addEventListener("keydown", (event) => {
    const at = points.indexOf(document.activeElement);
    const steps = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: points.length - 1 };
    const next = points[steps[event.key]];
    if (at < 0 || !(event.key in steps)) return;
    event.preventDefault();
    if (!next) return;
    points[at].setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  });
}
document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
document.addEventListener("scroll", () => shown && show(shown), true);

window.addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
});
