// The hierarchy as a tree that never changes: every function here returns a new one, which
// shares what is the same. So a step back is just the tree before.
//
// A tree is {root, depth}: depth is the number of levels above the classes. The root has depth
// -1, the clusters of level d have depth d, the classes have depth `depth`; all of them do, as
// every class belongs to a cluster of every level.

/**
 * @typedef {object} Node A cluster, which has a name and children, or a class, which has an index.
 * @property {number} id
 * @property {number} size The number of classes in it; 1 for a class.
 * @property {string} [name]
 * @property {Node[]} [children]
 * @property {number} [index]
 */

/** @typedef {{ root: Node, depth: number }} Tree */
/** @typedef {{ node: Node, parent: Node | null, depth: number }} Place */

let lastId = 0;

/** @type {(node: Node) => boolean} */
export const isClass = (node) => node.children === undefined;

/** A new cluster; the id of an old one makes it a changed version of that.
 *
 * @param {string} name
 * @param {Node[]} children
 * @returns {Node}
 */
export function cluster(name, children, id = ++lastId) {
  return { id, name, children, size: children.reduce((sum, child) => sum + child.size, 0) };
}

/** A class by its index in the file, which is the model's output for it.
 *
 * @param {number} index
 * @returns {Node}
 */
export function classNode(index) {
  return { id: ++lastId, index, size: 1 };
}

// ------------------------------------------------------------------------------- looking

/** @type {WeakMap<Tree, Map<number, Place>>} */
const places = new WeakMap();

/** Every node by its id, as {node, parent, depth}, in the order of the tree.
 *
 * @param {Tree} tree
 */
export function placesOf(tree) {
  if (!places.has(tree)) {
    const found = new Map();
    const visit = (node, parent, depth) => {
      found.set(node.id, { node, parent, depth });
      for (const child of node.children ?? []) visit(child, node, depth + 1);
    };
    visit(tree.root, null, -1);
    places.set(tree, found);
  }
  return places.get(tree);
}

/** The ids from the parent of a node up to the root.
 *
 * @param {Tree} tree
 * @param {number} id
 * @returns {number[]}
 */
export function ancestors(tree, id) {
  const found = [];
  const all = placesOf(tree);
  for (let node = all.get(id)?.parent; node; node = all.get(node.id).parent) found.push(node.id);
  return found;
}

/** Those of the ids that are in the tree and below no other of them, in the order of the tree.
 *
 * @param {Tree} tree
 * @param {number[]} ids
 * @returns {number[]}
 */
export function topmost(tree, ids) {
  const wanted = new Set(ids);
  wanted.delete(tree.root.id);
  const found = [];
  const visit = (node) => {
    if (wanted.has(node.id)) found.push(node.id);
    else node.children?.forEach(visit);
  };
  visit(tree.root);
  return found;
}

/** The depth that all nodes share, or null.
 *
 * @param {Tree} tree
 * @param {number[]} ids
 */
export function commonDepth(tree, ids) {
  const depths = new Set(ids.map((id) => placesOf(tree).get(id).depth));
  return depths.size === 1 ? [...depths][0] : null;
}

/** Where nodes would go if dropped on a place: to the nearest cluster that is coarser than them.
 *
 * @param {Tree} tree
 * @param {number[]} ids
 * @param {number} over
 */
export function targetOf(tree, ids, over) {
  const all = placesOf(tree);
  const least = ids.reduce((least, id) => Math.min(least, all.get(id).depth), Infinity);
  let { node, parent, depth } = all.get(over);
  while (depth >= least) ({ node, parent, depth } = all.get(parent.id));
  return node.id;
}

/** Whether nodes would be where they are already.
 *
 * @param {Tree} tree
 * @param {number[]} ids
 * @param {number} target
 */
export function areThere(tree, ids, target) {
  return ids.every((id) => placesOf(tree).get(id).parent.id === target);
}

// ------------------------------------------------------------------------------ changing

/** A tree whose clusters have other children, where `edits` has a function for their id.
 *
 * @param {Tree} tree
 * @param {Map<number, (children: Node[]) => Node[]>} edits
 * @returns {Tree}
 */
function edited(tree, edits) {
  const visit = (node) => {
    if (isClass(node)) return node;
    let children = node.children.map(visit);
    if (edits.has(node.id)) children = edits.get(node.id)(children);
    const same = children.length === node.children.length;
    if (same && children.every((child, at) => child === node.children[at])) return node;
    return cluster(node.name, children, node.id);
  };
  return { ...tree, root: visit(tree.root) };
}

/** A tree without some nodes and all below them.
 *
 * @param {Tree} tree
 * @param {number[]} ids
 */
export function without(tree, ids) {
  const gone = new Set(ids);
  const keep = (children) => children.filter((child) => !gone.has(child.id));
  const parents = [...gone].map((id) => placesOf(tree).get(id).parent.id);
  return edited(tree, new Map(parents.map((id) => [id, keep])));
}

/** Children with others added: clusters at the end, classes in their order.
 *
 * @param {Node[]} children
 * @param {Node[]} added
 */
function joined(children, added) {
  const all = [...children, ...added];
  return all.every(isClass) ? all.sort((one, other) => one.index - other.index) : all;
}

/** A tree in which nodes have moved into a coarser cluster.
 *
 * Where levels lie between, they get a new cluster on each: it stands by itself there.
 *
 * @param {Tree} tree
 * @param {number[]} ids
 * @param {number} target
 */
export function moved(tree, ids, target) {
  const all = placesOf(tree);
  const groups = new Map();
  for (const id of topmost(tree, ids)) {
    const { node, depth } = all.get(id);
    groups.set(depth, [...(groups.get(depth) ?? []), node]);
  }
  const added = [...groups].flatMap(([depth, nodes]) => {
    const between = depth - all.get(target).depth - 1;
    for (let level = 0; level < between; level++) nodes = [cluster("", joined([], nodes))];
    return nodes;
  });
  const rest = without(tree, topmost(tree, ids));
  return edited(rest, new Map([[target, (children) => joined(children, added)]]));
}

/** A tree in which a cluster has another name.
 *
 * @param {Tree} tree
 * @param {number} id
 * @param {string} name
 */
export function renamed(tree, id, name) {
  const { node, parent } = placesOf(tree).get(id);
  const swap = (child) => (child.id === id ? cluster(name, node.children, id) : child);
  return edited(tree, new Map([[parent.id, (children) => children.map(swap)]]));
}

/** A tree in which clusters of one level are one, at the place of the first.
 *
 * @param {Tree} tree
 * @param {number[]} ids
 */
export function merged(tree, ids) {
  const nodes = topmost(tree, ids).map((id) => placesOf(tree).get(id).node);
  const [first, ...others] = nodes;
  const name = nodes.map((node) => node.name).find(Boolean) ?? "";
  const whole = nodes.map((node) => node.children).reduce(joined);
  const rest = without(
    tree,
    others.map((node) => node.id),
  );
  const swap = (child) => (child.id === first.id ? cluster(name, whole, first.id) : child);
  const { parent } = placesOf(tree).get(first.id);
  return edited(rest, new Map([[parent.id, (children) => children.map(swap)]]));
}

/** A tree with a new cluster behind another one, and the new cluster's id.
 *
 * @param {Tree} tree
 * @param {number} beside
 * @param {Node[]} children
 * @returns {[Tree, number]}
 */
export function withCluster(tree, beside, children = []) {
  const added = cluster("", children);
  const { parent } = placesOf(tree).get(beside);
  const insert = (found) =>
    found.flatMap((child) => (child.id === beside ? [child, added] : [child]));
  return [edited(tree, new Map([[parent.id, insert]])), added.id];
}

/** A tree in which nodes of one level are in a new cluster, behind the one the first was in.
 *
 * @param {Tree} tree
 * @param {number[]} ids
 */
export function split(tree, ids) {
  const nodes = topmost(tree, ids).map((id) => placesOf(tree).get(id).node);
  const { parent } = placesOf(tree).get(nodes[0].id);
  return withCluster(without(tree, ids), parent.id, joined([], nodes));
}

/** A tree with a level more: above the clusters of depth `level`, each parent gets one cluster.
 *
 * @param {Tree} tree
 * @param {number} level
 */
export function withLevel(tree, level) {
  const edits = new Map();
  for (const [id, { depth }] of placesOf(tree)) {
    if (depth === level - 1) edits.set(id, (children) => [cluster("", children)]);
  }
  return { ...edited(tree, edits), depth: tree.depth + 1 };
}

/** A tree without a level: what was below its clusters belongs to what was above.
 *
 * @param {Tree} tree
 * @param {number} level
 */
export function withoutLevel(tree, level) {
  const edits = new Map();
  for (const [id, { depth }] of placesOf(tree)) {
    if (depth !== level - 1) continue;
    edits.set(id, (children) => children.map((child) => child.children).reduce(joined, []));
  }
  return { ...edited(tree, edits), depth: tree.depth - 1 };
}
