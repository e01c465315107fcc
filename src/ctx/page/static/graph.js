// The graph: a worker paints it, this module moves the painted picture and handles what is chosen.

import { sizeOf } from "./graph_painter.js";

const MARGIN = 0.35; // painted beyond each side of the stage, so that moving shows no gap
const SQUARES = ["file", "item", "package", "diagnostic"];
const GROUPS = ["decision", "pattern", "fact", "observation", "task", "summary", "source", "question", ...SQUARES];
const CELL = 4; // of the grid in which vertices are looked up, in units of the layout
const MOST_LISTED = 40;
const STEP = 60; // pixels that an arrow key moves

const section = document.getElementById("graph");

function note(text) {
  section.querySelector(".stage-note").textContent = text;
}

async function start(section) {
  // A live update must not replace the canvas.
  document.querySelector("main").setAttribute("data-keep", "");
  const drawing = new Drawing(section);
  drawing.take(await read());
  drawing.fit();
  note("");
  document.addEventListener("ctx:changed", async () => drawing.take(await read()));
}

async function read() {
  const address = `${section.dataset.root}api/v1/graph?project=${section.dataset.place}&${section.dataset.parameters}`;
  const response = await fetch(address);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.message);
  return answer;
}

class Drawing {
  constructor(section) {
    this.base = section.dataset.base;
    this.stage = section.querySelector(".stage");
    this.canvas = section.querySelector("canvas");
    this.context = this.canvas.getContext("2d");
    this.panel = section.querySelector(".chosen-node");
    this.list = section.querySelector(".graph-list");
    this.find = section.querySelector("#graph-find");
    this.view = { x: 0, y: 0, scale: 1 };
    this.chosen = this.over = -1;
    this.moved = [];
    this.worker = new Worker(new URL("./graph_worker.js", import.meta.url), { type: "module" });
    this.worker.onmessage = ({ data }) => this.painted(data);
    this.isPainting = this.isStale = this.isWaiting = false;
    this.picture = null;
    this.readStyle();
    this.listen(section);
    this.resize();
  }

  readStyle() {
    const values = getComputedStyle(document.documentElement);
    const value = (name) => values.getPropertyValue(name).trim();
    this.style = {
      colours: GROUPS.map((group) => value(`--group-${group}`)),
      squares: GROUPS.map((group) => SQUARES.includes(group)),
      edge: value("--graph-edge"),
      cycle: value("--bad"),
      text: value("--text"),
      ground: value("--raised"),
      accent: value("--accent"),
      font: `11px ${getComputedStyle(document.body).fontFamily}`,
    };
    this.worker.postMessage({ style: this.style });
  }

  take(graph) {
    const previous = this.vertices?.[this.chosen]?.id ?? graph.start;
    this.vertices = graph.vertices;
    this.edges = graph.edges;
    this.size = { width: graph.width, height: graph.height };
    const count = graph.vertices.length;
    const degree = new Uint32Array(count);
    this.beside = Array.from({ length: count }, () => []);
    graph.edges.forEach((edge, number) => {
      degree[edge.source]++;
      degree[edge.target]++;
      this.beside[edge.source].push(number);
      if (edge.target !== edge.source) this.beside[edge.target].push(number);
    });
    this.degree = degree;
    const order = Uint32Array.from({ length: count }, (_, each) => each);
    this.scene = {
      x: Float32Array.from(graph.vertices, (each) => each.x),
      y: Float32Array.from(graph.vertices, (each) => each.y),
      radius: Float32Array.from(degree, (each) => 0.42 + Math.min(0.5, Math.sqrt(each) * 0.05)),
      group: Uint8Array.from(graph.vertices, (each) => GROUPS.indexOf(each.group)),
      cycle: Uint8Array.from(graph.vertices, (each) => Math.min(each.cycle, 1)),
      hidden: new Uint8Array(count),
      label: graph.vertices.map((each) => each.label),
      source: Uint32Array.from(graph.edges, (each) => each.source),
      target: Uint32Array.from(graph.edges, (each) => each.target),
      inCycle: Uint8Array.from(graph.edges, (each) => (each.in_cycle ? 1 : 0)),
      order: order.sort((one, other) => degree[other] - degree[one] || one - other),
    };
    this.worker.postMessage({ scene: this.scene });
    this.hide();
    this.buildGrid();
    this.chosen = graph.vertices.findIndex((each) => each.id === previous);
    this.showList();
    if (this.chosen >= 0) this.showChosen();
    this.change();
  }

  // Painting

  resize() {
    const { clientWidth, clientHeight } = this.stage;
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    this.width = clientWidth;
    this.height = clientHeight;
    this.canvas.width = Math.round(clientWidth * this.ratio);
    this.canvas.height = Math.round(clientHeight * this.ratio);
    if (this.scene) this.change();
  }

  // Something to paint has changed. While the worker paints, the last picture is moved.
  change() {
    this.isStale = true;
    this.order();
    this.draw();
  }

  order() {
    if (this.isPainting || !this.isStale || !this.scene) return;
    this.isPainting = true;
    this.isStale = false;
    const { x, y, scale } = this.view;
    const view = {
      x: x - (this.width * MARGIN) / scale,
      y: y - (this.height * MARGIN) / scale,
      scale,
      width: this.width * (1 + 2 * MARGIN),
      height: this.height * (1 + 2 * MARGIN),
      ratio: this.ratio,
    };
    this.worker.postMessage({ view, moved: this.moved });
    this.moved = [];
  }

  painted({ picture, view }) {
    this.picture?.picture.close();
    this.picture = { picture, view };
    this.isPainting = false;
    this.stage.dataset.painted = "";
    this.order();
    this.draw();
  }

  draw() {
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      this.drawFrame();
    });
  }

  drawFrame() {
    const { context, view } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    if (this.picture) {
      const from = this.picture.view;
      const grown = view.scale / from.scale;
      context.imageSmoothingEnabled = grown !== 1;
      const x = Math.round((from.x - view.x) * view.scale * this.ratio);
      const y = Math.round((from.y - view.y) * view.scale * this.ratio);
      const { width, height } = this.picture.picture;
      context.drawImage(this.picture.picture, x, y, width * grown, height * grown);
    }
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    if (this.chosen >= 0) this.drawNeighbours();
    if (this.over >= 0) this.drawRing(this.over);
  }

  place(each) {
    const { x, y, scale } = this.view;
    return [(this.scene.x[each] - x) * scale, (this.scene.y[each] - y) * scale];
  }

  drawNeighbours() {
    const { context } = this;
    context.strokeStyle = this.style.accent;
    context.lineWidth = 1.5;
    context.beginPath();
    for (const number of this.beside[this.chosen]) {
      const edge = this.edges[number];
      if (this.scene.hidden[edge.source] || this.scene.hidden[edge.target]) continue;
      this.line(edge.source, edge.target);
    }
    context.stroke();
    this.drawRing(this.chosen);
  }

  // A line from the rim of one vertex to the rim of another.
  line(one, other) {
    const [x, y] = this.place(one);
    const [toX, toY] = this.place(other);
    const length = Math.hypot(toX - x, toY - y);
    const [near, far] = [one, other].map((each) => sizeOf(this.scene.radius[each], this.view.scale));
    if (length <= near + far) return;
    const [dx, dy] = [(toX - x) / length, (toY - y) / length];
    this.context.moveTo(x + dx * near, y + dy * near);
    this.context.lineTo(toX - dx * far, toY - dy * far);
  }

  drawRing(each) {
    const { context, style } = this;
    const [x, y] = this.place(each);
    const size = sizeOf(this.scene.radius[each], this.view.scale);
    context.fillStyle = style.colours[this.scene.group[each]];
    context.strokeStyle = style.accent;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(x, y, Math.max(5, size + 3), 0, 2 * Math.PI);
    context.stroke();
    const label = this.scene.label[each];
    const text = label.length > 60 ? `${label.slice(0, 59)}…` : label;
    context.font = style.font;
    context.textBaseline = "middle";
    const width = context.measureText(text).width;
    const left = Math.max(4, Math.min(x + size + 8, this.width - width - 12));
    context.fillStyle = style.ground;
    context.fillRect(left - 4, y - 10, width + 8, 20);
    context.fillStyle = style.text;
    context.fillText(text, left, y);
  }

  // Moving

  fit() {
    const room = 1.06;
    const scale = Math.min(this.width / (this.size.width * room), this.height / (this.size.height * room));
    this.view.scale = Math.min(40, scale || 1);
    this.view.x = this.size.width / 2 - this.width / 2 / this.view.scale;
    this.view.y = this.size.height / 2 - this.height / 2 / this.view.scale;
    this.change();
  }

  pan(dx, dy) {
    this.view.x -= dx / this.view.scale;
    this.view.y -= dy / this.view.scale;
    this.change();
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const { view } = this;
    const scale = Math.max(0.3, Math.min(120, view.scale * factor));
    view.x += x / view.scale - x / scale;
    view.y += y / view.scale - y / scale;
    view.scale = scale;
    this.change();
  }

  centre(each) {
    this.view.scale = Math.max(this.view.scale, 12);
    this.view.x = this.scene.x[each] - this.width / 2 / this.view.scale;
    this.view.y = this.scene.y[each] - this.height / 2 / this.view.scale;
    this.change();
  }

  // Looking up vertices by place

  buildGrid() {
    this.grid = new Map();
    for (let each = 0; each < this.vertices.length; each++) this.intoGrid(each);
  }

  cell(x, y) {
    return Math.floor(x / CELL) * 65536 + Math.floor(y / CELL);
  }

  intoGrid(each) {
    const key = this.cell(this.scene.x[each], this.scene.y[each]);
    const cell = this.grid.get(key);
    if (cell) cell.push(each);
    else this.grid.set(key, [each]);
  }

  pick(x, y) {
    const { view, scene } = this;
    const atX = view.x + x / view.scale;
    const atY = view.y + y / view.scale;
    const reach = Math.min(CELL, Math.max(0.9, 8 / view.scale));
    let nearest = -1;
    let least = reach;
    for (const dx of [-CELL, 0, CELL]) {
      for (const dy of [-CELL, 0, CELL]) {
        for (const each of this.grid.get(this.cell(atX + dx, atY + dy)) ?? []) {
          if (scene.hidden[each]) continue;
          const away = Math.hypot(scene.x[each] - atX, scene.y[each] - atY);
          if (away < least) [nearest, least] = [each, away];
        }
      }
    }
    return nearest;
  }

  // Choosing

  choose(each) {
    this.chosen = each;
    this.showChosen();
    this.draw();
  }

  showChosen() {
    const element = (name, text, attributes = {}) => {
      const made = document.createElement(name);
      made.textContent = text;
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      return made;
    };
    const vertex = this.vertices[this.chosen];
    if (!vertex) {
      this.panel.replaceChildren(element("p", "Choose a node in the drawing or in the list.", { class: "quiet" }));
      return;
    }
    const about = element("p", "", { class: "about" });
    about.append(element("span", vertex.kind, { class: "type" }));
    if (vertex.created_at) about.append(element("time", new Date(vertex.created_at).toLocaleDateString("sv"), { title: vertex.created_at }));
    if (vertex.path) about.append(element("span", vertex.line ? `${vertex.path}:${vertex.line}` : vertex.path, { class: "wrap" }));
    if (vertex.cycle) about.append(element("span", `cycle ${vertex.cycle}`, { class: "cycle" }));
    const actions = element("p", "", { class: "actions" });
    actions.append(
      element("a", "Open", { class: "button", href: this.base + vertex.address }),
      element("a", "Graph around it", { class: "button", href: `${this.base}/graph?node=${encodeURIComponent(vertex.around)}` }),
    );
    const list = element("ul", "");
    for (const number of this.beside[this.chosen].slice(0, MOST_LISTED)) {
      const edge = this.edges[number];
      const outward = edge.source === this.chosen;
      const other = outward ? edge.target : edge.source;
      const line = element("li", "");
      const text = `${outward ? "→" : "←"} ${edge.type.toLowerCase().replaceAll("_", " ")}: ${this.vertices[other].label}`;
      line.append(element("button", text, { type: "button", "data-vertex": other, title: this.vertices[other].label }));
      list.append(line);
    }
    const more = this.beside[this.chosen].length - MOST_LISTED;
    if (more > 0) list.append(element("li", `and ${more} more`, { class: "quiet" }));
    this.panel.replaceChildren(element("h2", vertex.label || "(no text)"), about, actions, list);
    for (const button of this.list.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.vertex) === this.chosen));
    }
  }

  showList() {
    const wanted = this.find.value.trim().toLowerCase();
    const shown = [];
    for (const each of this.scene.order) {
      if (shown.length === MOST_LISTED) break;
      const vertex = this.vertices[each];
      const isIn = !wanted || `${vertex.label} ${vertex.kind} ${vertex.id}`.toLowerCase().includes(wanted);
      if (isIn && !this.scene.hidden[each]) shown.push(each);
    }
    const lines = shown.map((each) => {
      const line = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.vertex = each;
      button.textContent = this.vertices[each].label || "(no text)";
      button.title = `${this.vertices[each].kind}: ${this.vertices[each].label}`;
      button.setAttribute("aria-pressed", String(each === this.chosen));
      line.append(button);
      return line;
    });
    if (!lines.length) {
      const line = document.createElement("li");
      line.className = "quiet";
      line.textContent = "No node matches.";
      lines.push(line);
    }
    this.list.replaceChildren(...lines);
  }

  hide() {
    const off = [...document.querySelectorAll(".legend input[data-group]")]
      .filter((box) => !box.checked)
      .map((box) => GROUPS.indexOf(box.dataset.group));
    const { hidden, group } = this.scene;
    for (let each = 0; each < hidden.length; each++) hidden[each] = off.includes(group[each]) ? 1 : 0;
    this.worker.postMessage({ hidden });
  }

  // Events

  listen(section) {
    const { stage } = this;
    new ResizeObserver(() => this.resize()).observe(stage);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.readStyle();
      this.change();
    });
    stage.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), ...this.inside(event));
    }, { passive: false });
    stage.addEventListener("keydown", (event) => this.key(event));
    this.listenToPointers();
    this.find.addEventListener("input", () => this.showList());
    for (const part of [this.list, this.panel]) {
      part.addEventListener("click", ({ target }) => {
        const button = target.closest("[data-vertex]");
        if (!button) return;
        this.choose(Number(button.dataset.vertex));
        this.centre(this.chosen);
      });
    }
    this.list.addEventListener("focusin", ({ target }) => {
      this.over = Number(target.dataset.vertex ?? -1);
      this.draw();
    });
    section.querySelector(".legend").addEventListener("change", () => {
      this.hide();
      this.showList();
      this.change();
    });
    section.querySelector(".tools").addEventListener("click", ({ target }) => {
      const way = target.dataset.zoom;
      if (way === "fit") this.fit();
      else if (way) this.zoom(way === "in" ? 1.4 : 1 / 1.4);
    });
  }

  inside(event) {
    const box = this.stage.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  key(event) {
    if (event.target !== this.stage || event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
    if (moves[event.key]) this.pan(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(1.3);
    else if (event.key === "-") this.zoom(1 / 1.3);
    else if (event.key === "0") this.fit();
    else if (event.key === "Escape") this.choose(-1);
    else if (event.key === "Enter" && this.chosen >= 0) location.href = this.base + this.vertices[this.chosen].address;
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  listenToPointers() {
    const { stage } = this;
    const fingers = new Map();
    let held = -1;
    let travelled = 0;
    stage.addEventListener("pointerdown", (event) => {
      if (event.target.closest("button") || event.button > 0 || !this.scene) return;
      stage.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, this.inside(event));
      travelled = 0;
      held = fingers.size === 1 ? this.pick(...this.inside(event)) : -1;
      stage.classList.add("dragging");
    });
    stage.addEventListener("pointermove", (event) => {
      const [x, y] = this.inside(event);
      const last = fingers.get(event.pointerId);
      if (!last) return this.hover(x, y);
      const [dx, dy] = [x - last[0], y - last[1]];
      travelled += Math.abs(dx) + Math.abs(dy);
      if (fingers.size === 2) {
        const [one, other] = [...fingers.keys()];
        const away = () => Math.hypot(fingers.get(one)[0] - fingers.get(other)[0], fingers.get(one)[1] - fingers.get(other)[1]);
        const before = away();
        fingers.set(event.pointerId, [x, y]);
        this.zoom(away() / (before || 1), x, y);
      } else {
        fingers.set(event.pointerId, [x, y]);
        if (held < 0) this.pan(dx, dy);
        else if (travelled > 3) this.drag(held, dx, dy);
      }
    });
    const release = (event) => {
      if (!fingers.delete(event.pointerId)) return;
      stage.classList.remove("dragging");
      if (event.type === "pointerup" && travelled <= 3) this.choose(held);
      else if (held >= 0) this.buildGrid();
      held = -1;
    };
    stage.addEventListener("pointerup", release);
    stage.addEventListener("pointercancel", release);
    stage.addEventListener("pointerleave", () => this.hover(-1e6, -1e6));
    stage.addEventListener("dblclick", (event) => {
      const each = this.pick(...this.inside(event));
      if (each >= 0) location.href = this.base + this.vertices[each].address;
    });
  }

  hover(x, y) {
    if (!this.scene) return;
    const over = this.pick(x, y);
    if (over === this.over) return;
    this.over = over;
    this.stage.classList.toggle("over", over >= 0);
    this.draw();
  }

  drag(each, dx, dy) {
    this.scene.x[each] += dx / this.view.scale;
    this.scene.y[each] += dy / this.view.scale;
    this.moved.push([each, this.scene.x[each], this.scene.y[each]]);
    this.change();
  }
}

if (section) start(section).catch((error) => note(`The graph could not be loaded: ${error.message}`));
