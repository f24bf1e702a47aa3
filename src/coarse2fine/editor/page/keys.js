// The keyboard: within the tree as the ARIA practices have it for trees, and for the whole page.

/**
 * @import { Commands } from "./commands.js"
 * @import { State } from "./state.js"
 * @import { View } from "./view.js"
 * @import { Words } from "./words.js"
 */

const TYPING_MS = 800;

/** Keys that work wherever the focus is, but for fields in which text is typed.
 *
 * @param {Commands} commands
 * @param {() => void} save
 * @param {HTMLInputElement} search
 */
export function listenToPage(commands, save, search) {
  const keys = { z: "undo", Z: "redo", y: "redo" };
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
    const key = event.shiftKey ? event.key.toUpperCase() : event.key.toLowerCase();
    const isField = event.target instanceof HTMLInputElement;
    if (document.querySelector("dialog[open]")) return;
    if (key === "s") save();
    else if (key === "f") search.focus();
    else if (keys[key] && !isField) commands.run(keys[key]);
    else return;
    event.preventDefault();
  });
}

/** Keys of the tree. */
export class TreeKeys {
  /**
   * @param {State} state
   * @param {View} view
   * @param {Commands} commands
   * @param {Words} words
   */
  constructor(state, view, commands, words) {
    this.state = state;
    this.view = view;
    this.commands = commands;
    this.words = words;
    this.typed = "";
    this.typedAt = 0;
    view.box.addEventListener("keydown", (event) => this.handle(event));
  }

  handle(event) {
    const control = event.ctrlKey || event.metaKey;
    const act = control ? this.controlKeys[event.key.toLowerCase()] : this.plainKeys[event.key];
    if (act) act.call(this, event);
    else if (!control && !event.altKey && event.key.length === 1) this.type(event.key);
    else return;
    event.preventDefault();
  }

  plainKeys = {
    ArrowDown: (event) => this.step(1, event),
    ArrowUp: (event) => this.step(-1, event),
    PageDown: (event) => this.step(this.view.page, event),
    PageUp: (event) => this.step(-this.view.page, event),
    Home: (event) => this.step(-Infinity, event),
    End: (event) => this.step(Infinity, event),
    ArrowRight: () => this.right(),
    ArrowLeft: () => this.left(),
    Enter: () => (this.state.moving ? this.commands.drop() : this.commands.run("rename")),
    F2: () => this.commands.run("rename"),
    Delete: () => this.commands.run("remove"),
    Insert: () => this.commands.run("add"),
    Escape: () => this.commands.cancel(),
    " ": () => this.space(),
  };

  controlKeys = {
    arrowdown: () => this.step(1, { ctrlKey: true }),
    arrowup: () => this.step(-1, { ctrlKey: true }),
    home: () => this.step(-Infinity, { ctrlKey: true }),
    end: () => this.step(Infinity, { ctrlKey: true }),
    " ": () => this.state.select(this.state.active, "toggle"),
    a: () => this.selectSiblings(),
    x: () => this.commands.run("move"),
    v: () => this.state.moving && this.commands.drop(),
    j: () => this.commands.run("merge"),
    d: () => this.commands.run("split"),
  };

  // ------------------------------------------------------------------------ going about

  step(count, { shiftKey = false, ctrlKey = false }) {
    const rows = this.state.rows();
    const from = this.state.row(this.state.active);
    const to = Math.min(rows.length - 1, Math.max(0, from + count));
    this.go(rows[to].node.id, shiftKey ? "range" : ctrlKey ? "focus" : "only");
  }

  go(id, how = "only") {
    this.state.select(id, how);
    if (this.state.moving) this.commands.hover();
    this.view.focus();
  }

  right() {
    const { node } = this.state.place(this.state.active);
    if (!node.children?.length) return;
    if (!this.state.open.has(node.id)) this.state.toggle(node.id, true);
    else this.go(node.children[0].id);
  }

  left() {
    const { node, parent } = this.state.place(this.state.active);
    if (node.children && this.state.open.has(node.id)) this.state.toggle(node.id, false);
    else if (parent) this.go(parent.id);
  }

  space() {
    const isTyping = this.typed && performance.now() - this.typedAt < TYPING_MS;
    if (isTyping) this.type(" ");
    else if (!this.state.moving) this.state.select(this.state.active, "toggle");
  }

  selectSiblings() {
    const { parent } = this.state.place(this.state.active);
    if (!parent) return;
    this.state.selected = new Set(parent.children.map((child) => child.id));
    this.state.changed();
  }

  /** Go to the next row whose name begins with what was typed just now. */
  type(sign) {
    const now = performance.now();
    const isFirst = now - this.typedAt > TYPING_MS;
    this.typed = (isFirst ? "" : this.typed) + sign.toLowerCase();
    this.typedAt = now;
    const rows = this.state.rows();
    const from = this.state.row(this.state.active) + (isFirst ? 1 : 0);
    const begins = ({ node }) => this.words.label(node).toLowerCase().startsWith(this.typed);
    const found = [...rows.slice(from), ...rows.slice(0, from)].find(begins);
    if (found) this.go(found.node.id);
  }
}
