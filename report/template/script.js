// Tables sort at a click on a head, by the cell's number where it has one; the navigation is made of the sections.
"use strict";
const key = (row, column) => {
  const cell = row.cells[column];
  const given = cell.dataset.sort;
  if (given === "") return Infinity;
  const text = given ?? cell.textContent.trim();
  const number = Number(text);
  return text !== "" && Number.isFinite(number) ? number : text;
};
const compare = (a, b) => {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "number") return a === Infinity ? 1 : -1;
  if (typeof b === "number") return b === Infinity ? -1 : 1;
  return a.localeCompare(b, undefined, { numeric: true });
};
const sort = (table, head) => {
  const down = head.getAttribute("aria-sort") === "ascending";
  const column = head.cellIndex;
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [key(row, column), row]);
  rows.sort(([a], [b]) => (down && a !== Infinity && b !== Infinity ? compare(b, a) : compare(a, b)));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...rows.map(([, row]) => row));
};
for (const table of document.querySelectorAll("table.sortable")) {
  for (const head of table.tHead.rows[0].cells) {
    if (!head.textContent.trim() || head.querySelector(".ends")) continue;
    head.tabIndex = 0;
    head.title = "sort";
    head.addEventListener("click", () => sort(table, head));
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        sort(table, head);
      }
    });
  }
}
const nav = document.querySelector("nav");
const seen = new Set();
for (const section of document.querySelectorAll("section[id]")) {
  if (seen.has(section.id)) continue;
  seen.add(section.id);
  const link = document.createElement("a");
  link.href = "#" + section.id;
  link.textContent = section.querySelector("h2").textContent;
  nav.append(link);
}
addEventListener("load", () => { document.documentElement.dataset.loadedMs = Math.round(performance.now()); });
document.documentElement.dataset.ready = document.querySelectorAll("th[tabindex]").length;
