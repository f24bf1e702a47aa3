// The hierarchy: a cluster is a range of classes in the order of the hierarchy.
//
// The classes are the last level. A cluster that does not split at the next level is one node
// with the cluster below it, and a cluster of one class is that class.

/** @typedef {{ level: number, number: number, start: number, end: number }} HierarchyNode */

const ROOT = "all"; // as the icicle calls it

class Hierarchy {
  constructor(content) {
    this.names = content.classes.names;
    const ends = Array.from({ length: this.names.length + 1 }, (_, place) => place);
    this.edges = [...content.levels.map((level) => level.edges), ends];
    this.titles = content.levels.map((level) => level.names);
    this.depth = content.levels.length; // the level of the classes
    this.root = { level: -1, number: 0, start: 0, end: this.names.length };
  }

  /** @type {(level: number, number: number) => HierarchyNode} */
  node(level, number) {
    const [start, end] = [this.edges[level][number], this.edges[level][number + 1]];
    return { level, number, start, end };
  }

  id({ level, number }) {
    return level < 0 ? ROOT : `${level}:${number}`;
  }

  // Return the node of an id, such as "1:4".
  find(id) {
    if (id === ROOT) return this.root;
    const [level, number] = id.split(":").map(Number);
    return this.node(level, number);
  }

  size({ start, end }) {
    return end - start;
  }

  isClass({ start, end }) {
    return end - start === 1;
  }

  // Return the lowest level at which the node is still one cluster.
  bottom({ level, start, end }) {
    while (level < this.depth - 1 && this.holds(level + 1, start, end)) level += 1;
    return level;
  }

  holds(level, start, end) {
    const number = this.numberAt(level, start);
    return this.edges[level][number] === start && this.edges[level][number + 1] === end;
  }

  // Return which cluster of a level a class is in.
  numberAt(level, place) {
    const edges = this.edges[level];
    let [low, high] = [0, edges.length - 2];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (edges[middle] <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  children(node) {
    if (this.isClass(node)) return [];
    const level = this.bottom(node) + 1;
    const found = [];
    for (
      let number = this.numberAt(level, node.start);
      this.edges[level][number] < node.end;
      number += 1
    ) {
      found.push(this.node(level, number));
    }
    return found;
  }

  // Return the nodes from the top down to a class or cluster, itself last.
  path(node) {
    const found = [];
    for (let here = this.root; ;) {
      found.push(here);
      const next = this.children(here).find(
        (child) => child.start <= node.start && node.end <= child.end,
      );
      if (here.level >= node.level || !next) return found;
      here = next;
    }
  }

  label(node) {
    if (node.level < 0) return "All classes";
    if (this.isClass(node)) return this.names[node.start];
    for (let level = node.level; level <= this.bottom(node); level += 1) {
      const title = this.titles[level]?.[this.numberAt(level, node.start)];
      if (title) return title;
    }
    const first = this.names.slice(node.start, Math.min(node.end, node.start + 3)).join(", ");
    return this.size(node) > 3 ? `${first}, …` : first;
  }
}
