// The panel beside the picture: the run when nothing is chosen, else one kernel.

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function milliseconds(time) {
  if (!time) return null;
  const digits = (value) => String(Number(value.toPrecision(4)));
  return `${digits(time.median)} ms [${digits(time.low)}, ${digits(time.high)}]`;
}

class Panel {
  constructor(root, data, choose) {
    this.root = root;
    this.data = data;
    this.choose = choose;
    this.nodes = new Map(data.nodes.map((node) => [node.id, node]));
    this.tab = "diff";
  }

  link(id) {
    const node = this.nodes.get(id);
    const made = element("button", { type: "button", class: "link" }, `${id}  ${node ? outcome(node) : ""}`);
    if (node) made.addEventListener("click", () => this.choose(id, true));
    else made.disabled = true;
    return made;
  }

  links(title, ids) {
    if (!ids.length) return [];
    return [element("h3", {}, title), element("div", { class: "kinlist" }, ...ids.map((id) => this.link(id)))];
  }

  facts(pairs) {
    const list = element("dl", {});
    for (const [name, value] of pairs) {
      if (value === null || value === undefined || value === "") continue;
      list.append(element("dt", {}, name), element("dd", {}, String(value)));
    }
    return list;
  }

  /** The run: its state and the winner's path as a table of links. */
  overview() {
    const { run } = this.data;
    const rows = run.path.map((id) => {
      const node = this.nodes.get(id);
      const percent = node.speedup === undefined ? node.status : `${(node.speedup * 100).toFixed(1)}%`;
      return element("tr", {},
        element("td", { class: "number" }, String(node.generation)),
        element("td", { class: "number" }, node.time_ms ? `${Number(node.time_ms.median.toPrecision(4))} ms` : ""),
        element("td", { class: "number" }, percent),
        element("td", {}, node.headline),
        element("td", {}, this.link(id)));
    });
    const head = ["round", "time", `% of ${run.baseline}`, "idea", ""].map((text) => element("th", {}, text));
    const table = element("table", {}, element("tr", {}, ...head), ...rows);
    this.root.replaceChildren(
      element("h2", {}, "The winner's path"),
      rows.length ? table : element("p", {}, "No kernel was accepted yet."),
      element("h3", {}, "How to use"),
      element("p", {}, "Click a kernel, or Tab into the picture: left is its mother, right its best child, "
        + "up and down its neighbours, Enter opens, Escape comes back here, Home and End go to the port and the winner."));
  }

  kernel(id) {
    const node = this.nodes.get(id);
    if (node.kind === "migrant") return this.kernel(node.of);
    const verdict = node.verdict;
    const children = this.data.nodes.filter((one) => (one.parents || []).includes(id));
    const arrivals = this.data.nodes.filter((one) => one.of === id);
    const badge = element("span", { class: "badge" }, node.status);
    const back = element("button", { type: "button", class: "link" }, "Back to the run");
    back.addEventListener("click", () => this.choose(null, false));
    const parts = [
      element("h2", {}, id, " ", node.speedup === undefined ? "" : times(node.speedup)),
      element("p", {}, badge, node.winner ? element("span", { class: "badge" }, "winner") : null,
        node.certificate ? element("span", { class: "badge" }, `certificate ${node.certificate}`) : null,
        verdict.precision?.tier ? element("span", { class: "badge" }, `tier ${verdict.precision.tier}`) : null, back),
      verdict.reason ? element("p", { class: "reason" }, verdict.reason) : null,
      element("p", { class: "idea" }, node.headline,
        element("br", {}), element("small", {}, node.category || "no idea")),
      this.times(node),
      ...this.links("Parents", node.parents),
      ...this.links("Children", children.map((one) => one.id)),
      ...(arrivals.length ? [element("h3", {}, "Migrated"),
        element("p", {}, arrivals.map((one) => `to island ${one.island} in generation ${one.generation}`).join("; "))] : []),
      this.code(node)];
    this.root.replaceChildren(...parts.filter((part) => part !== null));
    this.root.scrollTop = 0;
  }

  times(node) {
    const { verdict } = node, precision = verdict.precision;
    const share = verdict.roofline_share;
    const error = (value) => value === null || value === undefined ? "unknown" : value.toExponential(1);
    const pairs = [
      ["time", milliseconds(verdict.time_ms)],
      ...Object.entries(verdict.baselines || {}).map(([name, base]) => [`PyTorch ${name}`, milliseconds(base)]),
      ["speedup", Object.entries(verdict.speedup || {}).map(([name, value]) => `${times(value)} ${name}`).join(", ")],
      ["gain", node.gain === undefined ? null : `${times(node.gain)} over its mother`],
      ["roofline", share ? `${(share * 100).toFixed(0)}% of ${verdict.roofline_ceiling}` : null],
      ["error", precision ? `${error(precision.error)} (PyTorch's own ${error(precision.reference_error)})` : null],
      ["device", verdict.device],
      ["operator", `${node.operator}, by ${node.author}`],
      ["birth", `island ${node.island}, generation ${node.generation}`],
      ...(verdict.resources || []).map((one) => [one.function,
        `${one.registers} registers, ${one.shared_bytes} B shared, ${one.spill_bytes} B spilled`]),
    ];
    return this.facts(pairs);
  }

  /** Tabs: the source, and its difference to each parent. */
  code(node) {
    const tabs = element("div", { role: "tablist", "aria-label": "Code" });
    const box = element("pre", { role: "tabpanel", tabindex: "0", id: "code" });
    const views = [["source", "Source", () => this.source(node)]];
    node.parents.forEach((parent, at) => {
      if (!this.nodes.has(parent)) return;
      const name = at === 0 ? "diff" : `diff${at}`;
      views.push([name, `Diff to ${parent}`, () => this.diff(this.nodes.get(parent), node)]);
    });
    const show = (name) => {
      this.tab = name;
      for (const tab of tabs.children) tab.setAttribute("aria-selected", String(tab.dataset.name === name));
      box.replaceChildren(...views.find(([key]) => key === name)[2]());
    };
    for (const [name, title] of views) {
      const tab = element("button", { type: "button", role: "tab", "aria-controls": "code" }, title);
      tab.dataset.name = name;
      tab.addEventListener("click", () => show(name));
      tabs.append(tab);
    }
    show(views.some(([key]) => key === this.tab) ? this.tab : "source");
    return element("div", {}, tabs, box);
  }

  source(node) {
    return this.data.sources[node.source].split("\n").map((line) => element("span", {}, line || " "));
  }

  diff(parent, node) {
    const lines = unified(differences(this.data.sources[parent.source], this.data.sources[node.source]));
    if (!lines.length) return ["The sources are equal."];
    const kinds = { "+": "add", "-": "del", "@": "hunk", " ": "same" };
    return lines.map(([tag, text]) => element("span", { class: kinds[tag] }, tag === "@" ? text : `${tag} ${text}`));
  }
}
