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
    const place = byId("icicle");
    if (!figure) return place.closest("figure").remove();
    await draw("icicle", figure);
    this.drawn = new Set(figure.data[0].ids);
    // A click on what is shown already zooms out of it.
    place.on("plotly_icicleclick", ({ points, nextLevel }) => {
      this.choose(this.hierarchy.find(nextLevel ?? points[0].id), true);
    });
  }

  choose(node, isFromIcicle = false) {
    this.tree.show(node);
    this.details.show(node);
    // The details are long: a screen reader says what is chosen, and goes there if it wants.
    byId("chosen").textContent = `${isolated(this.hierarchy.label(node))} is shown`;
    if (this.drawn && !isFromIcicle) this.zoomTo(node);
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
    const shown = above.map((one) => this.hierarchy.id(one)).filter((id) => this.drawn.has(id));
    Plotly.restyle(byId("icicle"), { level: shown.at(-1) });
  }
}
