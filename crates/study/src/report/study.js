"use strict";
// Legends hide and show; a pointer on a plot reads the values at the nearest place.
for (const figure of document.querySelectorAll("figure.plot")) {
  const svg = figure.querySelector("svg[role=img]:not(.swatch)");
  for (const entry of figure.querySelectorAll(".legend li")) {
    const toggle = () => {
      const series = svg.querySelector(`.series[data-slot="${entry.dataset.slot}"]`);
      const off = series.classList.toggle("off");
      entry.setAttribute("aria-pressed", String(!off));
    };
    entry.addEventListener("click", toggle);
    entry.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
    });
  }
  const points = [...svg.querySelectorAll(".point")];
  if (points.length === 0) continue;
  const box = figure.appendChild(document.createElement("div"));
  const cursor = svg.appendChild(document.createElementNS(svg.namespaceURI, "line"));
  const hide = () => { box.hidden = true; cursor.style.display = "none"; };
  box.className = "asked";
  cursor.setAttribute("class", "cursor");
  hide();
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("pointermove", (event) => {
    const frame = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / frame.width;
    const x = (event.clientX - frame.left) * scale;
    const shown = points.filter((point) => !point.parentNode.classList.contains("off"));
    if (shown.length === 0) return hide();
    const far = (point) => Math.abs(point.dataset.x - x);
    const near = shown.reduce((best, point) => (far(point) < far(best) ? point : best));
    const same = shown.filter((point) => point.dataset.x === near.dataset.x);
    box.textContent = [near.dataset.at, ...same.map((point) => point.dataset.value)].join("\n");
    cursor.setAttribute("x1", near.dataset.x);
    cursor.setAttribute("x2", near.dataset.x);
    cursor.setAttribute("y1", 14);
    cursor.setAttribute("y2", svg.viewBox.baseVal.height - 48);
    cursor.style.display = box.hidden = "";
    const outer = figure.getBoundingClientRect();
    const left = frame.left - outer.left + near.dataset.x / scale;
    box.style.left = (left + box.offsetWidth + 14 > outer.width ? left - box.offsetWidth - 10 : left + 10) + "px";
    box.style.top = frame.top - outer.top + 16 + "px";
  });
}
