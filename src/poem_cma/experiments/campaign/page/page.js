"use strict";
(function () {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const boxes = Array.from(document.querySelectorAll(".chart"));
  const figures = boxes.map((box) => JSON.parse(box.querySelector("script").textContent));

  // The colours of the page, laid over a figure that brings none.
  function themed(layout) {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const copy = JSON.parse(JSON.stringify(layout));
    const axis = { gridcolor: colour("--line"), linecolor: colour("--soft"), zeroline: false };
    Object.assign(copy, { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)" });
    copy.font = { color: colour("--ink"), size: 12, family: getComputedStyle(document.body).fontFamily };
    copy.modebar = { bgcolor: "rgba(0,0,0,0)", color: colour("--soft"), activecolor: colour("--link") };
    copy.hoverlabel = { bgcolor: colour("--box"), bordercolor: colour("--line"), font: { color: colour("--ink") } };
    Object.assign(copy.xaxis, axis);
    Object.assign(copy.yaxis, axis);
    return copy;
  }

  function draw() {
    return Promise.all(boxes.map((box, i) =>
      Plotly.react(box, figures[i].data, themed(figures[i].layout), { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] })));
  }

  function copyText(text) {
    if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    return Promise.resolve();
  }

  // Cells with tabs between them: a spreadsheet takes them as they are.
  function asText(table) {
    return Array.from(table.rows, (row) => Array.from(row.cells, (cell) => cell.textContent.trim()).join("\t")).join("\n");
  }

  document.querySelectorAll(".copy").forEach((button) => {
    button.addEventListener("click", () => {
      copyText(asText(button.parentElement.querySelector("table"))).then(() => {
        button.textContent = "copied";
        setTimeout(() => { button.textContent = "copy"; }, 1500);
      });
    });
  });

  dark.addEventListener("change", draw);
  draw().then(() => { document.body.dataset.charts = String(boxes.length); });
})();
