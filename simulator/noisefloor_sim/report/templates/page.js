"use strict";
(function () {
  const root = document.documentElement;
  const canvases = Array.from(document.querySelectorAll(".canvas"));
  const onPaper = { ink: "#1c2127", soft: "#59626c", paper: "#ffffff", grid: "#e6e9ed", line: "#d9dee4" };
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const finger = window.matchMedia("(pointer: coarse)").matches;

  function onScreen() {
    const style = getComputedStyle(root);
    const names = Object.keys(onPaper);
    return Object.fromEntries(names.map((name) => [name, style.getPropertyValue("--" + name).trim()]));
  }

  function theme(colours) {
    const change = {
      "font.color": colours.soft, "font.size": 13, "font.family": getComputedStyle(document.body).fontFamily,
      "hoverlabel.bgcolor": colours.paper, "hoverlabel.bordercolor": colours.soft,
      "hoverlabel.font.color": colours.ink, "hoverlabel.font.size": 13, "hoverlabel.align": "left",
    };
    for (const axis of ["xaxis", "yaxis"]) {
      change[axis + ".gridcolor"] = colours.grid;
      change[axis + ".zerolinecolor"] = colours.line;
      change[axis + ".linecolor"] = colours.line;
      change[axis + ".tickcolor"] = colours.line;
    }
    return change;
  }

  function nested(flat) {
    const tree = {};
    for (const [path, value] of Object.entries(flat)) {
      const steps = path.split(".");
      const leaf = steps.pop();
      let place = tree;
      for (const step of steps) place = place[step] = place[step] || {};
      place[leaf] = value;
    }
    return tree;
  }

  function merged(under, over) {
    const result = Object.assign({}, under);
    for (const [key, value] of Object.entries(over)) {
      const both = typeof value === "object" && value !== null && typeof result[key] === "object";
      result[key] = both ? merged(result[key], value) : value;
    }
    return result;
  }

  function draw(canvas) {
    const figure = JSON.parse(document.getElementById(canvas.id.replace("plot-", "figure-")).textContent);
    const layout = merged(figure.layout, nested(theme(onScreen())));
    layout.dragmode = finger ? false : "zoom"; // a finger scrolls the page
    return Plotly.newPlot(canvas, figure.data, layout, { displayModeBar: false, responsive: true }).then(() => {
      thin(canvas);
      canvas.on("plotly_afterplot", () => thin(canvas));
    });
  }

  function thin(canvas) { // of labels that cover each other the first is shown; the pointer shows all
    const shown = [];
    for (const text of canvas.querySelectorAll(".textpoint text")) {
      const a = text.getBoundingClientRect();
      const isCovered = shown.some((b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom);
      text.style.visibility = isCovered ? "hidden" : "";
      if (!isCovered) shown.push(a);
    }
  }

  function relayout(change) {
    for (const canvas of canvases) Plotly.relayout(canvas, change(canvas));
  }

  function toggle(button) {
    const canvas = document.getElementById("plot-" + button.dataset.plot);
    const shown = button.getAttribute("aria-pressed") !== "true";
    const curve = Number(button.dataset.curve);
    const traces = canvas.data.map((trace, place) => (trace.meta === curve ? place : -1)).filter((place) => place >= 0);
    button.setAttribute("aria-pressed", String(shown));
    Plotly.restyle(canvas, { visible: shown }, traces);
  }

  for (const button of document.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => toggle(button));
  }
  window.addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details.more")) fold.open = true;
    relayout(() => Object.assign(theme(onPaper), { autosize: false, width: 660, height: 280 }));
  });
  window.addEventListener("afterprint", () => {
    relayout(() => Object.assign(theme(onScreen()), { autosize: true, width: null, height: null }));
  });
  document.addEventListener("toggle", () => canvases.forEach((canvas) => Plotly.Plots.resize(canvas)), true);
  dark.addEventListener("change", () => relayout(() => theme(onScreen())));
  Promise.all(canvases.map(draw)).then(() => {
    root.dataset.drawn = String(canvases.length);
  });
})();
