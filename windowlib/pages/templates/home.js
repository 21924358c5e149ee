"use strict";
(() => {
  const form = document.querySelector("form.choose"), table = document.querySelector("table.pipelines");
  const body = table.tBodies[0], rows = [...body.rows], search = form.querySelector("input[type=search]");
  const output = form.querySelector("output");

  function choose() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean), state = form.elements.state.value;
    let shown = 0;
    for (const row of rows) {
      const fits = (!state || row.dataset.state === state) && words.every((word) => row.dataset.words.includes(word));
      row.hidden = !fits;
      shown += fits;
    }
    output.textContent = shown === rows.length ? "" : `${shown} of ${rows.length} shown`;
  }

  const value = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();

  function compare(a, b, isNumber) {
    if (a === "" || b === "") return (a === "") - (b === "");
    return isNumber ? a - b : a.localeCompare(b, "en");
  }

  function sort(column, head) {
    const order = { none: "ascending", ascending: "descending", descending: "none" }[head.ariaSort ?? "none"];
    for (const other of table.tHead.rows[0].cells) other.ariaSort = "none";
    head.ariaSort = order;
    const isNumber = head.classList.contains("n"), sign = order === "descending" ? -1 : 1;
    const sorted = order === "none" ? rows : rows.toSorted((one, other) => {
      const [a, b] = [value(one, column), value(other, column)];
      return compare(a, b, isNumber) * (a === "" || b === "" ? 1 : sign);
    });
    body.append(...sorted);
  }

  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(column, head));
    head.append(button);
    head.ariaSort = "none";
  });

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", choose);
  document.addEventListener("keydown", (event) => {
    const links = [...body.rows].filter((row) => !row.hidden).map((row) => row.querySelector("a"));
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], place = links.indexOf(document.activeElement);
    if (event.key === "/" && document.activeElement !== search) {
      search.focus();
    } else if (event.key === "Escape" && document.activeElement === search) {
      search.value = "";
      choose();
    } else if (step && (place >= 0 || document.activeElement === search)) {
      links[place + step]?.focus();
    } else {
      return;
    }
    event.preventDefault();
  });

  form.hidden = false;
  choose();
})();
