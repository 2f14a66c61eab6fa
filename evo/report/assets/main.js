// Ties the picture, the panel, the tools and the keyboard together.

const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
for (const node of data.nodes) {
  node.text = [node.id, node.headline, node.category, node.operator, node.author, node.status,
    node.verdict?.reason, node.winner ? "winner" : "", node.certificate ? `certificate ${node.certificate}` : ""].join(" ").toLowerCase();
}
const stage = find("stage");
const picture = new Picture(find("picture"), data);
let current = null, matches = [];

function choose(id, move) {
  current = id;
  picture.isolate(id);
  if (id === null) panel.overview();
  else { panel.kernel(id); stop(id); if (move) reveal(id); }
}
const panel = new Panel(find("panel"), data, choose);

/** One node at a time is in the tab order: the chosen one, else the winner, else the first. */
function stop(id) {
  for (const mark of picture.marks.values()) mark.setAttribute("tabindex", "-1");
  picture.marks.get(id)?.setAttribute("tabindex", "0");
}

function reveal(id) {
  picture.marks.get(id).scrollIntoView({ block: "nearest", inline: "nearest" });
}

function title() {
  find("title").textContent = data.run.name;
  find("subtitle").textContent = data.run.subtitle;
}

function statuses() {
  const counts = new Map();
  for (const node of data.nodes) {
    if (node.kind === "kernel") counts.set(node.status, (counts.get(node.status) || 0) + 1);
  }
  const boxes = [...counts].map(([name, count]) => {
    const box = element("input", { type: "checkbox", value: name });
    box.checked = true;
    return element("label", {}, box, name, element("small", {}, String(count)));
  });
  find("statuses").append(...boxes);
  find("statuses").addEventListener("change", () => {
    const checked = find("statuses").querySelectorAll("input:checked");
    picture.filter(new Set([...checked].map((box) => box.value)));
  });
}

function colours() {
  const choices = { status: "by status", category: "by idea category", operator: "by operator", author: "by author" };
  for (const [key, text] of Object.entries(choices)) find("colour").append(element("option", { value: key }, text));
  find("colour").addEventListener("change", () => legend(picture.paint(find("colour").value)));
  legend(picture.paint("status"));
}

function legend(entries) {
  const sample = (path, attributes, text) => {
    const mark = svg("svg", { width: 18, height: 18, viewBox: "-9 -9 18 18", "aria-hidden": "true" });
    svg("path", { d: path, ...attributes }, mark);
    return element("span", {}, mark, text);
  };
  const line = (attributes, text) => sample("M-9 0H9", { fill: "none", "stroke-width": 2.4, ...attributes }, text);
  const style = getComputedStyle(document.documentElement);
  const path = style.getPropertyValue("--path"), move = style.getPropertyValue("--move");
  const failed = find("colour").value === "status";
  find("legend").replaceChildren(
    ...entries.map(([name, colour]) => sample(failed && name !== "ok" ? CROSS : CIRCLE,
      failed && name !== "ok" ? { stroke: colour.startsWith("var") ? "currentColor" : colour, "stroke-width": 2 } : { fill: colour }, name)),
    line({ stroke: path }, "winner's path"),
    line({ stroke: move, "stroke-dasharray": "4 3" }, "migration"),
    ...(data.nodes.some((node) => node.certificate === "failed")
      ? [sample(RING, { fill: "none", stroke: style.getPropertyValue("--fault"), "stroke-width": 1.4 }, "failed its certificate")] : []),
    ...Object.entries(SHAPES).filter(([name]) => data.nodes.some((node) => node.operator === name))
      .map(([name, form]) => sample(form, { fill: "currentColor" }, name)));
}

function search() {
  matches = picture.search(find("search").value);
  find("found").textContent = find("search").value.trim() ? `${matches.length} of ${data.nodes.length}` : "";
}

const ORDER = (a, b) => a.y - b.y || a.x - b.x;

/** Where an arrow key leads from a node. */
function neighbour(id, key) {
  const node = picture.nodes.get(id);
  const visible = (one) => one && !picture.marks.get(one.id).classList.contains("gone");
  if (key === "Home") return data.run.path[0];
  if (key === "End") return data.run.winner;
  if (key === "ArrowLeft") return node.of || node.parents[0];
  if (key === "ArrowRight") {
    const children = data.nodes.filter((one) => (one.parents || []).includes(node.of || id) && visible(one));
    return children.sort((a, b) => (b.speedup || 0) - (a.speedup || 0))[0]?.id;
  }
  const column = data.nodes.filter((one) => one.generation === node.generation && visible(one)).sort(ORDER);
  return column[column.indexOf(node) + (key === "ArrowDown" ? 1 : -1)]?.id;
}

function keys(event) {
  const id = event.target.closest?.(".node")?.dataset.id;
  if (!id) return;
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(id, false); return; }
  if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) return;
  event.preventDefault();
  const next = neighbour(id, event.key);
  if (!next || !picture.marks.has(next)) return;
  stop(next);
  picture.marks.get(next).focus({ preventScroll: true });
  reveal(next);
}

function wire() {
  picture.root.addEventListener("click", (event) => {
    const id = event.target.closest(".node")?.dataset.id;
    choose(id === undefined ? null : id, false);
  });
  picture.root.addEventListener("keydown", keys);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && current) choose(null, false); });
  find("search").addEventListener("input", search);
  find("search").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !matches.length) return;
    choose(matches[(matches.indexOf(current) + 1) % matches.length], true);
  });
  find("smaller").addEventListener("click", () => picture.zoom(picture.scale / 1.25));
  find("larger").addEventListener("click", () => picture.zoom(picture.scale * 1.25));
  find("fit").addEventListener("click", () => picture.fit(stage));
  find("towinner").disabled = !data.run.winner;
  find("towinner").addEventListener("click", () => choose(data.run.winner, true));
  stage.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    picture.zoom(picture.scale * (event.deltaY < 0 ? 1.1 : 1 / 1.1));
  }, { passive: false });
}

function theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const set = (on) => {
    document.documentElement.dataset.theme = on ? "dark" : "light";
    legend(picture.paint(find("colour").value || "status"));
  };
  find("theme").addEventListener("click", () => set(document.documentElement.dataset.theme !== "dark"));
  dark.addEventListener("change", () => set(dark.matches));
  set(dark.matches);
}

title();
statuses();
colours();
wire();
theme();
picture.fit(stage);
stop(data.run.winner || data.nodes[0]?.id);
if (data.run.winner) reveal(data.run.winner);
panel.overview();
const wanted = decodeURIComponent(location.hash.slice(1));
if (picture.nodes.has(wanted)) choose(wanted, true);
