"use strict";
// Adds a filter to every column of a list of the class "filtered" with three rows or more. Long lists are several tables below each other, with
// the heads in the first. A row is shown if each of its cells holds what is typed into the filter of its column. A status line tells how many
// rows are shown.
for (const list of document.querySelectorAll(".filtered")) {
  const tables = Array.from(list.querySelectorAll("table"));
  const chunks = tables.map(table => ({box: table.closest(".chunk") || table, rows: Array.from(table.tBodies[0].rows)}));
  const total = chunks.reduce((sum, chunk) => sum + chunk.rows.length, 0);
  if (3 > total) continue;
  const heads = Array.from(tables[0].tHead.rows[0].cells).filter(head => !head.classList.contains("s"));
  const wanted = new Map();
  const status = document.createElement("p");
  status.className = "note";
  status.setAttribute("role", "status");
  list.insertBefore(status, list.firstChild);
  const words = new Map();
  const column = number => {
    if (!words.has(number)) {
      const cell = heads[number].cellIndex > number ? number + 1 : number; // the squares of all nights are one cell
      words.set(number, chunks.map(chunk => chunk.rows.map(row => row.cells[cell].textContent.toLowerCase())));
    }
    return words.get(number);
  };
  const apply = () => {
    const filters = Array.from(wanted, ([number, text]) => [column(number), text]);
    let shown = 0;
    chunks.forEach((chunk, i) => {
      let here = 0;
      chunk.rows.forEach((row, j) => {
        const fits = filters.every(([texts, text]) => texts[i][j].includes(text));
        if (row.hidden === fits) row.hidden = !fits;
        here += fits;
      });
      chunk.box.hidden = here ? false : i > 0;
      shown += here;
    });
    list.classList.toggle("few", wanted.size ? 1000 > shown : false);
    status.textContent = wanted.size ? `${shown} of ${total} rows` : "";
  };
  heads.forEach((head, number) => {
    const input = document.createElement("input");
    input.type = "search";
    input.setAttribute("aria-label", `Filter by ${head.textContent}`);
    input.addEventListener("input", () => {
      const text = input.value.trim().toLowerCase();
      text ? wanted.set(number, text) : wanted.delete(number);
      apply();
    });
    head.append(input);
  });
}
