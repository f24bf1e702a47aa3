// Around the tree: the buttons, whether it is valid, the levels, and whether it is saved.

import { countsOf, problemsOf, summaryOf } from "./checks.js";
import { counted } from "./words.js";

/**
 * @import { Commands } from "./commands.js"
 * @import { Saving } from "./saving.js"
 * @import { State } from "./state.js"
 * @import { View } from "./view.js"
 * @import { Words } from "./words.js"
 */

const MOST_PROBLEMS = 20;

/** An element with text, which names are only ever set as. */
function made(tag, text, properties = {}) {
  const element = Object.assign(document.createElement(tag), properties);
  element.textContent = text;
  return element;
}

/** @returns {NodeListOf<HTMLElement>} */
const commandButtons = () => document.querySelectorAll("[data-command]");

export class Panels {
  /**
   * @param {Record<string, HTMLElement>} parts
   * @param {State} state
   * @param {View} view
   * @param {Commands} commands
   * @param {Saving} saving
   * @param {Words} words
   */
  constructor(parts, state, view, commands, saving, words) {
    this.parts = parts;
    this.state = state;
    this.view = view;
    this.commands = commands;
    this.saving = saving;
    this.words = words;
    for (const button of commandButtons()) {
      button.addEventListener("click", () => commands.run(button.dataset.command));
    }
    state.listeners.push(() => this.render());
  }

  render() {
    this.buttons();
    if (this.drawn === this.state.tree) return this.saved();
    this.drawn = this.state.tree;
    this.status();
    this.levels();
    return this.saved();
  }

  buttons() {
    for (const button of commandButtons()) {
      enable(button, this.commands.reason(button.dataset.command));
    }
    this.parts.cancel.hidden = !this.state.moving || this.view.box.classList.contains("dragging");
  }

  saved() {
    const { isSaved } = this.state;
    const reason = this.saving.reason();
    enable(this.parts.save, reason);
    enable(this.parts["save-and-close"], isSaved ? "" : reason);
    const isValid = this.parts.status.className === "valid";
    this.parts.unsaved.textContent = isSaved ? "" : `● not saved${isValid ? "" : ", not valid"}`;
    document.title = `${isSaved ? "" : "● "}${this.saving.file.file} · coarse2fine`;
  }

  // ------------------------------------------------------------------ whether it is valid

  status() {
    const problems = problemsOf(this.state.tree, (node) => this.words.quoted(node));
    const { status, problems: list } = this.parts;
    status.className = problems.length ? "invalid" : "valid";
    status.textContent = problems.length
      ? `Not valid: ${counted(problems.length, "problem")}`
      : summaryOf(this.state.tree);
    const items = problems.slice(0, MOST_PROBLEMS).map((problem) => this.problem(problem));
    const rest = problems.length - items.length;
    if (rest > 0) items.push(made("li", `and ${counted(rest, "more", "more")}`));
    list.replaceChildren(...items);
    const empty = problems.flatMap(({ fix }) => fix.empty ?? []);
    this.parts.tidy.hidden = empty.length < 2;
    this.parts.tidy.onclick = () => this.commands.removeEmpty(empty);
  }

  problem({ text, id, fix }) {
    const item = document.createElement("li");
    item.append(made("button", text, { className: "link", onclick: () => this.view.go(id) }));
    const mend =
      fix.empty === undefined
        ? ["Remove level " + fix.level, () => this.commands.removeLevel(fix.level)]
        : ["Remove it", () => this.commands.removeEmpty([fix.empty])];
    item.append(made("button", mend[0], { className: "small", onclick: mend[1] }));
    return item;
  }

  // ---------------------------------------------------------------------------- levels

  levels() {
    const counts = countsOf(this.state.tree);
    const items = counts.map((count, level) => {
      const isLast = level === counts.length - 1;
      const item = made("li", "");
      const text = isLast ? counted(count, "class", "classes") : counted(count, "cluster");
      item.append(made("span", isLast ? text : `Level ${level}: ${text}`));
      const what = isLast ? "the classes" : `level ${level}`;
      item.append(this.levelButton("Add above", what, () => this.commands.addLevel(level)));
      if (!isLast) {
        item.append(this.levelButton("Remove", what, () => this.commands.removeLevel(level)));
      }
      return item;
    });
    this.parts.levels.replaceChildren(...items);
  }

  levelButton(text, what, onclick) {
    const button = made("button", text, { className: "small", onclick });
    button.setAttribute("aria-label", `${text} ${what}`);
    return button;
  }
}

/** Let a button say why it does nothing, rather than be dead.
 *
 * @param {HTMLElement} button
 * @param {string} reason
 */
function enable(button, reason) {
  button.setAttribute("aria-disabled", String(Boolean(reason)));
  button.title = reason || button.dataset.help || "";
}
