// Between the tree and what the file holds: levels, coarsest first, each a list class → cluster.

import { classNode, cluster, isClass } from "./tree.js";

/** @import { Node, Tree } from "./tree.js" */

/** The tree of a hierarchy's JSON; its clusters stand in the order of their numbers.
 *
 * @returns {Tree}
 */
export function treeOf(content) {
  const { levels, num_classes: count, cluster_names: names } = content;
  let nodes = Array.from({ length: count }, (_, index) => classNode(index));
  let first = nodes.map((_, index) => index); // the first class of each node
  for (let level = levels.length - 1; level >= 0; level--) {
    const owner = levels[level];
    /** @type {number[][]} */
    const groups = [];
    nodes.forEach((_, at) => (groups[owner[first[at]]] ??= []).push(at));
    const below = nodes;
    const firsts = first;
    nodes = groups.map((group, number) =>
      cluster(
        names?.[level][number] ?? "",
        group.map((at) => below[at]),
      ),
    );
    first = groups.map((group) => firsts[group[0]]);
  }
  return { root: cluster("", nodes), depth: levels.length };
}

/** The JSON of a tree, clusters numbered in its order; the classes are those of `original`.
 *
 * @param {Tree} tree
 */
export function contentOf(tree, original) {
  const count = original.num_classes;
  const levels = Array.from({ length: tree.depth }, () => new Array(count).fill(0));
  const names = levels.map(() => []);
  const path = [];
  /** @type {(node: Node, depth: number) => void} */
  const visit = (node, depth) => {
    if (isClass(node)) {
      path.forEach((number, level) => (levels[level][node.index] = number));
      return;
    }
    if (depth >= 0) path[depth] = names[depth].push(node.name) - 1;
    for (const child of node.children) visit(child, depth + 1);
  };
  visit(tree.root, -1);
  const isNamed = original.cluster_names !== null || names.flat().some(Boolean);
  // What further names meant may have changed with the tree.
  return { ...original, levels, cluster_names: isNamed ? names : null, other_names: {} };
}
