"use strict";
(() => {
  // A plot shows the value of the bar below the pointer, or of the bar that the arrow keys choose.
  for (const svg of document.querySelectorAll("svg.bars")) {
    const columns = new Map(), width = svg.viewBox.baseVal.width, output = svg.closest(".shows").querySelector("output");
    for (const bar of svg.querySelectorAll("rect[data-x]")) {
      columns.set(bar.dataset.x, [...(columns.get(bar.dataset.x) ?? []), bar]);
      bar.dataset.value = bar.textContent.trim();
      bar.textContent = "";
    }
    const bars = [...columns.values()], before = output.textContent;
    if (!bars.length) continue;
    let shown = null;

    function show(place) {
      for (const bar of bars[shown] ?? []) bar.classList.remove("shown");
      shown = place;
      for (const bar of bars[place] ?? []) bar.classList.add("shown");
      output.textContent = bars[place]?.[0].dataset.value ?? before;
      svg.setAttribute("aria-valuenow", (place ?? bars.length - 1) + 1);
      svg.setAttribute("aria-valuetext", bars[place ?? bars.length - 1][0].dataset.value);
    }

    svg.setAttribute("role", "slider");
    svg.setAttribute("tabindex", "0");
    svg.setAttribute("aria-valuemin", 1);
    svg.setAttribute("aria-valuemax", bars.length);
    show(null);
    svg.addEventListener("pointermove", (event) => {
      const frame = svg.getBoundingClientRect(), x = ((event.clientX - frame.left) / frame.width) * width;
      const distances = bars.map(([bar]) => Math.abs(bar.x.baseVal.value + bar.width.baseVal.value / 2 - x));
      show(distances.indexOf(Math.min(...distances)));
    });
    svg.addEventListener("pointerleave", () => show(null));
    svg.addEventListener("focus", () => show(bars.length - 1));
    svg.addEventListener("blur", () => show(null));
    svg.addEventListener("keydown", (event) => {
      const last = bars.length - 1, place = shown ?? last;
      const next = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: last }[event.key];
      if (next === undefined) return;
      show(Math.min(Math.max(next, 0), last));
      event.preventDefault();
    });
  }
})();
