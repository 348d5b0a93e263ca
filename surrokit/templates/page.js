"use strict";
const number = (text) => {
  const found = parseFloat(text);
  return Number.isNaN(found) ? null : found;
};
const compare = (column, sign) => (one, other) => {
  const a = one.cells[column].textContent;
  const b = other.cells[column].textContent;
  if (column === 0) return sign * a.localeCompare(b, undefined, { numeric: true });
  const x = number(a);
  const y = number(b);
  if (x === null || y === null) return (x === null) - (y === null);
  return sign * (x - y);
};
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const way = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      heads.forEach((each) => each.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", way);
      const rows = [...table.tBodies[0].rows];
      rows.sort(compare(column, way === "ascending" ? 1 : -1));
      table.tBodies[0].append(...rows);
    });
  });
}
for (const field of document.querySelectorAll("input[data-table]")) {
  const rows = [...document.getElementById(field.dataset.table).tBodies[0].rows];
  const count = field.parentElement.querySelector("output");
  field.addEventListener("input", () => {
    const wanted = field.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = `${shown} of ${rows.length} rows`;
  });
}
