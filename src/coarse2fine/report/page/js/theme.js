// Light and dark: as the system has it, until the button says otherwise; and drawing plotly's
// figures in the page's colours.

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : systemIsDark.matches;
};

// A colour of the style sheet as plotly takes it.
function colour(name) {
  const probe = element("span", { style: `color: var(${name})` });
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function themeColours() {
  const [text, line] = [colour("--text"), colour("--line")];
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, tickcolor: line };
  return { text, line, axis };
}

function setUpTheme(redraw) {
  const button = byId("theme");
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Use ${isDark() ? "light" : "dark"} colours`);
  };
  const changed = () => {
    show();
    redraw();
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    changed();
  });
  systemIsDark.addEventListener("change", changed);
  printInLight(redraw);
  show();
}

// Figures have the colours they were drawn with, which dark ones would have on white paper.
function printInLight(redraw) {
  const { dataset } = document.documentElement;
  let chosen;
  addEventListener("beforeprint", () => {
    chosen = dataset.theme;
    dataset.theme = "light";
    redraw();
  });
  addEventListener("afterprint", () => {
    if (chosen) dataset.theme = chosen;
    else delete dataset.theme;
    redraw();
  });
}

// ------------------------------------------------------------------------------ figures

const CONFIG = { displayModeBar: false, displaylogo: false, responsive: true };
const redraws = []; // called when the colours change

// What of a layout depends on light or dark.
function themed(layout) {
  const { text, axis } = themeColours();
  const { fontFamily: family } = getComputedStyle(document.body);
  const colours = { font: { size: 13, ...layout.font, family, color: text } };
  for (const name of Object.keys(layout)) {
    if (/^[xy]axis\d*$/.test(name)) colours[name] = { ...layout[name], ...axis };
  }
  if (layout.annotations) {
    colours.annotations = layout.annotations.map((note) => ({
      ...note,
      font: { ...note.font, color: text },
    }));
  }
  return {
    ...layout,
    ...colours,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    hoverlabel: { ...layout.hoverlabel, align: "left" },
  };
}

function draw(id, figure) {
  const place = byId(id);
  redraws.push(() => Plotly.relayout(place, themed(place.layout)));
  return Plotly.newPlot(place, figure.data, themed(figure.layout), CONFIG);
}
