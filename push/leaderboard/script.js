// Tables sort at a click on a head. The listeners are the document's, so they hold for what is drawn later too.
"use strict";
(() => {
  const key = (row, column) => {
    const cell = row.cells[column];
    const given = cell.dataset.sort;
    if (given === "") return Infinity;
    const text = given ?? cell.textContent.trim();
    const number = Number(text);
    return text !== "" && Number.isFinite(number) ? number : text;
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
  const sort = (head) => {
    const down = head.getAttribute("aria-sort") === "ascending";
    const body = head.closest("table").tBodies[0];
    const rows = [...body.rows].map((row) => [key(row, head.cellIndex), row]);
    const known = rows.filter(([value]) => value !== Infinity).sort(([a], [b]) => (down ? compare(b, a) : compare(a, b)));
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...[...known, ...rows.filter(([value]) => value === Infinity)].map(([, row]) => row));
  };
  document.addEventListener("click", (event) => {
    const head = event.target.closest?.(".srb table.sortable thead th[tabindex]");
    if (head) sort(head);
  });
  document.addEventListener("keydown", (event) => {
    const head = event.target.closest?.(".srb table.sortable thead th[tabindex]");
    if (head && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); sort(head); }
  });
})();
