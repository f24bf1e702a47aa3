// Whether a tree is a hierarchy that can be saved, in plain words. The server checks again.

import { isClass, placesOf } from "./tree.js";

/** @import { Node, Tree } from "./tree.js" */

/** The number of clusters with classes on each level, and of the classes at the end.
 *
 * @param {Tree} tree
 * @returns {number[]}
 */
export function countsOf(tree) {
  const counts = new Array(tree.depth + 1).fill(0);
  for (const { node, depth } of placesOf(tree).values()) {
    if (depth >= 0 && node.size) counts[depth]++;
  }
  return counts;
}

/** All that is wrong: {text, id, fix}, id being the place.
 *
 * `fix` is what could be removed to mend it: a {level}, or a cluster by its id, {empty}.
 *
 * @param {Tree} tree
 * @param {(node: Node) => string} label
 * @returns {{ text: string, id: number, fix: { level?: number, empty?: number } }[]}
 */
export function problemsOf(tree, label) {
  return [...empty(tree, label), ...repeated(tree)];
}

function empty(tree, label) {
  const found = [];
  for (const { node, parent, depth } of placesOf(tree).values()) {
    if (node.size || isClass(node) || !parent || (!parent.size && parent !== tree.root)) continue;
    const text = `${label(node)} on level ${depth} is empty. Move something into it, or remove it.`;
    found.push({ text, id: node.id, fix: { empty: node.id } });
  }
  return found;
}

function repeated(tree) {
  const counts = countsOf(tree);
  const found = [];
  const note = (level, text) => found.push({ text, id: firstOf(tree, level), fix: { level } });
  if (tree.depth && counts[0] === 1) {
    const text = "One cluster of level 0 holds all classes, which teaches nothing.";
    note(0, `${text} Split it, or remove level 0.`);
  }
  for (let level = 0; level < tree.depth; level++) {
    if (counts[level] !== counts[level + 1]) continue;
    const isLowest = level + 1 === tree.depth;
    const text = isLowest
      ? `Every cluster of level ${level} holds just one class. Put some together, or remove it.`
      : `Levels ${level} and ${level + 1} have the same clusters. Split some, or remove a level.`;
    note(level, text);
  }
  return found;
}

function firstOf(tree, level) {
  for (const [id, { node, depth }] of placesOf(tree)) if (depth === level && node.size) return id;
  return tree.root.id;
}

/** What a valid tree is, in one line. */
export function summaryOf(tree) {
  const counts = countsOf(tree);
  if (counts.length > 1) return `Valid: ${counts.join(" → ")}`;
  return `Valid, but no level is above the ${counts[0]} classes, so training is plain training`;
}
