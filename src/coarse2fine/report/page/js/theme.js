// Light and dark: as the system has it, until the button says otherwise.

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
