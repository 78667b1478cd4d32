// The leaderboard in the browser: tables sort at a click on a head, filters choose rows and categories, and models are
// compared from their bootstrap replicates as `srb compare` does (speech_robust_bench.push.leaderboard.board.compare).
"use strict";
(() => {
  // --- sorting ---
  const key = (row, column) => {
    const cell = row.cells[column];
    const given = cell.dataset.sort;
    if (given === "") return Infinity;
    const text = given ?? cell.textContent.trim();
    const number = Number(text);
    return text !== "" && Number.isFinite(number) ? number : text;
  };
  const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
  const sort = (head, down) => {
    const body = head.closest("table").tBodies[0];
    const rows = [...body.rows].map((row) => [key(row, head.cellIndex), row]);
    const last = ([value, row]) => value === Infinity || row.classList.contains("unranked");
    const known = rows.filter((row) => !last(row)).sort(([a], [b]) => (down ? order(b, a) : order(a, b)));
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...[...known, ...rows.filter(last)].map(([, row]) => row));
  };
  const clicked = (event) => event.target.closest?.(".srb table.sortable thead th[tabindex]");
  let complete = async () => {}; // the rows of a ranking's other pages, fetched when they are first needed
  const turn = async (head) => {
    if (head.closest("table.ranking")) await complete();
    sort(head, head.getAttribute("aria-sort") === "ascending");
  };
  document.addEventListener("click", (event) => { const head = clicked(event); if (head) turn(head); });
  document.addEventListener("keydown", (event) => {
    const head = clicked(event);
    if (head && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); turn(head); }
  });

  // --- filters of the ranking ---
  const filters = document.querySelector("form.filters");
  if (filters) {
    const table = document.querySelector("table.ranking");
    let rows = [...(table?.tBodies[0].rows ?? [])];
    const names = (table?.dataset.categories ?? "").split(" ");
    const shown = () => rows.map((row) => [row.cells[0].innerHTML, row.cells[2].innerHTML, row.cells[2].dataset.sort, row.cells[2].title]);
    let first = shown();
    const pages = document.querySelector("nav.pages");
    const fetchRows = async (address) => {
      const other = new DOMParser().parseFromString(await (await fetch(address)).text(), "text/html");
      return [...other.querySelectorAll("table.ranking tbody tr")].map((row) => document.adoptNode(row));
    };
    let fetched = null;
    complete = () => (fetched ??= pages === null ? Promise.resolve() : (async () => {
      try {
        const parts = await Promise.all([...pages.querySelectorAll("a")].map((link) => (link.ariaCurrent ? rows : fetchRows(link.href))));
        rows = parts.flat();
        first = shown();
        table.tBodies[0].append(...rows);
        pages.hidden = true;
      } catch { fetched = null; } // offline: this page alone
    })());
    const average = (row, chosen) => {
      const values = row.dataset.categories.split(" ");
      const picked = chosen.map((name) => Number(values[names.indexOf(name)]));
      return picked.every(Number.isFinite) ? picked.reduce((a, b) => a + b, 0) / picked.length : null;
    };
    const apply = async () => {
      await complete();
      const text = filters.elements.find.value.trim().toLowerCase();
      const [low, high] = filters.elements.size.value.split(" ").map((end) => (end === "inf" ? Infinity : Number(end)));
      const chosen = [...filters.querySelectorAll("input[name=category]:checked")].map((box) => box.value);
      rows.forEach((row, i) => {
        const size = row.dataset.size === "" ? NaN : Number(row.dataset.size);
        row.hidden = !row.dataset.name.includes(text) || (filters.elements.size.value !== "" && !(size >= low && size < high));
        const cell = row.cells[2];
        [row.cells[0].innerHTML, cell.innerHTML, cell.dataset.sort, cell.title] = first[i];
        if (chosen.length) {
          const mean = average(row, chosen);
          cell.textContent = mean === null ? "–" : mean.toFixed(1);
          cell.dataset.sort = mean === null ? "" : String(mean);
          cell.title = "";
        }
      });
      if (!chosen.length) table?.tBodies[0].append(...rows);
      else {
        sort(table.tHead.rows[0].cells[2], false);
        let place = 0;
        for (const row of table.tBodies[0].rows) {
          const ranked = !row.classList.contains("unranked") && row.cells[2].dataset.sort !== "";
          row.cells[0].textContent = ranked ? String(++place) : "–";
        }
      }
    };
    filters.hidden = false;
    filters.addEventListener("input", apply);
    filters.addEventListener("submit", (event) => event.preventDefault());
  }

  // --- comparisons ---
  // Student's t: with u = atan(t / sqrt(f)), the probability of |T| < t is the share of cos(u)^(f - 1) up to u.
  const area = (freedom, end) => {
    let sum = 0;
    for (let k = 0; k < 2000; k++) sum += Math.cos((end * (k + 0.5)) / 2000) ** (freedom - 1);
    return (sum * end) / 2000;
  };
  const outside = (t, freedom) => {
    const far = Math.min(Math.PI / 2, 12 / Math.sqrt(freedom)); // beyond is nothing
    return Math.max(0, 1 - area(freedom, Math.min(far, Math.atan(t / Math.sqrt(freedom)))) / area(freedom, far));
  };
  const student = (freedom) => { // what |T| exceeds in 5 of 100 cases
    let [low, high] = [0, 13];
    for (let k = 0; k < 40; k++) { const t = (low + high) / 2; if (outside(t, freedom) > 0.05) low = t; else high = t; }
    return low;
  };
  const studentTest = (difference, draws, units) => {
    const freedom = Math.max(units - 1, 1), mean = draws.reduce((sum, d) => sum + d, 0) / draws.length;
    const error = Math.sqrt((draws.reduce((sum, d) => sum + (d - mean) ** 2, 0) / draws.length) * (units / freedom));
    const half = student(freedom) * error, p = error ? outside(Math.abs(difference) / error, freedom) : 1;
    return { low: difference - half, high: difference + half, p: Math.max(p, Math.min(1, 2 ** (1 - Math.min(units, 1000)))) };
  };
  const holm = (values) => {
    const places = values.map((_, i) => i).sort((a, b) => values[a] - values[b]);
    let highest = 0;
    const adjusted = [];
    places.forEach((i, rank) => { highest = Math.max(highest, Math.min(1, (values.length - rank) * values[i])); adjusted[i] = highest; });
    return adjusted;
  };
  const differences = (models, language) => {
    const rows = [];
    models.forEach((a, i) => models.slice(i + 1).forEach((b) => {
      for (const name of Object.keys(a.rows).filter((row) => row.startsWith(`${language}/`) && row in b.rows).sort()) {
        const [one, two] = [a.rows[name], b.rows[name]];
        const draws = one.draws.map((value, k) => (value - two.draws[k]) / 100);
        if (one.of !== two.of || one.units !== two.units) continue;
        const [, row, measure] = name.split("/");
        rows.push({ a: a.name, b: b.name, row, label: one.label, measure, valueA: one.value, valueB: two.value,
          difference: one.value - two.value, units: one.units, of: one.of, why: one.why || two.why,
          ...studentTest(one.value - two.value, draws, one.units) });
      }
    }));
    holm(rows.map((row) => row.p)).forEach((p, i) => { rows[i].p = p; });
    return rows;
  };
  const element = (name, text, attributes = {}) => {
    const node = document.createElement(name);
    if (text !== null) node.textContent = text;
    for (const [attribute, value] of Object.entries(attributes)) node.setAttribute(attribute, value);
    return node;
  };
  const table = (rows) => {
    const head = element("tr", null), body = element("tbody", null);
    for (const text of ["Row", "A", "B", "Measure", "score A", "score B", "A − B", "95 % interval", "n", "p (Holm)", "More robust"]) head.append(element("th", text, { scope: "col", tabindex: 0 }));
    const averageFirst = [...rows].sort((x, y) => (x.row !== "overall") - (y.row !== "overall"));
    for (const r of averageFirst) {
      const line = element("tr", null);
      const better = r.why ? `no verdict: ${r.why}` : r.p > 0.05 || r.difference === 0 ? "cannot be told apart" : r.difference < 0 ? r.a : r.b;
      line.append(element("th", r.label, { scope: "row" }), element("td", r.a), element("td", r.b), element("td", r.measure.toUpperCase()));
      for (const value of [r.valueA, r.valueB, r.difference]) line.append(element("td", value.toFixed(1), { "data-sort": value }));
      const signed = (value) => (value < 0 ? "" : "+") + value.toFixed(1);
      line.append(element("td", `${signed(r.low)} to ${signed(r.high)}`, { "data-sort": r.low }), element("td", `${r.units} ${r.of}`, { "data-sort": r.units }), element("td", r.p.toFixed(3), { "data-sort": r.p }), element("td", better));
      body.append(line);
    }
    const whole = element("table", null, { class: "sortable pairs" }), top = element("thead", null);
    top.append(head);
    whole.append(top, body);
    const scroll = element("div", null, { class: "scroll" });
    scroll.append(whole);
    return scroll;
  };
  const form = document.querySelector("form.compare");
  if (form) {
    const place = document.querySelector("#pairs");
    const show = async () => {
      const chosen = [...form.elements.models.selectedOptions].slice(0, 6).map((option) => option.value);
      if (chosen.length < 2) { place.replaceChildren(element("p", "Choose two or more models.", { class: "empty" })); return; }
      try {
        const models = await Promise.all(chosen.map(async (name) => (await fetch(`data/${encodeURIComponent(name)}.json`)).json()));
        const rows = differences(models, form.elements.language.value);
        const note = `Paired on the same speakers or clips, by Student's t; p-values corrected for ${rows.length} comparisons. Lower is more robust.`;
        place.replaceChildren(...(rows.length ? [table(rows), element("p", note, { class: "lead" })] : [element("p", "These models have no row in common in this language.", { class: "empty" })]));
      } catch { place.replaceChildren(element("p", "The models' data could not be loaded.", { class: "empty" })); }
    };
    form.addEventListener("input", show);
    form.addEventListener("submit", (event) => event.preventDefault());
  }
})();
