// The tree on the screen. Only the rows in sight are in the document, so that ten thousand
// classes are no slower than a hundred. One row, the active one, can be reached by Tab.

import { isClass, targetOf } from "./tree.js";
import { classesIn } from "./words.js";

/**
 * @import { State } from "./state.js"
 * @import { Words } from "./words.js"
 */

const SPARE = 8; // rows beyond the edges
const STEP = 20; // pixels a level is indented
const MOST_STEPS = 8;

export class View {
  /**
   * @param {HTMLElement} box
   * @param {State} state
   * @param {Words} words
   */
  constructor(box, state, words) {
    this.box = box;
    this.state = state;
    this.words = words;
    this.list = /** @type {HTMLElement} */ (box.firstElementChild);
    /** @type {Map<number, HTMLElement>} */
    this.rows = new Map(); // the elements by the id of their node
    /** @type {{ id: number } | null} */
    this.editing = null;
    this.measure();
    // Where a finger takes over from a mouse, rows get higher.
    matchMedia("(pointer: coarse)").addEventListener("change", () => this.measure());
    box.addEventListener("scroll", () => this.render());
    new ResizeObserver(() => this.render()).observe(box);
    state.listeners.push(() => this.render());
  }

  measure() {
    this.height = parseFloat(getComputedStyle(this.box).getPropertyValue("--row"));
    this.render();
  }

  // ----------------------------------------------------------------------- rendering

  render() {
    const rows = this.state.rows();
    const hadFocus = this.list.contains(document.activeElement);
    this.list.style.height = `${rows.length * this.height}px`;
    const shown = this.shown(rows);
    const ids = new Set(shown.map((at) => rows[at].node.id));
    for (const [id, element] of this.rows) {
      if (ids.has(id)) continue;
      this.rows.delete(id);
      element.remove();
    }
    this.target = this.dropTarget();
    let last = null;
    for (const at of shown) {
      const element = this.element(rows[at].node.id);
      const after = last ? last.nextElementSibling : this.list.firstElementChild;
      if (after !== element) this.list.insertBefore(element, after);
      this.update(element, rows[at], at);
      last = element;
    }
    if (hadFocus && !this.editing) this.rows.get(this.state.active)?.focus({ preventScroll: true });
  }

  /** The numbers of the rows in sight; the active one always belongs to them. */
  shown(rows) {
    const from = Math.max(0, Math.floor(this.box.scrollTop / this.height) - SPARE);
    const count = Math.ceil(this.box.clientHeight / this.height) + 2 * SPARE;
    const numbers = [];
    for (let at = from; at < Math.min(rows.length, from + count); at++) numbers.push(at);
    const active = this.state.row(this.state.active);
    if (active < from) numbers.unshift(active);
    else if (active >= from + count) numbers.push(active);
    return numbers.filter((at) => at >= 0);
  }

  element(id) {
    if (!this.rows.has(id)) {
      const element = document.createElement("div");
      element.setAttribute("role", "treeitem");
      element.id = `row-${id}`;
      element.dataset.id = id;
      for (const name of ["twisty", "name", "more"]) {
        const part = element.appendChild(document.createElement("span"));
        part.className = name;
      }
      element.children[0].setAttribute("aria-hidden", "true");
      element.children[1].setAttribute("dir", "auto");
      this.rows.set(id, element);
    }
    return this.rows.get(id);
  }

  update(element, { node, depth, position, siblings }, at) {
    const { state } = this;
    const isOpen = state.open.has(node.id);
    element.style.top = `${at * this.height}px`;
    element.style.paddingInlineStart = `${8 + STEP * Math.min(depth + 1, MOST_STEPS)}px`;
    element.tabIndex = node.id === state.active ? 0 : -1;
    const facts = {
      "aria-level": depth + 2,
      "aria-posinset": position,
      "aria-setsize": siblings,
      "aria-selected": state.selected.has(node.id),
    };
    if (!isClass(node)) facts["aria-expanded"] = isOpen;
    for (const [name, value] of Object.entries(facts)) element.setAttribute(name, value);
    element.className = this.classes(node);
    const [twisty, name, more] = element.children;
    twisty.textContent = isClass(node) ? "" : isOpen ? "▾" : "▸";
    if (this.editing?.id !== node.id) {
      name.textContent = element.title = depth < 0 ? "All classes" : this.words.label(node);
    }
    more.textContent = isClass(node) ? `#${node.index}` : classesIn(node);
  }

  classes(node) {
    const names = ["row"];
    if (!this.words.isNamed(node) && node !== this.state.tree.root) names.push("unnamed");
    if (!node.size) names.push("empty");
    if (isClass(node)) names.push("class");
    if (this.state.moving?.includes(node.id)) names.push("moving");
    if (this.target === node.id) names.push("target");
    return names.join(" ");
  }

  dropTarget() {
    const { tree, moving, over } = this.state;
    return moving && over !== null ? targetOf(tree, moving, over) : null;
  }

  // -------------------------------------------------------------------------- looking

  /** Scroll the active row into sight. */
  show() {
    const top = this.state.row(this.state.active) * this.height;
    const { scrollTop, clientHeight } = this.box;
    if (top < scrollTop) this.box.scrollTop = top;
    else if (top + this.height > scrollTop + clientHeight) {
      this.box.scrollTop = top + this.height - clientHeight;
    }
    this.render();
  }

  /** Scroll the active row into sight and give it the focus. */
  focus() {
    this.show();
    if (!this.editing) this.rows.get(this.state.active)?.focus({ preventScroll: true });
  }

  /** Show a node, wherever it is. */
  go(id) {
    this.state.reveal(id);
    this.state.select(id);
    this.focus();
  }

  /** The id of the node whose row an element is in, or null. */
  idAt(element) {
    const row = element?.closest?.("[role=treeitem]");
    return row && this.list.contains(row) ? Number(row.dataset.id) : null;
  }

  get page() {
    return Math.max(1, Math.floor(this.box.clientHeight / this.height) - 1);
  }

  // -------------------------------------------------------------------------- renaming

  /** Let a name be typed in its row; `done` gets it, or null if it was given up. */
  edit(id, name, done) {
    this.focus();
    const place = this.rows.get(id).querySelector(".name");
    const input = document.createElement("input");
    input.value = name;
    input.dir = "auto";
    input.setAttribute("aria-label", "Name of the cluster");
    const end = (value) => {
      if (!this.editing) return;
      const hadFocus = document.activeElement === input;
      this.editing = null;
      input.remove();
      if (hadFocus) this.rows.get(id)?.focus({ preventScroll: true });
      done(value);
      this.render();
    };
    input.addEventListener("keydown", (event) => {
      const isSave = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s";
      if (!isSave) event.stopPropagation();
      if (isSave || (event.key === "Enter" && !event.isComposing)) end(input.value.trim());
      if (event.key === "Escape") end(null);
    });
    input.addEventListener("blur", () => end(input.value.trim()));
    this.editing = { id };
    place.replaceChildren(input);
    input.focus();
    input.select();
  }
}
