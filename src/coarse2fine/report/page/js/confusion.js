// The figure of the confusion matrix. What it shows follows from which matrix is chosen, which
// part of it is seen, and the colours of the page; on any change of these it is drawn anew.

/** @typedef {[number, number]} Span From and to, in cells. */

const MOST_TICKS = 40;
const TICK = 18; // pixels that a name on an axis takes
const [LONG, SHORT, NARROW] = [18, 8, 480]; // letters of a name, and of one where there is no room
const MOST_CELLS = 600; // a side; more would be smaller than a pixel
const LEAST_OUTLINE = 6; // pixels
// One hue from the background up, and better and worse as everywhere.
const SCALES = {
  light: { share: ["#ffffff", "#4a90c8", "#08306b"], points: ["#007a59", "#ffffff", "#d55e00"] },
  dark: { share: ["#1a2027", "#3f8fd0", "#d6ecff"], points: ["#2fc396", "#1a2027", "#f0803c"] },
};

class Confusion {
  constructor(content) {
    const { level } = content.confusion;
    this.names = level === null ? content.classes.names : clusterNames(content, level);
    this.size = this.names.length;
    this.samples = content.confusion.samples;
    this.matrices = new Matrices(content.confusion, this.size);
    this.which = content.confusion.before ? "difference" : "after";
    this.outlines = outlines(content.levels.slice(0, level ?? undefined), content.levels[level]);
    this.place = byId("confusion-plot");
    this.showAll();
  }

  async draw() {
    await this.show();
    redraws.push(() => this.show());
    this.place.on("plotly_relayout", () => this.moved());
    this.place.on("plotly_hover", (event) => this.hover(event));
    this.place.on("plotly_unhover", () => (byId("hint").hidden = true));
  }

  show() {
    const data = [this.heatmap(), ...this.lines()];
    return Plotly.react(this.place, data, themed(this.layout()), CONFIG);
  }

  choose(which) {
    this.which = which;
    return this.show();
  }

  // --------------------------------------------------------------------- which part is seen

  /**
   * See a part of the matrix, moved so that nothing beyond it is seen.
   *
   * @param {Span} x
   * @param {Span} y
   */
  see(x, y) {
    this.view = { x: this.within(x), y: this.within(y) };
    return this.place.layout ? this.show() : null;
  }

  /** @type {(span: Span) => Span} */
  within([low, high]) {
    const span = Math.min(high - low, this.size);
    const start = Math.max(-0.5, Math.min(low, this.size - 0.5 - span));
    return [start, start + span];
  }

  showAll() {
    return this.see([-0.5, this.size - 0.5], [-0.5, this.size - 0.5]);
  }

  // Somebody has dragged the figure.
  moved() {
    const { xaxis, yaxis } = this.place.layout;
    const [bottom, top] = yaxis.range;
    return this.see(xaxis.range, [top, bottom]);
  }

  zoom(factor, centre = null) {
    const { x, y } = this.view;
    if (factor < 1 && x[1] - x[0] < 4) return null;
    const [middleX, middleY] = centre ?? [(x[0] + x[1]) / 2, (y[0] + y[1]) / 2];
    /** @type {(span: Span, at: number) => Span} */
    const scaled = ([low, high], at) => [at + (low - at) * factor, at + (high - at) * factor];
    return this.see(scaled(x, middleX), scaled(y, middleY));
  }

  // Move by shares of what is seen.
  pan(right, down) {
    /** @type {(span: Span, by: number) => Span} */
    const moved = ([low, high], by) => [low + by * (high - low), high + by * (high - low)];
    return this.see(moved(this.view.x, right), moved(this.view.y, down));
  }

  // See and mark a cell.
  mark(row, column) {
    const half = Math.min(this.size / 2, 12);
    this.marked = [row, column];
    return this.see([column - half, column + half], [row - half, row + half]);
  }

  // --------------------------------------------------------------------------- the figure

  // How many cells a side are drawn as one.
  step() {
    const { x, y } = this.view;
    return Math.max(1, Math.ceil(Math.max(x[1] - x[0], y[1] - y[0]) / MOST_CELLS));
  }

  heatmap() {
    const isDifference = this.which === "difference";
    const top = this.matrices.of(this.which).top;
    const [low, middle, high] =
      SCALES[isDark() ? "dark" : "light"][isDifference ? "points" : "share"];
    const title = { text: isDifference ? "points for the worse" : "percent", side: "right" };
    const bar = {
      orientation: "h",
      yref: "container",
      y: 0,
      yanchor: "bottom",
      thickness: 10,
      len: 0.6,
    };
    return {
      type: "heatmap",
      ...this.matrices.cells(this.which, this.step()),
      zmin: isDifference ? -top : 0,
      zmax: top,
      colorscale: [
        [0, low],
        [0.5, middle],
        [1, high],
      ],
      colorbar: { ...bar, outlinewidth: 0, title },
      hoverinfo: "none",
    };
  }

  // The clusters, as far as they are large enough to be told apart.
  lines() {
    const pixels = this.place.clientWidth / (this.view.x[1] - this.view.x[0]);
    return this.outlines.map(({ x, y, count }, level) => ({
      type: "scatter",
      mode: "lines",
      x,
      y,
      line: { width: level ? 0.8 : 1.8, color: colour("--text") },
      visible: (this.size / count) * pixels >= LEAST_OUTLINE,
      hoverinfo: "skip",
    }));
  }

  layout() {
    const axis = {
      showgrid: false,
      zeroline: false,
      constrain: "domain",
      ticklen: 3,
      automargin: true,
    };
    const { x, y } = this.view;
    return {
      margin: { l: 10, r: 10, t: 10, b: 70 },
      xaxis: {
        ...axis,
        ...this.ticks(x),
        range: x,
        title: { text: "predicted" },
        constraintoward: "left",
      },
      yaxis: {
        ...axis,
        ...this.ticks(y),
        range: [...y].reverse(),
        title: { text: "true" },
        scaleanchor: "x",
      },
      dragmode: "pan",
      showlegend: false,
      shapes: this.marked ? [this.frame(...this.marked)] : [],
    };
  }

  frame(row, column) {
    const cell = { x0: column - 0.5, x1: column + 0.5, y0: row - 0.5, y1: row + 0.5 };
    return { type: "rect", ...cell, line: { color: colour("--accent"), width: 3 } };
  }

  // Names on an axis, as soon as few enough are seen.
  ticks([low, high]) {
    const [first, last] = [Math.max(0, Math.ceil(low)), Math.min(this.size - 1, Math.floor(high))];
    const { clientWidth } = this.place;
    const letters = clientWidth < NARROW ? SHORT : LONG;
    const room = clientWidth - letters * 8; // the names beside the matrix take the rest
    const most = Math.min(MOST_TICKS, Math.floor(room / TICK));
    if (last - first >= most) return { showticklabels: false };
    const tickvals = Array.from({ length: last - first + 1 }, (_, step) => first + step);
    const ticktext = tickvals.map((place) => tickText(this.names[place], letters));
    return { tickmode: "array", ticks: "outside", tickvals, ticktext };
  }

  // ------------------------------------------------------------------------ what it tells

  hover({ points, event }) {
    const point = points.find(({ curveNumber }) => curveNumber === 0);
    if (!point) return;
    const hint = byId("hint");
    hint.textContent = this.sentence(
      ...this.matrices.seen(this.which, point.y, point.x, this.step()),
    );
    hint.hidden = false;
    const left = Math.min(event.clientX + 14, innerWidth - hint.offsetWidth - 8);
    hint.style.left = `${Math.max(8, left)}px`;
    hint.style.top = `${Math.min(event.clientY + 14, innerHeight - hint.offsetHeight - 8)}px`;
  }

  sentence(truth, found) {
    if (!this.samples[truth]) return `${isolated(this.names[truth])} has no test samples`;
    const how =
      truth === found ? "rightly predicted" : `predicted as ${isolated(this.names[found])}`;
    const shares = ["before", "after"].filter((which) => this.matrices.kinds.includes(which));
    const told = shares.map(
      (which) => `${this.matrices.at(which, truth, found).toFixed(1)} % ${which}`,
    );
    const share = told.length > 1 ? told.join(", ") : told[0].replace(" after", "");
    return `${isolated(this.names[truth])} ${how}: ${share}`;
  }
}

// The two coarsest levels, each as one line around its clusters. Where the matrix has a row for
// each cluster of a level instead of each class, edges count those.
function outlines(levels, unit) {
  const numbers = unit && new Map(unit.edges.map((edge, number) => [edge, number]));
  return levels.slice(0, 2).map(({ edges }) => {
    const [x, y] = [[], []];
    const places = numbers ? edges.map((edge) => numbers.get(edge)) : edges;
    for (let at = 0; at + 1 < places.length; at += 1) {
      const [low, high] = [places[at] - 0.5, places[at + 1] - 0.5];
      x.push(low, high, high, low, low, null);
      y.push(low, low, high, high, low, null);
    }
    return { x, y, count: edges.length - 1 };
  });
}

function clusterNames(content, level) {
  const hierarchy = new Hierarchy(content);
  const count = hierarchy.edges[level].length - 1;
  const name = (number) => `${number + 1}: ${hierarchy.label(hierarchy.node(level, number))}`;
  return Array.from({ length: count }, (_, number) => name(number));
}

// A label must leave room for the matrix.
function tickText(name, most) {
  const letters = [...name];
  const short = letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : name;
  return escaped(short);
}
