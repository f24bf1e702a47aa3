// Putting the page together.

document.documentElement.classList.add("has-js");

async function begin() {
  const content = JSON.parse(await unpacked("content"));
  if (content.examples)
    document.documentElement.style.setProperty("--sheet", `url("${content.examples.sheet}")`);
  const explorer = content.levels.length ? new Explorer(content) : null;
  new ClassTable(content, (place) => explorer?.chooseClass(place));
  await loadPlotly();
  await explorer?.draw(content.figures.icicle);
  await draw("curves-plot", content.figures.curves);
  await draw("levels-plot", content.figures.levels);
  if (content.figures.gains) await draw("gains-plot", content.figures.gains);
  else byId("gains-figure").remove();
  const confusion = new Confusion(content);
  await confusion.draw();
  addConfusionControls(confusion, content.shown);
  setUpTheme(() => redraws.forEach((redraw) => redraw()));
  document.documentElement.dataset.ready = "yes";
}

begin();
