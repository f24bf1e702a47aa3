// What became of the chosen cluster or class.

const MOST_CLASSES = 60;
const MOST_IMAGES = 24;

class Details {
  /**
   * @param {HTMLElement} place
   * @param {any} content
   * @param {Hierarchy} hierarchy
   * @param {(node: HierarchyNode) => void} choose
   */
  constructor(place, content, hierarchy, choose) {
    this.place = place;
    this.content = content;
    this.hierarchy = hierarchy;
    this.choose = choose;
  }

  show(node) {
    const parts = this.hierarchy.isClass(node) ? this.ofClass(node) : this.ofCluster(node);
    this.place.replaceChildren(...parts.filter((part) => part !== null));
  }

  // What is counted together, where there are several seeds.
  tested(count) {
    const { length } = this.content.shown.seeds;
    const seeds = length > 1 ? ` over ${length} seeds` : "";
    return counted(count, "test sample", "test samples") + seeds;
  }

  ofClass({ start }) {
    const { names, samples, before, after, taken_for } = this.content.classes;
    const measured = ["right class", before?.[start] ?? null, after[start]];
    return [
      element("h3", {}, named(names[start])),
      element("p", { class: "lead" }, this.tested(samples[start])),
      this.accuracies([measured]),
      this.images([start]),
      this.pairs(samples[start] ? (taken_for?.[start] ?? null) : null, "Most often taken for"),
    ];
  }

  ofCluster(node) {
    const { hierarchy, content } = this;
    const { level, number, start, end } = node;
    const values = level < 0 ? null : content.clusters[level];
    const samples = content.classes.samples
      .slice(start, end)
      .reduce((sum, count) => sum + count, 0);
    const where =
      level < 0
        ? ""
        : `Level ${level}, cluster ${number + 1} of ${hierarchy.edges[level].length - 1}. `;
    const size = counted(hierarchy.size(node), "class", "classes");
    const places = Array.from({ length: end - start }, (_, step) => start + step);
    return [
      element("h3", {}, named(hierarchy.label(node))),
      element("p", { class: "lead" }, `${where}${size}, ${this.tested(samples)}`),
      values &&
        this.accuracies([
          ["within the cluster", values.before?.[number] ?? null, values.after[number]],
          ["right class", values.class_before?.[number] ?? null, values.class_after[number]],
        ]),
      this.images(places),
      this.chips(places),
      values && this.pairs(values.pairs[number], "Most confused pairs"),
    ];
  }

  accuracies(rows) {
    const hasBefore = this.content.shown.baseline !== null;
    const cells = rows.map(([what, before, after]) =>
      hasBefore ? [what, rate(before), rate(after), change(before, after)] : [what, rate(after)],
    );
    const headings = hasBefore
      ? ["predicted, %", "before", "after", "change"]
      : ["predicted, %", "share"];
    return element("div", { class: "scroll" }, table(headings, cells));
  }

  images(places) {
    const { examples } = this.content;
    if (!examples) return null;
    const each = Math.max(1, Math.floor(MOST_IMAGES / places.length));
    const chosen = places
      .slice(0, MOST_IMAGES)
      .flatMap((place) => examples.places[place].slice(0, each).map((at) => ({ place, at })));
    return chosen.length
      ? element("div", { class: "samples" }, ...chosen.map((one) => this.image(one)))
      : null;
  }

  // One picture of the sheet that holds all.
  image({ place, at }) {
    const { size, columns } = this.content.examples;
    const shown = Math.max(size, 40);
    const scale = shown / size;
    const [x, y] = [(at % columns) * shown, Math.floor(at / columns) * shown];
    const name = this.content.classes.names[place];
    const made = element("span", { role: "img", "aria-label": name, title: name });
    Object.assign(made.style, {
      width: `${shown}px`,
      height: `${shown}px`,
      backgroundImage: "var(--sheet)",
      backgroundPosition: `-${x}px -${y}px`,
      backgroundSize: `${columns * size * scale}px auto`,
      imageRendering: scale >= 2 ? "pixelated" : "auto",
    });
    return made;
  }

  chips(places, most = MOST_CLASSES) {
    const { names } = this.content.classes;
    const buttons = places.slice(0, most).map((place) =>
      element(
        "button",
        {
          type: "button",
          onclick: () => this.choose(this.hierarchy.node(this.hierarchy.depth, place)),
        },
        named(names[place]),
      ),
    );
    const made = element("div", { class: "chips" }, ...buttons);
    const left = places.length - most;
    if (left > 0) {
      const more = () => {
        const longer = this.chips(places, most * 10);
        made.replaceWith(longer);
        longer.children[most].focus();
      };
      made.append(
        element(
          "button",
          { type: "button", onclick: more },
          `and ${left.toLocaleString("en")} more`,
        ),
      );
    }
    return made;
  }

  pairs(pairs, heading) {
    if (pairs === null) return null;
    if (!pairs.length) return element("p", {}, "No mistakes.");
    const { names } = this.content.classes;
    const hasBefore = this.content.shown.baseline !== null;
    const cells = pairs.map(([truth, found, before, after]) => {
      const both = [named(names[truth]), named(names[found])];
      return hasBefore
        ? [...both, rate(before), rate(after), change(before, after, { isMistake: true })]
        : [...both, rate(after)];
    });
    const headings = [
      "true",
      "predicted",
      ...(hasBefore ? ["before, %", "after, %", "change"] : ["share, %"]),
    ];
    const made = table(headings, cells);
    for (const line of made.rows) line.cells[1].classList.add("words");
    return element("div", { class: "scroll" }, element("h3", {}, heading), made);
  }
}
