// What moves the confusion matrix: buttons, keys, the wheel, and two boxes for a pair.

const STEPS = {
  ArrowLeft: [-0.2, 0],
  ArrowRight: [0.2, 0],
  ArrowUp: [0, -0.2],
  ArrowDown: [0, 0.2],
};

/**
 * @param {Confusion} confusion
 * @param {{ label: string, baseline: string }} shown
 */
function addConfusionControls(confusion, { label, baseline }) {
  const labels = {
    before: `Before: ${baseline}`,
    after: `After: ${label}`,
    difference: "Difference",
  };
  const { kinds } = confusion.matrices;
  if (kinds.length > 1) byId("confusion-which").append(...kinds.map(choice));
  byId("confusion-zoom").append(
    button("Zoom in", () => confusion.zoom(0.5)),
    button("Zoom out", () => confusion.zoom(2)),
    button("Show all", () => confusion.showAll()),
  );
  const options = confusion.names.slice(0, 5000).map((name) => element("option", { value: name }));
  byId("class-list").append(...options);
  byId("pair-form").addEventListener("submit", lookUp);
  confusion.place.addEventListener("keydown", key);
  confusion.place.addEventListener("wheel", wheel, { passive: false });
  explain();

  function button(text, onclick, others = {}) {
    return element("button", { type: "button", onclick, ...others }, text);
  }

  function choice(which) {
    const isChosen = which === confusion.which;
    const others = { "data-which": which, "aria-pressed": String(isChosen) };
    return button(labels[which], () => choose(which), others);
  }

  function choose(which) {
    for (const one of byId("confusion-which").children) {
      one.setAttribute("aria-pressed", String(one.dataset.which === which));
    }
    confusion.choose(which);
    explain();
  }

  function explain() {
    const isDifference = confusion.which === "difference";
    byId("confusion-meaning").textContent = isDifference
      ? "Orange is worse: more mistakes, or fewer right on the diagonal. Green is better."
      : "";
  }

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      "+": () => confusion.zoom(0.5),
      "=": () => confusion.zoom(0.5),
      "-": () => confusion.zoom(2),
      0: () => confusion.showAll(),
    };
    const action = STEPS[event.key] ? () => confusion.pan(...STEPS[event.key]) : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  // Pinching, or the wheel with Ctrl, zooms; the wheel alone scrolls the page.
  function wheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const box = confusion.place.querySelector(".nsewdrag").getBoundingClientRect();
    const { x, y } = confusion.view;
    const right = (event.clientX - box.left) / box.width;
    const down = (event.clientY - box.top) / box.height;
    const centre = [x[0] + right * (x[1] - x[0]), y[0] + down * (y[1] - y[0])];
    confusion.zoom(event.deltaY < 0 ? 0.8 : 1.25, centre);
  }

  function lookUp(event) {
    event.preventDefault();
    const asked = ["pair-true", "pair-predicted"].map((id) => byId(id).value);
    const places = asked.map((name) => confusion.names.indexOf(name));
    const unknown = asked[places.indexOf(-1)];
    if (unknown === undefined) confusion.mark(...places);
    byId("pair").textContent =
      unknown === undefined
        ? `${confusion.sentence(...places)}.`
        : unknown
          ? `There is no ${isolated(unknown)}.`
          : "Choose both.";
  }
}
