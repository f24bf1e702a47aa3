// Looking for a class or cluster by its name: Enter goes to the next, Shift+Enter back.

import { isClass, placesOf } from "./tree.js";

/**
 * @import { State } from "./state.js"
 * @import { View } from "./view.js"
 * @import { Words } from "./words.js"
 */

export class Search {
  /**
   * @param {HTMLInputElement} input
   * @param {HTMLElement} output
   * @param {State} state
   * @param {View} view
   * @param {Words} words
   */
  constructor(input, output, state, view, words) {
    this.input = input;
    this.output = output;
    this.state = state;
    this.view = view;
    this.words = words;
    this.at = 0;
    this.found = [];
    input.addEventListener("input", () => this.look());
    input.addEventListener("keydown", (event) => this.handle(event));
  }

  handle(event) {
    if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") this.view.focus();
    else return;
    event.preventDefault();
  }

  /** The ids whose name holds the text, or whose number it is, in the order of the tree. */
  matches(text) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const found = [];
    for (const [id, { node, depth }] of placesOf(this.state.tree)) {
      const isNumber = isClass(node) && `#${node.index}` === wanted;
      const name = isClass(node) ? this.words.label(node) : node.name;
      if (depth >= 0 && (isNumber || name.toLowerCase().includes(wanted))) found.push(id);
    }
    return found;
  }

  look() {
    this.at = 0;
    this.show();
  }

  step(by) {
    this.at += by;
    this.show();
  }

  show() {
    this.found = this.matches(this.input.value);
    const count = this.found.length;
    if (count) {
      this.at = (this.at + count) % count;
      const id = this.found[this.at];
      this.state.reveal(id);
      this.state.select(id);
      this.view.show();
    }
    const none = this.input.value.trim() ? "nothing found" : "";
    this.output.textContent = count ? `${this.at + 1} of ${count}` : none;
  }
}
