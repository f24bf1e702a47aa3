// The mouse and fingers: selecting, opening, and dragging. Fingers scroll instead of dragging;
// they select, press "Move", and tap the place.

import { areThere, targetOf } from "./tree.js";

/**
 * @import { Commands } from "./commands.js"
 * @import { State } from "./state.js"
 * @import { View } from "./view.js"
 * @import { Words } from "./words.js"
 */

/**
 * @typedef {object} Drag What is pulled, where the pointer is, and whether a drop there does
 *   something.
 * @property {number} id
 * @property {number} x
 * @property {number} y
 * @property {boolean} isOn
 * @property {number} [over]
 * @property {number} [timer]
 * @property {boolean} [isGood]
 */

const DRAG_PIXELS = 5;
const OPEN_MS = 700; // over a closed cluster until it opens
const EDGE = 40; // pixels from the edge at which the tree scrolls

export class Mouse {
  /**
   * @param {State} state
   * @param {View} view
   * @param {Commands} commands
   * @param {Words} words
   * @param {HTMLElement} label
   * @param {HTMLElement} several
   */
  constructor(state, view, commands, words, label, several) {
    this.state = state;
    this.view = view;
    this.commands = commands;
    this.words = words;
    this.label = label;
    this.several = several;
    /** @type {Drag} */
    this.drag = null;
    const { box } = view;
    box.addEventListener("click", (event) => this.click(event));
    box.addEventListener("dblclick", (event) => this.doubleClick(event));
    box.addEventListener("pointerdown", (event) => this.press(event));
    box.addEventListener("pointermove", (event) => this.pull(event));
    box.addEventListener("pointerup", () => this.release());
    box.addEventListener("pointercancel", () => this.end());
    box.addEventListener("lostpointercapture", () => this.end());
    document.addEventListener("keydown", (event) => {
      if (this.drag?.isOn && event.key === "Escape") this.giveUp();
    });
  }

  // -------------------------------------------------------------------------- clicking

  click(event) {
    const id = this.view.idAt(event.target);
    if (this.wasDrag || id === null || event.target instanceof HTMLInputElement) {
      this.wasDrag = false;
      return;
    }
    if (event.target.className === "twisty") {
      this.state.toggle(id);
      return;
    }
    if (this.state.moving) {
      this.state.over = id;
      this.commands.drop();
      return;
    }
    const isMany = this.several.getAttribute("aria-pressed") === "true";
    const isToggle = event.ctrlKey || event.metaKey || isMany;
    this.state.select(id, event.shiftKey ? "range" : isToggle ? "toggle" : "only");
    this.view.focus();
  }

  doubleClick(event) {
    if (event.target.className === "name") this.commands.run("rename");
  }

  // -------------------------------------------------------------------------- dragging

  press(event) {
    const id = this.view.idAt(event.target);
    this.wasDrag = false;
    if (event.button || event.pointerType === "touch" || id === null || this.state.moving) return;
    if (id === this.state.tree.root.id || event.target instanceof HTMLInputElement) return;
    this.drag = { id, x: event.clientX, y: event.clientY, isOn: false };
  }

  pull(event) {
    const { drag } = this;
    if (!drag) return;
    // The button was let go elsewhere, or a key has ended the move.
    if (!event.buttons || (drag.isOn && !this.state.moving)) return this.end();
    if (!drag.isOn && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > DRAG_PIXELS) {
      this.begin(event);
    }
    if (!drag.isOn) return;
    Object.assign(drag, { x: event.clientX, y: event.clientY });
    this.look();
  }

  begin(event) {
    const { state, drag, view } = this;
    if (!state.selected.has(drag.id)) state.select(drag.id);
    view.box.setPointerCapture(event.pointerId);
    view.box.classList.add("dragging");
    drag.isOn = true;
    state.moving = state.picked();
    this.label.hidden = false;
    const scroll = () => {
      if (this.drag !== drag || !this.state.moving) return;
      this.scroll();
      requestAnimationFrame(scroll);
    };
    requestAnimationFrame(scroll);
  }

  /** Find what the pointer is over, and show what a drop there would do. */
  look() {
    const { state, drag } = this;
    const id = this.view.idAt(document.elementFromPoint(drag.x, drag.y));
    if (id !== drag.over) {
      clearTimeout(drag.timer);
      drag.over = id;
      const isClosed = id !== null && state.place(id).node.children && !state.open.has(id);
      if (isClosed) drag.timer = setTimeout(() => state.toggle(id, true), OPEN_MS);
      state.over = id;
      state.changed();
    }
    const target = id === null ? null : targetOf(state.tree, state.moving, id);
    drag.isGood = target !== null && !areThere(state.tree, state.moving, target);
    const names = this.words.several(state.nodes(state.moving));
    const where = drag.isGood ? ` → ${this.commands.target(state.place(target).node)}` : "";
    this.label.textContent = names + where;
    this.label.style.left = `${drag.x + 14}px`;
    this.label.style.top = `${drag.y + 10}px`;
    this.view.box.classList.toggle("refusing", !drag.isGood);
  }

  scroll() {
    const { box } = this.view;
    const { top, bottom } = box.getBoundingClientRect();
    const up = Math.max(0, top + EDGE - this.drag.y);
    const down = Math.max(0, this.drag.y - bottom + EDGE);
    if (!up && !down) return;
    box.scrollTop += (down - up) / 4;
    this.look();
  }

  release() {
    if (!this.drag?.isOn) {
      this.drag = null;
      return;
    }
    const isGood = this.drag.isGood && this.state.moving;
    this.wasDrag = true;
    this.finish();
    if (isGood) this.commands.drop();
    else this.commands.cancel();
  }

  giveUp() {
    this.wasDrag = true;
    this.finish();
    this.commands.cancel();
  }

  /** The pointer was taken away: the system has other plans with it. */
  end() {
    if (this.drag?.isOn) this.giveUp();
    this.drag = null;
  }

  finish() {
    clearTimeout(this.drag.timer);
    this.drag = null;
    this.label.hidden = true;
    this.view.box.classList.remove("dragging", "refusing");
  }
}
