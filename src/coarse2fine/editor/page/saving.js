// Saving, closing, and what to do when the file was changed by somebody else.

import { problemsOf } from "./checks.js";
import { contentOf, treeOf } from "./content.js";
import { choose } from "./dialog.js";
import { load, quit, store } from "./server.js";

/**
 * @import { State } from "./state.js"
 * @import { Words } from "./words.js"
 */

export class Saving {
  /**
   * @param {any} file
   * @param {State} state
   * @param {Words} words
   * @param {(text: string) => void} say
   * @param {(text: string, rescue?: () => void) => void} alarm
   */
  constructor(file, state, words, say, alarm) {
    this.file = file;
    this.state = state;
    this.words = words;
    this.say = say;
    this.alarm = alarm;
    this.isBusy = false;
    addEventListener("beforeunload", (event) => {
      if (!state.isSaved && !this.hasEnded) event.preventDefault();
    });
  }

  /** Why it cannot be saved now: "" if it can. */
  reason() {
    const { tree, isSaved } = this.state;
    const problems = problemsOf(tree, (node) => this.words.quoted(node));
    if (problems.length) return `It cannot be saved yet: ${problems[0].text}`;
    return isSaved ? "Everything is saved." : "";
  }

  /** Save, and return whether all is saved then. */
  async save(replaces = this.file.digest) {
    const reason = this.reason();
    if (reason || this.isBusy) {
      if (reason) this.say(reason);
      return !reason ? false : this.state.isSaved;
    }
    this.isBusy = true;
    const { tree } = this.state;
    const content = contentOf(tree, this.file.hierarchy);
    const answer = await store(content, replaces);
    this.isBusy = false;
    if (answer.status === 200) return this.saved(tree, answer);
    if (answer.status === 409 && answer.digest !== undefined) return this.settle(answer);
    this.alarm(answer.error, () => download(this.file.file, content));
    return false;
  }

  saved(tree, { digest, backup }) {
    this.file.digest = digest;
    this.state.saved = tree;
    this.state.changed();
    this.alarm("");
    this.say(backup ? `Saved. The old file is kept as ${backup}.` : "Saved.");
    this.tellUse();
    return this.state.isSaved; // not what was changed while it was saved
  }

  /** Say how the saved file is used. */
  tellUse() {
    if (!this.file.command) return;
    document.getElementById("use").hidden = false;
    document.getElementById("command").textContent = this.file.command;
  }

  /** Let a person decide between their changes and those of somebody else. */
  async settle({ error, digest }) {
    const others = { overwrite: "Overwrite it, keeping a copy", reload: "Show what it holds now" };
    const answers = digest === null ? { overwrite: "Save it anew" } : others;
    const wish = await choose(`${error} Nothing has been saved yet.`, {
      ...answers,
      cancel: "Cancel",
    });
    if (wish === "overwrite") return this.save(digest);
    if (wish === "reload") await this.reload();
    return false;
  }

  /** Show what the file holds now; a step back shows one's own changes again. */
  async reload() {
    const answer = await load();
    if (answer.status !== 200) {
      this.alarm(answer.error);
      return;
    }
    Object.assign(this.file, answer);
    const tree = treeOf(answer.hierarchy);
    this.state.saved = tree;
    this.state.change(tree, "Read the file again", []);
    this.state.openSome();
    this.state.changed();
    this.say("This is what the file holds now. Undo shows your changes again.");
  }

  async saveAndClose() {
    if (await this.save()) await this.end();
  }

  async close() {
    if (!this.state.isSaved) {
      const choices = { save: "Save and close", drop: "Close without saving", cancel: "Cancel" };
      const isNew = this.file.digest === null;
      const text = isNew ? "It is not saved yet." : "There are changes that are not saved.";
      const wish = await choose(text, choices);
      if (wish === "save") return this.saveAndClose();
      if (wish !== "drop") return undefined;
    }
    return this.end();
  }

  async end() {
    this.hasEnded = true;
    await quit(); // without an answer it has ended already
    const text = document.createElement("p");
    text.className = "ended";
    text.setAttribute("role", "status");
    text.textContent = "The editor has ended. You can close this page.";
    const main = document.createElement("main");
    const use = document.getElementById("use");
    main.append(text, ...(use.hidden ? [] : [use]));
    document.body.replaceChildren(main);
  }
}

/** Hand the hierarchy over as a download, where it cannot be saved in its place. */
function download(name, content) {
  const link = document.createElement("a");
  const data = new Blob([`${JSON.stringify(content)}\n`], { type: "application/json" });
  link.href = URL.createObjectURL(data);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
