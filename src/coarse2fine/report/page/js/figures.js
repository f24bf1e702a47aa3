// Drawing plotly's figures in the page's colours.

const CONFIG = { displayModeBar: false, displaylogo: false, responsive: true };
const redraws = []; // called when the colours change

// What of a layout depends on light or dark.
function themed(layout) {
  const { text, axis } = themeColours();
  const { fontFamily: family } = getComputedStyle(document.body);
  const colours = { font: { size: 13, ...layout.font, family, color: text } };
  for (const name of Object.keys(layout)) {
    if (/^[xy]axis\d*$/.test(name)) colours[name] = { ...layout[name], ...axis };
  }
  if (layout.annotations) {
    colours.annotations = layout.annotations.map((note) => ({
      ...note,
      font: { ...note.font, color: text },
    }));
  }
  return {
    ...layout,
    ...colours,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    hoverlabel: { ...layout.hoverlabel, align: "left" },
  };
}

function draw(id, figure) {
  const place = byId(id);
  redraws.push(() => Plotly.relayout(place, themed(place.layout)));
  return Plotly.newPlot(place, figure.data, themed(figure.layout), CONFIG);
}
