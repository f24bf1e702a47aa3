// Making elements. Names and other text enter the page by textContent alone, never as HTML.

/**
 * An element of the page's own HTML, of any kind: an input, say, or a figure of plotly's.
 *
 * @param {string} id
 * @returns {any}
 */
const byId = (id) => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

// A name may be written from right to left, and must not turn round what is beside it; and a
// blank one must be seen.
const named = (text) => element("bdi", {}, text.trim() ? text : `“${text}”`);

// The same within a text: Unicode's marks around what has its own direction.
const isolated = (text) => `\u2068${text}\u2069`;

// Plotly reads some HTML in the texts of figures.
const escaped = (text) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const rate = (value, digits = 1) => (value === null ? "–" : value.toFixed(digits));

// The change of a rate in points; of a mistake's rate, less is better.
function change(before, after, { isMistake = false } = {}) {
  if (before === null || after === null) return element("span", {}, "–");
  const points = after - before;
  const text = `${points < 0 ? "−" : "+"}${Math.abs(points).toFixed(1)}`;
  const direction = points === 0 ? "" : points > 0 !== isMistake ? "better" : "worse";
  return element("span", { class: direction }, text);
}

const counted = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

function row(cells, tag = "td") {
  const made = cells.map((cell, place) =>
    element(place ? tag : "th", place ? {} : { scope: tag === "td" ? "row" : "col" }, cell),
  );
  return element("tr", {}, ...made);
}

function table(headings, rows) {
  const head = headings.map((heading) => element("th", { scope: "col" }, heading));
  return element(
    "table",
    {},
    element("thead", {}, element("tr", {}, ...head)),
    element("tbody", {}, ...rows.map((cells) => row(cells))),
  );
}
