"use strict";
// Adds a filter to every column of a table of the class "filtered" and of three rows or more: a row is shown if each of its cells holds what is
// typed into the filter of its column. A status line tells how many rows are shown.
for (const table of document.querySelectorAll("table.filtered")) {
  const rows = Array.from(table.tBodies[0].rows);
  if (3 > rows.length) continue;
  const heads = Array.from(table.tHead.rows[0].cells).filter(head => !head.classList.contains("s"));
  const wanted = new Map();
  const status = document.createElement("p");
  status.className = "note";
  status.setAttribute("role", "status");
  table.parentNode.insertBefore(status, table);
  let words = null;
  const apply = () => {
    words = words || rows.map(row => heads.map(head => row.cells[head.cellIndex].textContent.toLowerCase()));
    let shown = 0;
    rows.forEach((row, i) => {
      const fits = Array.from(wanted).every(([column, text]) => words[i][column].includes(text));
      row.hidden = !fits;
      shown += fits;
    });
    status.textContent = wanted.size ? `${shown} of ${rows.length} rows` : "";
  };
  heads.forEach((head, column) => {
    const input = document.createElement("input");
    input.type = "search";
    input.setAttribute("aria-label", `Filter by ${head.textContent}`);
    input.addEventListener("input", () => {
      const text = input.value.trim().toLowerCase();
      text ? wanted.set(column, text) : wanted.delete(column);
      apply();
    });
    head.append(input);
  });
}
