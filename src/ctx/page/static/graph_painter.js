// Paints a graph into a canvas. It knows nothing of the page, so that a worker can use it.
//
// scene: x, y, radius (Float32Array), group, cycle, hidden (Uint8Array) and label of each vertex;
//        source, target (Uint32Array) and inCycle (Uint8Array) of each edge; order, by importance
// view:  x, y (in the units of the layout, at the left upper corner), scale (pixels for a unit),
//        width, height (in pixels), ratio (pixels of the device)
// style: colours by group, which groups are squares, edge, cycle, text, ground, font

const EDGES_AT_ONCE = 256;
const MOST_LABELS = 120;
const LENGTHS = [42, 24, 14]; // of labels, as far as there is room
const SMALLEST_LABEL = 3.2;
const FEW = 60;

// The radius in pixels: a dot stays visible from afar, and a vertex does not cover its label.
export const sizeOf = (radius, scale) => Math.max(1, Math.min(10, radius * scale));

export function paint(context, scene, view, style) {
  const { ratio } = view;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, view.width, view.height);
  paintEdges(context, scene, view, style);
  paintVertices(context, scene, view, style);
  paintLabels(context, scene, view, style);
}

function paintEdges(context, scene, view, style) {
  const { x, y, hidden, source, target, inCycle } = scene;
  const { scale, width, height } = view;
  const withArrows = scale > 16;
  for (const cyclic of [0, 1]) {
    context.strokeStyle = context.fillStyle = cyclic ? style.cycle : style.edge;
    context.lineWidth = cyclic ? 1.6 : Math.min(1.2, Math.max(0.5, scale / 14));
    let waiting = 0;
    const heads = [];
    context.beginPath();
    for (let edge = 0; edge < source.length; edge++) {
      if (inCycle[edge] !== cyclic) continue;
      const one = source[edge];
      const other = target[edge];
      if (hidden[one] || hidden[other]) continue;
      const fromX = (x[one] - view.x) * scale;
      const toX = (x[other] - view.x) * scale;
      if ((fromX < 0 && toX < 0) || (fromX > width && toX > width)) continue;
      const fromY = (y[one] - view.y) * scale;
      const toY = (y[other] - view.y) * scale;
      if ((fromY < 0 && toY < 0) || (fromY > height && toY > height)) continue;
      context.moveTo(fromX, fromY);
      context.lineTo(toX, toY);
      if (withArrows) heads.push(fromX, fromY, toX, toY, sizeOf(scene.radius[other], scale));
      // One long path would be slower: all its lines are sorted together.
      if (++waiting === EDGES_AT_ONCE) {
        context.stroke();
        context.beginPath();
        waiting = 0;
      }
    }
    context.stroke();
    paintHeads(context, heads);
  }
}

function paintHeads(context, heads) {
  context.beginPath();
  for (let at = 0; at < heads.length; at += 5) {
    const [fromX, fromY, toX, toY, radius] = heads.slice(at, at + 5);
    const length = Math.hypot(toX - fromX, toY - fromY) || 1;
    const dx = (toX - fromX) / length;
    const dy = (toY - fromY) / length;
    const tipX = toX - dx * (radius + 1);
    const tipY = toY - dy * (radius + 1);
    context.moveTo(tipX, tipY);
    context.lineTo(tipX - dx * 7 - dy * 3, tipY - dy * 7 + dx * 3);
    context.lineTo(tipX - dx * 7 + dy * 3, tipY - dy * 7 - dx * 3);
  }
  context.fill();
}

function paintVertices(context, scene, view, style) {
  const { x, y, radius, group, cycle, hidden } = scene;
  const { scale, width, height } = view;
  const byGroup = style.colours.map(() => []);
  const rings = [];
  for (let each = 0; each < x.length; each++) {
    if (hidden[each]) continue;
    const atX = (x[each] - view.x) * scale;
    const atY = (y[each] - view.y) * scale;
    const size = sizeOf(radius[each], scale);
    if (atX < -size || atY < -size || atX > width + size || atY > height + size) continue;
    byGroup[group[each]].push(atX, atY, size);
    if (cycle[each] && size > 2.5) rings.push(atX, atY, size + 1.5);
  }
  byGroup.forEach((places, number) => {
    context.fillStyle = style.colours[number];
    context.beginPath();
    for (let at = 0; at < places.length; at += 3) {
      const [atX, atY, size] = [places[at], places[at + 1], places[at + 2]];
      if (style.squares[number] || size < 2) {
        context.rect(atX - size * 0.88, atY - size * 0.88, size * 1.76, size * 1.76);
      } else {
        context.moveTo(atX + size, atY);
        context.arc(atX, atY, size, 0, 2 * Math.PI);
      }
    }
    context.fill();
  });
  context.strokeStyle = style.cycle;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let at = 0; at < rings.length; at += 3) {
    context.moveTo(rings[at] + rings[at + 2], rings[at + 1]);
    context.arc(rings[at], rings[at + 1], rings[at + 2], 0, 2 * Math.PI);
  }
  context.stroke();
}

// Labels do not cover vertices, unless these are dots.
function cellsOfVertices({ x, y, hidden }, view) {
  const cells = new Set();
  for (let each = 0; each < x.length; each++) {
    if (hidden[each]) continue;
    const column = Math.floor(((x[each] - view.x) * view.scale) / 24);
    cells.add(Math.floor(((y[each] - view.y) * view.scale) / 12) * 4096 + column);
  }
  return cells;
}

const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// The cells that a label covers: 24 by 12 pixels each.
function cellsOf(start, y, length) {
  const cells = [];
  const to = Math.floor((start + 6.2 * length) / 24);
  for (const row of new Set([Math.floor((y - 6) / 12), Math.floor((y + 6) / 12)])) {
    for (let cell = Math.floor(start / 24); cell <= to; cell++) cells.push(row * 4096 + cell);
  }
  return cells;
}

// The most important labels that do not cover each other; none for dots.
function paintLabels(context, scene, view, style) {
  const { x, y, radius, hidden, label, order } = scene;
  const { scale, width, height } = view;
  context.font = style.font;
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = 3;
  const taken = scale > 9 ? cellsOfVertices(scene, view) : new Set();
  let left = MOST_LABELS;
  for (const each of order) {
    if (left === 0) break;
    const size = sizeOf(radius[each], scale);
    if (hidden[each] || (size < SMALLEST_LABEL && order.length > FEW)) continue;
    const atX = (x[each] - view.x) * scale;
    const atY = (y[each] - view.y) * scale;
    if (atX < 0 || atY < 0 || atX > width || atY > height) continue;
    const start = atX + size + 3;
    const own = Math.floor(atY / 12) * 4096 + Math.floor(atX / 24);
    const text = LENGTHS.map((most) => shortened(label[each], most)).find((each) => {
      const cells = cellsOf(start, atY, each.length);
      if (cells.some((cell) => cell !== own && taken.has(cell))) return false;
      for (const cell of cells) taken.add(cell);
      return true;
    });
    if (text === undefined) continue;
    context.strokeStyle = style.ground;
    context.strokeText(text, start, atY);
    context.fillStyle = style.text;
    context.fillText(text, start, atY);
    left -= 1;
  }
}
