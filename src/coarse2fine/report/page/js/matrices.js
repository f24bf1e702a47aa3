// Confusion matrices in percent of each true class: before, after and their difference.

class Matrices {
  constructor({ before, after, samples }, size) {
    this.before = before;
    this.after = after;
    this.samples = samples;
    this.size = size;
    this.kinds = before ? ["before", "after", "difference"] : ["after"];
    this.made = new Map();
  }

  // Made when it is first looked at, with what few of its mistakes are above.
  of(which) {
    if (!this.made.has(which)) {
      const isDifference = which === "difference";
      const matrix = isDifference ? this.worsening() : this.rates(this[which]);
      this.made.set(which, { matrix, top: largeMistake(matrix) });
    }
    return this.made.get(which);
  }

  // The change for the worse: more mistakes are, and fewer right ones, on the diagonal.
  worsening() {
    const matrix = this.rates(this.after, this.before);
    matrix.forEach((line, row) => (line[row] *= -1));
    return matrix;
  }

  // Counts are subtracted before they become rates, so that equal ones leave nothing.
  rates(counted, less = null) {
    const matrix = Array.from({ length: this.size }, () => new Float32Array(this.size));
    for (const [cells, sign] of [[counted, 1], ...(less ? [[less, -1]] : [])]) {
      const [rows, columns, counts] = cells;
      for (let at = 0; at < rows.length; at += 1)
        matrix[rows[at]][columns[at]] += sign * counts[at];
    }
    matrix.forEach((line, row) => {
      const scale = 100 / Math.max(this.samples[row], 1);
      for (let column = 0; column < line.length; column += 1) line[column] *= scale;
    });
    return matrix;
  }

  at(which, row, column) {
    return this.of(which).matrix[row][column];
  }

  // The matrix as plotly takes it, with blocks of `step` by `step` cells drawn as one.
  cells(which, step) {
    const { matrix } = this.of(which);
    const start = (step - 1) / 2;
    const z = step === 1 ? matrix : thinned(matrix, step);
    return { z, x0: start, dx: step, y0: start, dy: step };
  }

  // Row and column of what is seen at a place: of a block, its most extreme cell.
  seen(which, y, x, step) {
    const [top, left] = [y, x].map((at) => Math.round(at - (step - 1) / 2));
    return extreme(this.of(which).matrix, top, left, step);
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
  for (let row = 0; row < matrix.length; row += 1) {
    const line = matrix[row];
    for (let column = 0; column < line.length; column += 1) {
      if (line[column] !== 0 && row !== column) values.push(Math.abs(line[column]));
    }
  }
  if (!values.length) return 1;
  const sorted = Float32Array.from(values).sort();
  const all = matrix.length * (matrix.length - 1);
  const place = Math.floor(share * all) - (all - sorted.length);
  return sorted[Math.min(Math.max(0, place), sorted.length - 1)];
}
