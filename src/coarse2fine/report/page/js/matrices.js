// Confusion matrices in percent of each true class: before, after and their difference.

class Matrices {
  constructor({ before, after, samples }, size) {
    this.size = size;
    this.kinds = new Map();
    if (before) this.kinds.set("before", this.rates(before, samples));
    this.kinds.set("after", this.rates(after, samples));
    if (before) this.kinds.set("difference", this.difference());
    this.tops = new Map([...this.kinds].map(([which, matrix]) => [which, largeMistake(matrix)]));
  }

  rates([rows, columns, counts], samples) {
    const matrix = Array.from({ length: this.size }, () => new Float32Array(this.size));
    for (let at = 0; at < rows.length; at += 1) {
      matrix[rows[at]][columns[at]] = (100 * counts[at]) / samples[rows[at]];
    }
    return matrix;
  }

  difference() {
    const before = this.kinds.get("before");
    return this.kinds
      .get("after")
      .map((line, row) => line.map((value, column) => value - before[row][column]));
  }

  at(which, row, column) {
    return this.kinds.get(which)[row][column];
  }

  // The matrix as plotly takes it, with blocks of `step` by `step` cells drawn as one.
  cells(which, step) {
    const matrix = this.kinds.get(which);
    const start = (step - 1) / 2;
    const z = step === 1 ? matrix : thinned(matrix, step);
    return { z, x0: start, dx: step, y0: start, dy: step };
  }

  // Row and column of what is seen at a place: of a block, its most extreme cell.
  seen(which, y, x, step) {
    const [top, left] = [y, x].map((at) => Math.round(at - (step - 1) / 2));
    return extreme(this.kinds.get(which), top, left, step);
  }
}

function thinned(matrix, step) {
  const count = Math.ceil(matrix.length / step);
  return Array.from({ length: count }, (_, row) =>
    Float32Array.from({ length: count }, (_, column) => {
      const [y, x] = extreme(matrix, row * step, column * step, step);
      return matrix[y][x];
    }),
  );
}

// The cell of a block whose value is furthest from 0.
function extreme(matrix, top, left, step) {
  let found = [top, left];
  for (let y = top; y < Math.min(top + step, matrix.length); y += 1) {
    for (let x = left; x < Math.min(left + step, matrix.length); x += 1) {
      if (Math.abs(matrix[y][x]) > Math.abs(matrix[found[0]][found[1]])) found = [y, x];
    }
  }
  return found;
}

// What nearly no mistake is above: a scale on which they can be told apart.
function largeMistake(matrix, share = 0.998) {
  const values = [];
  matrix.forEach((line, row) =>
    line.forEach((value, column) => value && row !== column && values.push(Math.abs(value))),
  );
  if (!values.length) return 1;
  const sorted = Float32Array.from(values).sort();
  const all = matrix.length * (matrix.length - 1);
  const place = Math.floor(share * all) - (all - sorted.length);
  return sorted[Math.min(Math.max(0, place), sorted.length - 1)];
}
