// The page's beginning: fetch the hierarchy, and put its parts together.

import { Commands } from "./commands.js";
import { treeOf } from "./content.js";
import { listenToPage, TreeKeys } from "./keys.js";
import { Mouse } from "./mouse.js";
import { Panels } from "./panels.js";
import { Saving } from "./saving.js";
import { Search } from "./search.js";
import { load } from "./server.js";
import { State } from "./state.js";
import { View } from "./view.js";
import { Words } from "./words.js";

/**
 * @param {string} id
 * @returns {any} An element of the page's own HTML, of any kind.
 */
const part = (id) => document.getElementById(id);

const say = (text) => {
  part("message").textContent = text;
};

/** Show an error until the next save; `rescue` offers the hierarchy as a download. */
const alarm = (text, rescue) => {
  part("alarm").hidden = !text;
  part("alarm-text").textContent = text;
  part("rescue").hidden = !rescue;
  part("rescue").onclick = rescue ?? null;
};

function start(file) {
  const state = new State(treeOf(file.hierarchy));
  if (file.digest === null) state.saved = null; // it is yet to be written
  const words = new Words(file.hierarchy.class_names);
  const view = new View(part("tree"), state, words);
  const commands = new Commands(state, view, words, say);
  const saving = new Saving(file, state, words, say, alarm);
  const search = new Search(part("search"), part("found"), state, view, words);
  const ids = [
    "unsaved",
    "save",
    "save-and-close",
    "cancel",
    "status",
    "problems",
    "tidy",
    "levels",
  ];
  const parts = Object.fromEntries(ids.map((id) => [id, part(id)]));
  new TreeKeys(state, view, commands, words);
  new Mouse(state, view, commands, words, part("dragged"), part("several"));
  new Panels(parts, state, view, commands, saving, words);
  listenToPage(commands, () => saving.save(), search.input);

  part("file").textContent = file.file;
  part("file").title = file.path;
  part("save").onclick = () => saving.save();
  part("save-and-close").onclick = () => saving.saveAndClose();
  part("close").onclick = () => saving.close();
  part("copy").onclick = async () => {
    await navigator.clipboard.writeText(file.command);
    part("copy").textContent = "Copied";
  };
  part("cancel").onclick = () => commands.cancel();
  part("several").onclick = () => {
    const isOn = part("several").getAttribute("aria-pressed") === "true";
    part("several").setAttribute("aria-pressed", String(!isOn));
  };
  state.changed();
  document.body.dataset.ready = "true";
}

const file = await load();
if (file.status === 200) start(file);
else alarm(file.error);
