// Tree, icicle and details, which show the same choice.
class Explorer {
  constructor(content) {
    this.hierarchy = new Hierarchy(content);
    this.details = new Details(byId("details"), content, this.hierarchy, (node) =>
      this.choose(node),
    );
    this.tree = new Tree(byId("tree"), this.hierarchy, (node) => this.choose(node));
    byId("icicle-out").addEventListener("click", () => this.choose(this.hierarchy.root));
    this.details.show(this.hierarchy.root);
  }

  async draw(figure) {
    const place = byId("icicle");
    await draw("icicle", figure);
    // A click on what is shown already zooms out of it.
    place.on("plotly_icicleclick", ({ points, nextLevel }) => {
      this.choose(this.hierarchy.find(nextLevel ?? points[0].id), true);
    });
    this.isDrawn = true;
  }

  choose(node, isFromIcicle = false) {
    this.tree.show(node);
    this.details.show(node);
    if (this.isDrawn && !isFromIcicle) this.zoomTo(node);
  }

  chooseClass(place) {
    this.choose(this.hierarchy.node(this.hierarchy.depth, place));
    byId("hierarchy").scrollIntoView();
  }

  // Classes have nothing below them: their cluster is shown.
  zoomTo(node) {
    const path = this.hierarchy.path(node);
    const shown = this.hierarchy.isClass(node) ? path.at(-2) : path.at(-1);
    Plotly.restyle(byId("icicle"), { level: this.hierarchy.id(shown) });
  }
}
