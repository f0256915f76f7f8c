const table = document.querySelector("#scores table");
const rows = [...table.tBodies[0].rows];
const form = document.querySelector(".filters");
const figures = [...document.querySelectorAll("#cost figure")];
const count = document.getElementById("count");

function filter() {
  const asked = Object.fromEntries(new FormData(form));
  const words = asked.method.trim().toLowerCase();
  delete asked.method;
  const fits = (element) => Object.entries(asked).every(([name, value]) =>
    value === "" || !(name in element.dataset) || element.dataset[name] === value);
  for (const row of rows) row.hidden = !(fits(row) && row.dataset.method.toLowerCase().includes(words));
  for (const figure of figures) figure.hidden = !fits(figure);
  count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} scores`;
}

function value(row, column) {
  const text = row.cells[column].dataset.value;
  return text === "" ? null : isNaN(text) ? text : Number(text);
}

function sort(head, column) {
  const up = head.getAttribute("aria-sort") !== "ascending";
  for (const other of head.parentElement.cells) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const order = rows.map((row) => [value(row, column), row]).sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    const less = typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b)) : a - b;
    return up ? less : -less;
  });
  table.tBodies[0].append(...order.map(([, row]) => row));
}

form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
[...table.tHead.rows[0].cells].forEach((head, column) =>
  head.querySelector("button").addEventListener("click", () => sort(head, column)));
