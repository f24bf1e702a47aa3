// The hierarchy as nested blocks, a column for each level. Every block that is high enough bears
// as much of its name as is wide enough.

const NARROW_COLUMNS = 3; // of a figure as narrow as a phone: all, the coarsest level, the next
const BESIDE = 12; // pixels that a name leaves free

class Icicle {
  /**
   * @param {any} figure
   * @param {Hierarchy} hierarchy
   * @param {(id: string) => void} choose
   */
  constructor(figure, hierarchy, choose) {
    this.place = byId("icicle");
    this.figure = figure;
    this.choose = choose;
    const [{ ids, parents, maxdepth }] = figure.data;
    this.names = ids.map((id) => hierarchy.label(hierarchy.find(id)));
    this.ids = new Set(ids);
    this.most = maxdepth;
    this.level = ROOT;
    this.heights = heightsOf(ids, parents);
    this.font = figure.layout.uniformtext.minsize;
  }

  async draw() {
    await draw("icicle", this.figure);
    await this.show();
    // A click on what is shown already zooms out of it.
    this.place.on("plotly_icicleclick", ({ points, nextLevel }) => {
      const id = nextLevel ?? points[0].id;
      this.zoomTo(id);
      this.choose(id);
      return false; // which keeps plotly from zooming, with names that fit no more
    });
    new ResizeObserver(() => this.resized()).observe(this.place);
  }

  zoomTo(id) {
    this.level = id;
    return this.show();
  }

  resized() {
    if (this.place.clientWidth && this.place.clientWidth !== this.width) this.show();
  }

  show() {
    this.width = this.place.clientWidth;
    const most = this.width < NARROW ? Math.min(NARROW_COLUMNS, this.most) : this.most;
    const columns = Math.min(most, this.heights.get(this.level) + 1);
    const { l, r } = this.figure.layout.margin;
    const text = this.fitted((this.width - l - r) / columns - BESIDE);
    const shown = { level: this.level, maxdepth: most, text: [text], textinfo: "text" };
    return Plotly.restyle(this.place, shown);
  }

  // The names, each cut to a width.
  fitted(width) {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `${this.font}px ${getComputedStyle(document.body).fontFamily}`;
    const has = (text) => pen.measureText(text).width <= width;
    return this.names.map((name) => escaped(has(name) ? name : cut(name, has)));
  }
}

// How many levels there are below each block; a parent comes before its children.
function heightsOf(ids, parents) {
  const heights = new Map(ids.map((id) => [id, 0]));
  for (let at = ids.length - 1; at > 0; at -= 1) {
    const above = parents[at];
    heights.set(above, Math.max(heights.get(above), heights.get(ids[at]) + 1));
  }
  return heights;
}

// The longest beginning of a name that fits.
function cut(name, fits) {
  const letters = [...name];
  let [low, high] = [1, letters.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(`${letters.slice(0, middle).join("")}…`)) low = middle;
    else high = middle - 1;
  }
  return `${letters.slice(0, low).join("").replace(/[\s,…]+$/, "")}…`;
}
