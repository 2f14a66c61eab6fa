// Draws lanes, edges and nodes. Every text goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";
const STATUS = {
  ok: "#3b76af", rejected: "#8a8a86", compile_error: "#b07d12", launch_error: "#a5671f",
  timeout: "#7b6fb0", crashed: "#a03d6b", incorrect: "#c0392b", hack: "var(--ink)", pending: "#9a9a96",
};
const PALETTE = ["#3b76af", "#3f9142", "#b07d12", "#8d5fb0", "#c2557a", "#2f9a9a", "#8b6d4f", "#6c7a2d"];
const SHAPES = {  // by operator; any other is a circle
  port: "M-5-5H5V5H-5Z", crossover: "M0-6.5L6.5 0L0 6.5L-6.5 0Z", tuning: "M0-6L6 5H-6Z",
  repair: "M-3-5.5H3L6 0L3 5.5H-3L-6 0Z",
};
const CIRCLE = "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0-5 0Z";
const RING = "M-8 0A8 8 0 1 0 8 0A8 8 0 1 0-8 0Z";
const CROSS = "M-4-4L4 4M4-4L-4 4";
const STAR = "M0-10L2.6-3.4L9.5-3.1L4.1 1.3L5.9 8.1L0 4.2L-5.9 8.1L-4.1 1.3L-9.5-3.1L-2.6-3.4Z";

function svg(name, attributes, parent, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function times(value) {
  return value === undefined || value === null ? "" : `${Number(value.toPrecision(3))}x`;
}

function outcome(node) {
  return node.speedup === undefined ? node.status : times(node.speedup);
}

function shape(node) {
  if (node.winner) return STAR;
  if (node.kind === "migrant") return CIRCLE;
  if (node.speedup === undefined) return CROSS;
  return Object.hasOwn(SHAPES, node.operator) ? SHAPES[node.operator] : CIRCLE;
}

class Picture {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.nodes = new Map(data.nodes.map((node) => [node.id, node]));
    this.marks = new Map();
    this.lines = [];
    this.scale = 1;
    this.frame();
    this.edges();
    this.draw();
    root.style.setProperty("--faint", String(Math.max(0.1, Math.min(0.45, 60 / data.edges.length))));
  }

  frame() {
    const { lanes, columns, width } = this.data.plan;
    const back = svg("g", { "aria-hidden": "true" }, this.root);
    for (const lane of lanes) {
      columns.forEach((column, at) => {
        if (at % 2) return;
        svg("rect", { class: "band", x: column.x - column.width / 2, y: lane.top,
                      width: column.width, height: lane.height }, back);
      });
      for (const [y, value] of lane.ticks) {
        svg("line", { class: value === 1 ? "axis one" : "axis", x1: 58, x2: width, y1: y, y2: y }, back);
        svg("text", { class: "tick", x: 54, y: y + 4, "text-anchor": "end" }, back, times(value));
      }
      svg("line", { class: "strip", x1: 58, x2: width, y1: lane.failures - 12, y2: lane.failures - 12 }, back);
      svg("text", { class: "lane", x: 8, y: lane.top + 12 }, back, `island ${lane.island}`);
      svg("text", { class: "tick", x: 54, y: lane.failures + 4, "text-anchor": "end" }, back, "failed");
    }
    for (const column of columns) {
      svg("text", { class: "head", x: column.x, y: 17, "text-anchor": "middle" }, back,
          column.generation === columns[0].generation ? `generation ${column.generation}` : column.generation);
    }
  }

  edges() {
    const layer = svg("g", { "aria-hidden": "true" }, this.root);
    for (const edge of this.data.edges) {
      const from = this.nodes.get(edge.via || edge.from), to = this.nodes.get(edge.to);
      const bend = Math.max(8, (to.x - from.x) * 0.45);
      const path = `M${from.x} ${from.y}C${from.x + bend} ${from.y} ${to.x - bend} ${to.y} ${to.x} ${to.y}`;
      const kinds = ["edge", edge.kind, edge.role || "", edge.path ? "path" : "",
        to.speedup === undefined ? "lost" : ""].join(" ");
      this.lines.push({ edge, mark: svg("path", { d: path, class: kinds }, layer) });
    }
    for (const { edge, mark } of this.lines) if (edge.path) layer.append(mark);  // on top
  }

  draw() {
    const layer = svg("g", {}, this.root);
    const order = [...this.data.nodes].sort((a, b) => a.on_path - b.on_path);
    for (const node of order) {
      const kinds = ["node", node.kind, node.on_path ? "path" : "", node.speedup === undefined ? "failed" : ""];
      const mark = svg("g", { class: kinds.join(" "), transform: `translate(${node.x} ${node.y})`,
        role: "button", tabindex: "-1", "aria-label": this.spoken(node) }, layer);
      svg("circle", { class: "halo", r: node.winner ? 12 : 9 }, mark);
      if (node.certificate === "failed") svg("path", { class: "ring", d: RING }, mark);
      svg("path", { class: "shape", d: shape(node) }, mark);
      svg("title", {}, mark, this.spoken(node));
      mark.dataset.id = node.id;
      this.marks.set(node.id, mark);
    }
  }

  spoken(node) {
    const what = node.kind === "migrant" ? `${node.of} arrived on island ${node.island}` : node.id;
    const fault = node.certificate === "failed" ? ", failed its certificate" : "";
    return `${what}: ${outcome(node)}${fault}, ${node.headline}`;
  }

  /** Colour by a property; returns the legend's entries. */
  paint(key) {
    const kernels = this.data.nodes.filter((node) => node.kind === "kernel");
    const values = [...new Set(kernels.map((node) => node[key] ?? "none"))].map(String).sort();
    const colour = (value, status) => key === "status" ? STATUS[status] || "#9a9a96"
      : PALETTE[values.indexOf(value) % PALETTE.length];
    for (const node of this.data.nodes) {
      const fill = colour(String(node[key] ?? "none"), node.status);
      this.marks.get(node.id).style.setProperty("--colour", fill);
    }
    return values.map((value) => [value, colour(value, value)]);
  }

  zoom(factor) {
    this.scale = Math.max(0.15, Math.min(4, factor));
    const { width, height } = this.data.plan;
    this.root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.root.setAttribute("width", width * this.scale);
    this.root.setAttribute("height", height * this.scale);
  }

  fit(stage) {
    const { width, height } = this.data.plan;
    const whole = Math.min(stage.clientWidth / width, stage.clientHeight / height);
    this.zoom(Math.min(1.4, Math.max(whole, 0.75)));  // below that nothing can be read: scroll
  }

  /** Dim all but the ancestry and the children of a kernel; null shows everything. */
  isolate(id) {
    this.root.classList.toggle("isolated", id !== null);
    const kin = new Set(), lines = new Set();
    const climb = (name) => {
      if (kin.has(name)) return;
      kin.add(name);
      for (const line of this.lines) {
        if (line.edge.to !== name) continue;
        lines.add(line);
        if (line.edge.via) climb(line.edge.via);
        climb(line.edge.from);
      }
    };
    if (id !== null) {
      climb(id);
      for (const line of this.lines) {
        const start = line.edge.via || line.edge.from;
        if (start === id) { lines.add(line); kin.add(line.edge.to); }
      }
    }
    for (const [name, mark] of this.marks) {
      mark.classList.toggle("kin", kin.has(name));
      mark.classList.toggle("chosen", name === id);
    }
    for (const line of this.lines) line.mark.classList.toggle("kin", lines.has(line));
  }

  filter(statuses) {
    for (const node of this.data.nodes) {
      this.marks.get(node.id).classList.toggle("gone", !statuses.has(node.status));
    }
    for (const { edge, mark } of this.lines) {
      const ends = [this.nodes.get(edge.from), this.nodes.get(edge.to)];
      mark.classList.toggle("gone", ends.some((node) => !statuses.has(node.status)));
    }
  }

  /** Ids that hold every word of the query, in the order of birth. */
  search(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    this.root.classList.toggle("searched", words.length > 0);
    const found = [];
    for (const node of this.data.nodes) {
      const hit = words.length > 0 && words.every((word) => node.text.includes(word));
      this.marks.get(node.id).classList.toggle("match", hit);
      if (hit) found.push(node.id);
    }
    return found;
  }
}
