// The table of classes: sorted by any column, filtered by name, each to be chosen where there is
// a hierarchy to show it in.

const FIRST_ROWS = 50;

class ClassTable {
  constructor(content, choose) {
    const { names, samples, before, after, gains } = content.classes;
    this.choose = choose;
    this.rows = names.map((name, place) => ({
      name,
      place,
      samples: samples[place],
      before: before?.[place] ?? null,
      after: after[place],
      gain: gains?.[place] ?? null,
    }));
    this.columns = before
      ? ["name", "before", "after", "gain", "samples"]
      : ["name", "after", "samples"];
    this.order = before ? { by: "gain", isUp: false } : { by: "after", isUp: false };
    this.count = FIRST_ROWS;
    byId("class-filter").addEventListener("input", () => this.show());
    byId("class-more").addEventListener("click", () => {
      this.count *= 10;
      this.show();
    });
    this.show();
  }

  show() {
    const wanted = byId("class-filter").value.toLowerCase();
    const found = this.rows
      .filter(({ name }) => name.toLowerCase().includes(wanted))
      .sort((one, other) => this.compare(one, other));
    const head = element(
      "thead",
      {},
      element("tr", {}, ...this.columns.map((column) => this.heading(column))),
    );
    const body = element("tbody", {}, ...found.slice(0, this.count).map((line) => this.line(line)));
    byId("class-table").replaceChildren(head, body);
    const more = byId("class-more");
    more.hidden = found.length <= this.count;
    more.textContent = `Show more of the ${found.length.toLocaleString("en")} classes`;
  }

  compare(one, other) {
    const { by, isUp } = this.order;
    const [a, b] = isUp ? [one[by], other[by]] : [other[by], one[by]];
    if (one[by] === null || other[by] === null) {
      return Number(one[by] === null) - Number(other[by] === null);
    }
    return typeof a === "string" ? a.localeCompare(b) : a - b || one.place - other.place;
  }

  heading(column) {
    const titles = {
      name: "class",
      samples: "samples",
      before: "before, %",
      after: "after, %",
      gain: "change",
    };
    const { by, isUp } = this.order;
    const isSorted = by === column;
    const sort = isSorted ? (isUp ? "ascending" : "descending") : "none";
    const onclick = () => {
      this.order = { by: column, isUp: isSorted ? !isUp : column === "name" };
      this.show();
      byId("class-table").querySelector(`[data-column="${column}"]`).focus();
    };
    const arrow = isSorted ? (isUp ? " ▲" : " ▼") : "";
    const button = element(
      "button",
      { type: "button", class: "plain", "data-column": column, onclick },
      titles[column] + arrow,
    );
    return element("th", { scope: "col", "aria-sort": sort }, button);
  }

  line({ name, place, samples, before, after }) {
    const onclick = () => this.choose(place);
    const button = { type: "button", class: "plain", onclick };
    const cells = {
      name: this.choose ? element("button", button, named(name)) : named(name),
      samples: String(samples),
      before: rate(before),
      after: rate(after),
      gain: change(before, after),
    };
    return row(this.columns.map((column) => cells[column]));
  }
}
