// What the page shows: the tree with the steps back and forward, what is open, selected and
// active, and what is being moved. Whoever listens is told after each change.

import { ancestors, placesOf, topmost } from "./tree.js";

/**
 * @import { Place, Tree } from "./tree.js"
 *
 * @typedef {Place & { position: number, siblings: number }} Row
 * @typedef {{ tree: Tree, selected: number[], active: number }} Snapshot
 * @typedef {{ before: Snapshot, after: Snapshot, what: string }} Step
 */

const OPEN_AT_FIRST = 60;

export class State {
  /** @param {Tree} tree */
  constructor(tree) {
    this.tree = tree;
    /** @type {Tree | null} */
    this.saved = tree;
    /** @type {Step[]} */
    this.past = [];
    /** @type {Step[]} */
    this.future = [];
    /** @type {Set<number>} */
    this.open = new Set();
    /** @type {Set<number>} */
    this.selected = new Set();
    this.active = this.anchor = tree.root.id;
    /** @type {number[] | null} */
    this.moving = null; // the ids that are being moved
    /** @type {number | null} */
    this.over = null; // where they would be dropped
    /** @type {(() => void)[]} */
    this.listeners = [];
    /** @type {Row[] | null} */
    this.list = null;
    this.openSome();
  }

  changed() {
    this.list = null;
    for (const listener of this.listeners) listener();
  }

  get isSaved() {
    return this.tree === this.saved;
  }

  /** @param {number} id */
  place(id) {
    return placesOf(this.tree).get(id);
  }

  // -------------------------------------------------------------------- rows in sight

  /** The nodes in sight, in order. */
  rows() {
    if (this.list) return this.list;
    /** @type {Row[]} */
    const list = [];
    /** @param {Row} row */
    const visit = (row) => {
      list.push(row);
      const { node, depth } = row;
      if (!node.children || !this.open.has(node.id)) return;
      const count = node.children.length;
      node.children.forEach((child, at) =>
        visit({ node: child, parent: node, depth: depth + 1, position: at + 1, siblings: count }),
      );
    };
    visit({ node: this.tree.root, parent: null, depth: -1, position: 1, siblings: 1 });
    this.list = list;
    return list;
  }

  row(id) {
    return this.rows().findIndex((row) => row.node.id === id);
  }

  /** Open the coarse levels, as long as that shows few rows. */
  openSome() {
    let nodes = [this.tree.root];
    for (let shown = 1; nodes.length;) {
      const below = nodes.flatMap((node) => node.children ?? []);
      shown += below.length;
      if (nodes[0] !== this.tree.root && shown > OPEN_AT_FIRST) return;
      for (const node of nodes) if (node.children) this.open.add(node.id);
      nodes = below;
    }
  }

  openAll() {
    for (const [id, { node }] of placesOf(this.tree)) if (node.children) this.open.add(id);
    this.changed();
  }

  /** Leave only the root open; what is hidden then is no longer selected. */
  closeAll() {
    const { root } = this.tree;
    this.open = new Set([root.id]);
    const top = new Set(root.children.map((child) => child.id));
    this.selected = new Set([...this.selected].filter((id) => top.has(id)));
    if (!top.has(this.active)) this.active = this.anchor = root.id;
    this.changed();
  }

  reveal(id) {
    for (const above of ancestors(this.tree, id)) this.open.add(above);
    this.list = null;
  }

  toggle(id, open = !this.open.has(id)) {
    if (open) this.open.add(id);
    else this.close(id);
    this.changed();
  }

  close(id) {
    this.open.delete(id);
    const isHidden = (other) => ancestors(this.tree, other).includes(id);
    this.selected = new Set([...this.selected].filter((other) => !isHidden(other)));
    if (isHidden(this.active)) this.active = this.anchor = id;
  }

  // ------------------------------------------------------------------------ selecting

  /** Make a node active: alone, with those up to the anchor ("range"), or beside ("toggle").
   *
   *  While something is moved, the active node is just the place for it.
   */
  select(id, how = "only") {
    this.active = id;
    if (this.moving) {
      this.over = id;
      how = "focus";
    }
    if (how === "range") return this.selectRange(id);
    if (how === "only") this.selected = new Set();
    if (how !== "focus") {
      if (this.selected.has(id)) this.selected.delete(id);
      else if (id !== this.tree.root.id) this.selected.add(id);
      this.anchor = id;
    }
    this.changed();
  }

  selectRange(id) {
    const [from, to] = [this.row(this.anchor), this.row(id)].sort((one, other) => one - other);
    const ids = this.rows()
      .slice(Math.max(from, 0), to + 1)
      .map((row) => row.node.id);
    this.selected = new Set(ids.filter((other) => other !== this.tree.root.id));
    this.changed();
  }

  /** What a command is about: the topmost of what is selected, or else the active node. */
  picked() {
    const ids = this.selected.size ? [...this.selected] : [this.active];
    return topmost(this.tree, ids);
  }

  nodes(ids = this.picked()) {
    return ids.map((id) => this.place(id).node);
  }

  // ------------------------------------------------------------------------- changing

  snapshot() {
    return { tree: this.tree, selected: [...this.selected], active: this.active };
  }

  /** Take a step: another tree, what was done, and what is selected then.
   *
   * @param {Tree} tree
   * @param {string} what
   */
  change(tree, what, selected = [...this.selected]) {
    const before = this.snapshot();
    this.restore({ tree, selected, active: selected[0] ?? this.active });
    this.past.push({ before, after: this.snapshot(), what });
    this.future = [];
    this.changed();
  }

  /** @param {Snapshot} snapshot */
  restore({ tree, selected, active }) {
    const all = placesOf(tree);
    this.tree = tree;
    this.list = null;
    this.selected = new Set(selected.filter((id) => all.has(id) && id !== tree.root.id));
    this.active = this.anchor = all.has(active) ? active : tree.root.id;
    this.moving = this.over = null;
    for (const id of [this.active, ...this.selected]) this.reveal(id);
  }

  /** Go a step back, and return what it was, or null. */
  undo() {
    return this.step(this.past, this.future, "before");
  }

  /** Go a step forward again, and return what it is, or null. */
  redo() {
    return this.step(this.future, this.past, "after");
  }

  step(from, to, side) {
    const taken = from.pop();
    if (!taken) return null;
    to.push(taken);
    this.restore(taken[side]);
    this.changed();
    return taken.what;
  }
}
