// How nodes are called in the page. Whatever comes from a file is only ever shown as text.

import { isClass } from "./tree.js";

/** @import { Node } from "./tree.js" */

const FEW = 3;

/** Text of at most so many characters. */
export function short(text, most = 40) {
  const signs = [...text];
  return signs.length > most ? `${signs.slice(0, most - 1).join("")}…` : text;
}

/** "1 class", "2 classes". */
export function counted(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** A name within a sentence, whose direction of writing turns nothing around it. */
export const inQuotes = (name) => `“\u2068${name}\u2069”`;

/** @param {Node} node */
export const classesIn = (node) => counted(node.size, "class", "classes");

/** The names for nodes, where `classNames` are those of the file or null. */
export class Words {
  /** @param {string[] | null} classNames */
  constructor(classNames) {
    this.classNames = classNames;
  }

  /** The name in the file, "" where it has none.
   *
   * @param {Node} node
   */
  name(node) {
    if (!isClass(node)) return node.name;
    return this.classNames?.[node.index] ?? "";
  }

  /** @param {Node} node */
  isNamed(node) {
    return this.name(node).trim() !== "";
  }

  /** What is shown for a node: its name, or something that tells which it is.
   *
   * @param {Node} node
   * @returns {string}
   */
  label(node) {
    if (this.isNamed(node)) return this.name(node);
    if (isClass(node)) return `class ${node.index}`;
    const few = firstClasses(node, FEW + 1).map((child) => short(this.label(child), 24));
    if (!few.length) return "empty cluster";
    return few.length > FEW ? `${few.slice(0, FEW).join(", ")}, …` : few.join(", ");
  }

  /** A node within a sentence.
   *
   * @param {Node} node
   */
  quoted(node) {
    return inQuotes(short(this.label(node)));
  }

  /** Several nodes within a sentence.
   *
   * @param {Node[]} nodes
   */
  several(nodes) {
    if (nodes.length === 1) return this.quoted(nodes[0]);
    if (nodes.every(isClass)) return counted(nodes.length, "class", "classes");
    return counted(nodes.length, nodes.some(isClass) ? "item" : "cluster");
  }
}

function firstClasses(node, most, found = []) {
  if (isClass(node)) found.push(node);
  for (const child of node.children ?? []) {
    if (found.length >= most) break;
    firstClasses(child, most, found);
  }
  return found;
}
