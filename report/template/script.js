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
// A streamed clip: while it plays, a line goes through the drawings, and what stood on the screen is written above them.
for (const clip of document.querySelectorAll(".timelines")) {
  const audio = clip.querySelector("audio");
  if (!audio) continue;
  const figures = [...clip.querySelectorAll("figure.timeline")].map((figure) => ({
    line: figure.querySelector(".cursor"),
    caption: figure.querySelector(".caption"),
    events: JSON.parse(figure.dataset.events),
    x: (t) => Number(figure.dataset.left) + (t / Number(figure.dataset.end)) * (figure.dataset.right - figure.dataset.left),
    end: Number(figure.dataset.end),
  }));
  let ended = 0;
  const draw = () => {
    const now = audio.ended ? audio.duration + (performance.now() - ended) / 1000 : audio.currentTime;
    for (const { line, caption, events, x, end } of figures) {
      for (const side of ["x1", "x2"]) line.setAttribute(side, x(Math.min(now, end)));
      const [, final, open] = events.findLast(([time]) => time <= now) ?? [0, "", ""];
      const changing = document.createElement("i");
      changing.textContent = open;
      caption.replaceChildren(final + " ", changing);
    }
    // words come after the audio has ended too
    if (!audio.paused || (audio.ended && now < Math.max(...figures.map((figure) => figure.end)))) requestAnimationFrame(draw);
  };
  audio.addEventListener("ended", () => { ended = performance.now(); draw(); });
  audio.addEventListener("play", draw);
  audio.addEventListener("seeked", draw);
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
