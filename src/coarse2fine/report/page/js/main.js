// Putting the page together: first what is read and explored, then figure after figure, so that
// the page can be used meanwhile.

document.documentElement.classList.add("has-js");

const idle = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

async function begin() {
  const content = JSON.parse(await unpacked("content"));
  if (content.examples) {
    document.documentElement.style.setProperty("--sheet", `url("${content.examples.sheet}")`);
  }
  const explorer = content.levels.length ? new Explorer(content) : null;
  new ClassTable(content, explorer && ((place) => explorer.chooseClass(place)));
  setUpTheme(() => redraws.forEach((redraw) => redraw()));
  performance.mark("readable");
  await idle();
  await loadPlotly();
  await explorer?.draw(content.figures.icicle);
  await drawOthers(content);
  performance.mark("drawn");
  document.documentElement.dataset.drawn = "yes";
}

async function drawOthers(content) {
  const { curves, levels, gains, answers } = content.figures;
  const figures = {
    "curves-plot": curves,
    "levels-plot": levels,
    "gains-plot": gains,
    "answers-plot": answers,
  };
  for (const [id, figure] of Object.entries(figures)) {
    await idle();
    if (figure) await draw(id, figure);
    else byId(id)?.closest("figure").remove();
  }
  if (!content.confusion) return;
  await idle();
  const confusion = new Confusion(content);
  await confusion.draw();
  addConfusionControls(confusion, content.shown);
}

// What the page carries: gzipped text in base64.
async function unpacked(id) {
  if (!globalThis.DecompressionStream) throw new Error("this browser is too old, of before 2023");
  const packed = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(packed.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = packed.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

async function loadPlotly() {
  const script = document.createElement("script");
  script.textContent = await unpacked("plotly");
  document.head.append(script);
}

// Tree, icicle and details, which show the same choice.
class Explorer {
  constructor(content) {
    this.hierarchy = new Hierarchy(content);
    this.details = new Details(byId("details"), content, this.hierarchy, (node) =>
      this.chooseAndRead(node),
    );
    this.tree = new Tree(byId("tree"), this.hierarchy, (node) => this.choose(node));
    byId("icicle-out").addEventListener("click", () => this.choose(this.hierarchy.root));
    this.details.show(this.hierarchy.root);
  }

  async draw(figure) {
    if (!figure) return byId("icicle").closest("figure").remove();
    const choose = (id) => this.choose(this.hierarchy.find(id), true);
    const icicle = new Icicle(figure, this.hierarchy, choose);
    await icicle.draw();
    this.icicle = icicle;
  }

  choose(node, isFromIcicle = false) {
    this.tree.show(node);
    this.details.show(node);
    // The details are long: a screen reader says what is chosen, and goes there if it wants.
    byId("chosen").textContent = `${isolated(this.hierarchy.label(node))} is shown`;
    if (this.icicle && !isFromIcicle) this.zoomTo(node);
  }

  // The button that was pressed may be gone or far away: go on from the details.
  chooseAndRead(node) {
    this.choose(node);
    byId("details").focus();
  }

  chooseClass(place) {
    this.chooseAndRead(this.hierarchy.node(this.hierarchy.depth, place));
  }

  // Classes have nothing below them, and the finest levels may be left out: the nearest cluster
  // above is shown.
  zoomTo(node) {
    const above = this.hierarchy.path(node).filter((one) => !this.hierarchy.isClass(one));
    const { ids } = this.icicle;
    const shown = above.map((one) => this.hierarchy.id(one)).filter((id) => ids.has(id));
    this.icicle.zoomTo(shown.at(-1));
  }
}

begin().catch((error) => {
  byId("failure").querySelector("span").textContent = `${error.message}.`;
  byId("failure").hidden = false;
  throw error;
});
