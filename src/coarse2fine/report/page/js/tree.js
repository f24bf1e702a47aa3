// The hierarchy as a tree that opens and closes, by mouse and by keyboard.
//
// Children are made when their cluster is first opened, so that any number of classes is quick.

class Tree {
  /**
   * @param {HTMLElement} place
   * @param {Hierarchy} hierarchy
   * @param {(node: HierarchyNode) => void} choose
   */
  constructor(place, hierarchy, choose) {
    this.place = place;
    this.hierarchy = hierarchy;
    this.choose = choose;
    this.items = new Map();
    this.typed = { text: "", at: 0 };
    for (const child of hierarchy.children(hierarchy.root)) place.append(this.item(child, 1));
    this.makeTabStop(place.firstElementChild);
    place.addEventListener("keydown", (event) => this.key(event));
    place.addEventListener("click", (event) => this.click(event));
  }

  item(node, depth) {
    const { hierarchy } = this;
    const isClass = hierarchy.isClass(node);
    const text = hierarchy.label(node);
    const size = isClass ? null : element("span", { class: "size" }, String(hierarchy.size(node)));
    const mark = element("span", { class: "mark", "aria-hidden": "true" }, isClass ? "" : "▸");
    const label = isClass ? text : `${text}, ${counted(hierarchy.size(node), "class", "classes")}`;
    const made = element(
      "div",
      {
        role: "treeitem",
        tabindex: -1,
        "aria-level": depth,
        "aria-selected": "false",
        "aria-label": label,
      },
      element("div", { class: "row" }, mark, named(text), size),
    );
    if (!isClass) made.setAttribute("aria-expanded", "false");
    made.node = node;
    this.items.set(hierarchy.id(node), made);
    return made;
  }

  toggle(item, isOpen = item.getAttribute("aria-expanded") === "false") {
    if (!item.hasAttribute("aria-expanded")) return;
    item.setAttribute("aria-expanded", String(isOpen));
    item.querySelector(".mark").textContent = isOpen ? "▾" : "▸";
    if (item.group === undefined && isOpen) {
      const depth = Number(item.getAttribute("aria-level")) + 1;
      const children = this.hierarchy.children(item.node).map((node) => this.item(node, depth));
      item.group = element("div", { role: "group" }, ...children);
      item.append(item.group);
    }
    if (item.group) item.group.hidden = !isOpen;
  }

  // Open the way to a node, and mark it as chosen.
  show(node) {
    const path = this.hierarchy.path(node).slice(1);
    for (const above of path.slice(0, -1))
      this.toggle(this.items.get(this.hierarchy.id(above)), true);
    const last = path.at(-1);
    for (const old of this.place.querySelectorAll('[aria-selected="true"]'))
      old.setAttribute("aria-selected", "false");
    if (!last) return;
    const item = this.items.get(this.hierarchy.id(last));
    item.setAttribute("aria-selected", "true");
    this.makeTabStop(item);
    const { place } = this;
    const [top, bottom] = [
      place.getBoundingClientRect(),
      item.firstElementChild.getBoundingClientRect(),
    ];
    if (bottom.top < top.top || bottom.bottom > top.bottom)
      place.scrollTop += bottom.top - top.top - 40;
  }

  makeTabStop(item) {
    for (const old of this.place.querySelectorAll('[tabindex="0"]'))
      old.setAttribute("tabindex", "-1");
    item.setAttribute("tabindex", "0");
  }

  focus(item) {
    if (!item) return;
    this.makeTabStop(item);
    item.focus();
  }

  shownItems() {
    return [...this.place.querySelectorAll('[role="treeitem"]')].filter(
      (item) => !item.closest("[hidden]"),
    );
  }

  click(event) {
    const item = event.target.closest('[role="treeitem"]');
    if (!item) return;
    this.focus(item);
    this.toggle(item);
    this.choose(item.node);
  }

  key(event) {
    const item = event.target.closest('[role="treeitem"]');
    if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
    const shown = this.shownItems();
    const place = shown.indexOf(item);
    const isOpen = item.getAttribute("aria-expanded") === "true";
    const actions = {
      ArrowDown: () => this.focus(shown[place + 1]),
      ArrowUp: () => this.focus(shown[place - 1]),
      Home: () => this.focus(shown[0]),
      End: () => this.focus(shown.at(-1)),
      ArrowRight: () =>
        isOpen ? this.focus(item.group.firstElementChild) : this.toggle(item, true),
      ArrowLeft: () =>
        isOpen
          ? this.toggle(item, false)
          : this.focus(item.parentElement.closest('[role="treeitem"]')),
      Enter: () => this.choose(item.node),
      " ": () => this.choose(item.node),
    };
    const action =
      actions[event.key] ??
      (event.key.length === 1 ? () => this.type(event.key, shown, place) : null);
    if (!action) return;
    event.preventDefault();
    action();
  }

  // Go to the next item whose name begins with what was just typed.
  type(letter, shown, place) {
    const now = performance.now();
    this.typed = { text: now - this.typed.at < 700 ? this.typed.text + letter : letter, at: now };
    const wanted = this.typed.text.toLowerCase();
    const from = wanted.length > 1 ? place : place + 1;
    const order = [...shown.slice(from), ...shown.slice(0, from)];
    this.focus(
      order.find((item) => this.hierarchy.label(item.node).toLowerCase().startsWith(wanted)),
    );
  }
}
