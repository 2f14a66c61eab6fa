// Line differences: longest common subsequence between two texts, shown in unified form.

/** Lines as [tag, text, oldNumber, newNumber]; tag is " ", "-" or "+". */
function differences(before, after) {
  const a = before.split("\n"), b = after.split("\n");
  let start = 0, endA = a.length, endB = b.length;
  while (start < endA && start < endB && a[start] === b[start]) start++;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) { endA--; endB--; }
  const lines = [];
  for (let i = 0; i < start; i++) lines.push([" ", a[i], i + 1, i + 1]);
  changed(a.slice(start, endA), b.slice(start, endB), start, lines);
  for (let i = endA, j = endB; i < a.length; i++, j++) lines.push([" ", a[i], i + 1, j + 1]);
  return lines;
}

/** The part between the common beginning and the common end. */
function changed(a, b, offset, lines) {
  const n = a.length, m = b.length, wide = m + 1;
  const small = n * m <= 6e6;  // past that the whole part counts as replaced
  const length = small ? new Uint16Array((n + 1) * wide) : null;
  if (small) {
    for (let i = n - 1; i >= 0; i--) {
      for (let j = m - 1; j >= 0; j--) {
        length[i * wide + j] = a[i] === b[j]
          ? length[(i + 1) * wide + j + 1] + 1
          : Math.max(length[(i + 1) * wide + j], length[i * wide + j + 1]);
      }
    }
  }
  let i = 0, j = 0;
  while (i < n || j < m) {
    if (small && i < n && j < m && a[i] === b[j]) {
      lines.push([" ", a[i], offset + ++i, offset + ++j]);
    } else if (i < n && (j >= m || !small || length[(i + 1) * wide + j] >= length[i * wide + j + 1])) {
      lines.push(["-", a[i], offset + ++i, 0]);
    } else {
      lines.push(["+", b[j], 0, offset + ++j]);
    }
  }
}

/** Only what is within three lines of a change; a gap becomes one "@" line. */
function unified(lines, context = 3) {
  const near = new Uint8Array(lines.length);
  lines.forEach(([tag], at) => {
    if (tag !== " ") near.fill(1, Math.max(0, at - context), at + context + 1);
  });
  const shown = [];
  lines.forEach((line, at) => {
    if (!near[at]) return;
    if (at === 0 || !near[at - 1]) shown.push(["@", `@@ line ${line[2] || line[3]} @@`]);
    shown.push(line);
  });
  return shown;
}
