// Putting the page together: first what is read and explored, then figure after figure, so that
// the page can be used meanwhile.

document.documentElement.classList.add("has-js");

const idle = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

async function begin() {
  const content = JSON.parse(await unpacked("content"));
  if (content.examples) {
    document.documentElement.style.setProperty("--sheet", `url("${content.examples.sheet}")`);
  }
  const explorer = content.levels.length ? new Explorer(content) : null;
  new ClassTable(content, explorer && ((place) => explorer.chooseClass(place)));
  setUpTheme(() => redraws.forEach((redraw) => redraw()));
  performance.mark("readable");
  await idle();
  await loadPlotly();
  await explorer?.draw(content.figures.icicle);
  await drawOthers(content);
  performance.mark("drawn");
  document.documentElement.dataset.drawn = "yes";
}

async function drawOthers(content) {
  const { curves, levels, gains } = content.figures;
  const figures = { "curves-plot": curves, "levels-plot": levels, "gains-plot": gains };
  for (const [id, figure] of Object.entries(figures)) {
    await idle();
    if (figure) await draw(id, figure);
    else byId(id).closest("figure").remove();
  }
  if (!content.confusion) return;
  await idle();
  const confusion = new Confusion(content);
  await confusion.draw();
  addConfusionControls(confusion, content.shown);
}

begin().catch((error) => {
  byId("failure").querySelector("span").textContent = `${error.message}.`;
  byId("failure").hidden = false;
  throw error;
});
