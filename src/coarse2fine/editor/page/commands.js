// What a person can do to the tree. Each command says why it cannot be done now, or does it and
// says what was done, in one short sentence.

import * as trees from "./tree.js";
import { classesIn, counted, inQuotes } from "./words.js";

/**
 * @import { State } from "./state.js"
 * @import { View } from "./view.js"
 * @import { Words } from "./words.js"
 */

const NOTHING = "Select classes or clusters first.";

export class Commands {
  /**
   * @param {State} state
   * @param {View} view
   * @param {Words} words
   * @param {(text: string) => void} say
   */
  constructor(state, view, words, say) {
    this.state = state;
    this.view = view;
    this.words = words;
    this.say = say;
  }

  /** Do what is called `name`, unless there is a reason against it, which is said. */
  run(name) {
    const reason = this.reasons[name]?.call(this);
    if (reason) this.say(reason);
    else this[name]();
  }

  /** Why a command cannot be done now: "" if it can. */
  reason(name) {
    return this.reasons[name]?.call(this) ?? "";
  }

  reasons = {
    undo: () => (this.state.past.length ? "" : "There is nothing to undo."),
    redo: () => (this.state.future.length ? "" : "There is nothing to redo."),
    move: () => (this.state.picked().length ? "" : NOTHING),
    rename: this.whyNoRename,
    merge: this.whyNoMerge,
    split: this.whyNoSplit,
    add: () => (this.state.tree.depth ? "" : "Add a level above the classes first."),
    remove: this.whyNoRemoval,
  };

  done(tree, what, selected) {
    this.state.change(tree, what, selected);
    this.view.focus();
    this.say(`${what}.`);
  }

  undo() {
    this.say(`Undone: ${this.state.undo()}.`);
    this.view.show();
  }

  redo() {
    this.say(`Done again: ${this.state.redo()}.`);
    this.view.show();
  }

  // ------------------------------------------------------------------------ what is open

  expand() {
    this.state.openAll();
    this.view.show();
    this.say("All clusters are open.");
  }

  collapse() {
    this.state.closeAll();
    this.view.show();
    this.say("All clusters are closed.");
  }

  // ---------------------------------------------------------------------------- moving

  /** Begin to move what is picked; a place is chosen next. */
  move() {
    const { state } = this;
    state.moving = state.picked();
    state.over = state.active;
    state.changed();
    this.view.focus();
    this.say(
      `Moving ${this.words.several(state.nodes(state.moving))}: choose a cluster by the arrow ` +
        `keys and press Enter, or click it. Escape gives up.`,
    );
  }

  /** Say where it would go. */
  hover() {
    const { state } = this;
    const target = state.place(trees.targetOf(state.tree, state.moving, state.over)).node;
    const isThere = trees.areThere(state.tree, state.moving, target.id);
    this.say(isThere ? `Already in ${this.target(target)}.` : `Into ${this.target(target)}?`);
  }

  /** End the move, at the place that was chosen last. */
  drop() {
    const { tree, moving, over } = this.state;
    const target = over === null ? null : trees.targetOf(tree, moving, over);
    if (target === null || trees.areThere(tree, moving, target)) {
      this.cancel();
      this.say("It is there already; nothing was moved.");
      return;
    }
    const names = this.words.several(this.state.nodes(moving));
    const where = this.target(this.state.place(target).node);
    this.done(trees.moved(tree, moving, target), `Moved ${names} into ${where}`, moving);
  }

  /** Where what is being moved would go, in a sentence. */
  target(node) {
    if (node === this.state.tree.root) return "a new cluster at the top";
    const depth = this.state.place(node.id).depth + 1;
    const isNew = this.state.moving.some((id) => this.state.place(id).depth > depth);
    return this.words.quoted(node) + (isNew ? ", as a new cluster" : "");
  }

  cancel() {
    if (!this.state.moving) return;
    this.state.moving = this.state.over = null;
    this.state.changed();
    this.say("Nothing was moved.");
  }

  // -------------------------------------------------------------------------- renaming

  whyNoRename() {
    const nodes = this.state.nodes();
    if (nodes.length !== 1) return nodes.length ? "Select just one cluster to rename it." : NOTHING;
    return trees.isClass(nodes[0]) ? "Classes keep their names; only clusters can be renamed." : "";
  }

  rename() {
    const [node] = this.state.nodes();
    this.state.active = node.id;
    this.view.edit(node.id, node.name, (name) => {
      if (name === null || name === node.name) return;
      const tree = trees.renamed(this.state.tree, node.id, name);
      const now = name ? `to ${inQuotes(name)}` : "to nothing";
      this.done(tree, `Renamed ${this.words.quoted(node)} ${now}`);
    });
  }

  // ----------------------------------------------------------------- merging, splitting

  whyNoMerge() {
    const ids = this.state.picked();
    if (ids.length < 2) return "Select two or more clusters to merge them.";
    const isAny = this.state.nodes(ids).some(trees.isClass);
    if (isAny) return "Classes cannot be merged, only clusters.";
    const level = trees.commonDepth(this.state.tree, ids);
    return level === null ? "Only clusters of the same level can be merged." : "";
  }

  merge() {
    const ids = this.state.picked();
    const tree = trees.merged(this.state.tree, ids);
    this.done(tree, `Merged ${counted(ids.length, "cluster")}`, [ids[0]]);
  }

  whyNoSplit() {
    const { tree } = this.state;
    const ids = this.state.picked();
    if (!ids.length) return "Select some classes or clusters of a cluster to split them off.";
    const level = trees.commonDepth(tree, ids);
    if (level === null) return "Select classes only, or clusters of one level only.";
    if (!level) return "Above this is no level to split; add a level first.";
    const { parent } = this.state.place(ids[0]);
    const all = ids.length === parent.children.length && trees.areThere(tree, ids, parent.id);
    return all ? "Select only some of them, so that something stays." : "";
  }

  split() {
    const ids = this.state.picked();
    const names = this.words.several(this.state.nodes(ids));
    const [tree, id] = trees.split(this.state.tree, ids);
    this.state.open.add(id);
    this.done(tree, `Split off ${names} into a new cluster`, [id]);
  }

  // ------------------------------------------------------------------ adding, removing

  add() {
    const { tree } = this.state;
    const [first = tree.root.children.at(-1).id] = this.state.picked();
    const { node, parent } = this.state.place(first);
    const [next, id] = trees.withCluster(tree, trees.isClass(node) ? parent.id : node.id);
    this.done(next, "Added an empty cluster", [id]);
    this.rename();
  }

  whyNoRemoval() {
    const nodes = this.state.nodes();
    if (!nodes.length) return "Select an empty cluster to remove it.";
    if (nodes.some(trees.isClass)) return "Classes cannot be removed, only moved.";
    const full = nodes.find((node) => node.size);
    if (!full) return "";
    return `${this.words.quoted(full)} still holds ${classesIn(full)}; move or merge them.`;
  }

  remove() {
    this.removeEmpty(this.state.picked());
  }

  removeEmpty(ids) {
    const { parent } = this.state.place(ids[0]);
    const what = `Removed ${counted(ids.length, "empty cluster")}`;
    this.done(trees.without(this.state.tree, ids), what, [parent.id]);
  }

  addLevel(level) {
    const tree = trees.withLevel(this.state.tree, level);
    for (const [id, { depth }] of trees.placesOf(tree)) {
      if (depth === level) this.state.open.add(id);
    }
    this.done(tree, `Added level ${level}`, []);
  }

  removeLevel(level) {
    this.done(trees.withoutLevel(this.state.tree, level), `Removed level ${level}`, []);
  }
}
