"use strict";
(async () => {
  const MAX_MARKERS = 1.5; // per pixel: above, ranges are drawn instead of markers
  const MIN_SPAN = 4; // steps
  const read = (id) => JSON.parse(document.getElementById(id).textContent);

  // Figures

  const figures = {}, pictures = {};
  for (const script of document.querySelectorAll("script[data-figure]")) {
    const name = script.dataset.figure;
    const views = await Bokeh.embed.embed_item(JSON.parse(script.textContent), name);
    pictures[name] = views.roots[0];
    figures[name] = pictures[name].model.document;
    paint(figures[name]);
  }

  function paint(figure) {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue("--" + name).trim();
    const font = getComputedStyle(document.body).fontFamily;
    for (const model of figure.all_models) {
      if (model.type.endsWith("Axis")) {
        model.setv({
          axis_line_color: colour("faint"), major_tick_line_color: colour("faint"),
          axis_label_text_color: colour("ink"), major_label_text_color: colour("ink"),
          axis_label_text_font: font, major_label_text_font: font,
        });
      } else if (model.type == "Grid") {
        model.grid_line_color = colour("rule");
      } else if (model.type == "Legend") {
        model.setv({label_text_color: colour("ink"), label_text_font: font});
      } else if (model.type == "GlyphRenderer" && model.name) {
        const own = Object.keys(model.glyph.attributes).filter((key) => /^(fill|line|text)_color$/.test(key));
        const hue = colour(model.name);
        model.glyph.setv(Object.fromEntries(own.filter((key) => model.glyph[key].value !== null).map((key) => [key, hue])));
      }
    }
  }

  const repaint = () => Object.values(figures).forEach(paint);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  for (const [event, printing] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(event, () => {
      document.documentElement.classList.toggle("printing", printing);
      repaint();
    });
  }

  // Series

  const data = read("series-data");
  const unpack = ({type, bytes}) => new globalThis[type](Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0)).buffer);
  const offsets = unpack(data.offsets), probabilities = unpack(data.probabilities), gaps = data.gaps.map(unpack);
  const columns = data.columns.map(({increment, value, state}) => {
    let step = 0;
    return {step: Int32Array.from(unpack(increment), (by) => step += by), value: unpack(value), state: unpack(state)};
  });
  const n_states = data.colours.length, total = offsets.at(-1);
  const model = (name) => figures.series.get_model_by_name(name);
  const x = model("x");

  let origin = 0, length = total; // of the sequences shown: all of them, or one whose steps are counted from 0

  function draw() {
    if (x.end - x.start < MIN_SPAN) show_around((x.start + x.end) / 2, MIN_SPAN);
    const first = Math.max(0, Math.round(x.start)) + origin;
    const last = Math.min(length - 1, Math.round(x.end)) + origin;
    const pixels = Math.max(100, document.getElementById("series").clientWidth - 80);
    columns.forEach((column, c) => {
      const begin = place(column.step, first), end = place(column.step, last + 1);
      const zoomed_in = !data.symbols && end - begin <= MAX_MARKERS * pixels;
      const every = zoomed_in ? Array.from({length: end - begin}, (_, i) => begin + i) : [];
      const {boxes, isolated} = ranges(column, begin, zoomed_in ? begin : end, first, last, pixels);
      model(`boxes-${c}`).data = boxes;
      model(`dots-${c}`).data = markers(column, zoomed_in ? every : isolated);
      model(`line-${c}`).data = line(column, every);
      model(`ideal-${c}`).data = idealised(column, every, data.levels?.[c]);
      model(`gaps-${c}`).data = visible_gaps(gaps[c], first, last, pixels);
      model(`borders-${c}`).data = borders(first, last);
    });
    model("strip").data = stacked(first, last, pixels);
    const [zero, apart] = data.axis;
    model("time")?.setv({start: zero + x.start * apart, end: zero + x.end * apart});
    model("borders-strip").data = borders(first, last);
  }

  // Index of the first entry of a sorted array that is at least `value`
  function place(sorted, value) {
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
  }

  function markers({step, value, state}, places) {
    const steps = places.map((i) => step[i]), states = places.map((i) => state[i]);
    return {
      x: steps.map((t) => t - origin), y: places.map((i) => value[i]), state: states.map((k) => data.labels[k]),
      colour: states.map((k) => data.colours[k]), marker: states.map((k) => data.markers[k % data.markers.length]),
      percent: steps.map((t, i) => Math.round(100 * probability(Math.floor(t / data.block), states[i]))),
    };
  }

  const probability = (block, state) => probabilities[block * n_states + state] / 255;

  // A line through the points, interrupted at missing values and between sequences
  function line({step, value}, places) {
    const points = {x: [], y: []};
    for (const i of places) {
      const gap = data.complete && step[i] > step[i - 1] + 1;
      if (points.x.length && (gap || place(offsets, step[i - 1] + 1) < place(offsets, step[i] + 1))) {
        points.x.push(NaN);
        points.y.push(NaN);
      }
      points.x.push(step[i] - origin);
      points.y.push(value[i]);
    }
    return points;
  }

  // Every step at the mean of its level
  function idealised({step, state}, places, levels) {
    const trace = {x: [], y: []};
    if (!levels) return trace;
    for (const i of places) {
      const ends = place(offsets, step[i - 1] + 1) < place(offsets, step[i] + 1);
      if (trace.x.length && (step[i] > step[i - 1] + 1 || ends)) {
        trace.x.push(NaN);
        trace.y.push(NaN);
      }
      trace.x.push(step[i] - origin - 0.5, step[i] - origin + 0.5);
      trace.y.push(levels[state[i]], levels[state[i]]);
    }
    return trace;
  }

  // Boxes from the minimum to the maximum of each state in bins that are one pixel wide; one box for each symbol.
  // A value whose bin and neighbouring bins have no other value of its state is returned in `isolated`: its box would be
  // too small to see.
  function ranges({step, value, state}, begin, end, first, last, pixels) {
    const width = Math.max(1, (last - first + 1) / pixels), bins = Math.ceil((last - first + 1) / width);
    const kinds = data.symbols || 1, n_boxes = bins * n_states * kinds;
    const low = new Float64Array(n_boxes).fill(Infinity), high = new Float64Array(n_boxes).fill(-Infinity);
    const count = new Uint32Array(n_boxes), index = new Uint32Array(n_boxes);
    for (let i = begin; i < end; i++) {
      const group = state[i] * kinds + (data.symbols ? value[i] : 0);
      const at = group * bins + Math.floor((step[i] - first) / width);
      low[at] = Math.min(low[at], value[i]);
      high[at] = Math.max(high[at], value[i]);
      count[at] += 1;
      index[at] = i;
    }
    const isolated = [];
    const boxes = {left: [], right: [], bottom: [], top: [], low: [], high: [], first: [], last: [], symbol: [],
      state: [], colour: []};
    for (let at = 0; at < n_boxes; at++) {
      if (count[at] == 0) continue;
      if (count[at] == 1 && !data.symbols && !count[at - 1] && !count[at + 1]) isolated.push(index[at]);
      const k = Math.floor(at / bins / kinds), left = first + (at % bins) * width - 0.5 - origin;
      boxes.left.push(left);
      boxes.right.push(left + width);
      boxes.bottom.push(low[at] - data.lane);
      boxes.top.push(high[at] + data.lane);
      boxes.low.push(low[at]);
      boxes.high.push(high[at]);
      boxes.first.push(Math.ceil(left));
      boxes.last.push(Math.ceil(left + width) - 1);
      boxes.symbol.push(data.symbols ? data.letters[low[at]] : "");
      boxes.state.push(data.labels[k]);
      boxes.colour.push(data.colours[k]);
    }
    return {boxes, isolated};
  }

  // Stacked probabilities, averaged over bins that are one pixel wide
  function stacked(first, last, pixels) {
    const areas = {left: [], right: [], bottom: [], top: [], state: [], colour: [], percent: [], first: [], last: []};
    const begin = Math.floor(first / data.block), end = Math.floor(last / data.block) + 1;
    const width = Math.max(1, Math.ceil((end - begin) / pixels));
    for (let block = begin; block < end; block += width) {
      const until = Math.min(block + width, end);
      const left = Math.max(first, block * data.block), right = Math.min(last + 1, until * data.block);
      let bottom = 0;
      for (let k = 0; k < n_states; k++) {
        let sum = 0;
        for (let i = block; i < until; i++) sum += probability(i, k);
        const height = sum / (until - block);
        if (height < 0.002) continue;
        areas.left.push(left - 0.5 - origin);
        areas.right.push(right - 0.5 - origin);
        areas.bottom.push(bottom);
        areas.top.push(bottom + height);
        areas.state.push(data.labels[k]);
        areas.colour.push(data.colours[k]);
        areas.percent.push(100 * height);
        areas.first.push(left - origin);
        areas.last.push(right - 1 - origin);
        bottom += height;
      }
    }
    return areas;
  }

  // Gaps that are wide enough to be visible
  function visible_gaps(gap, first, last, pixels) {
    const edges = {begin: [], end: []}, narrowest = (last - first + 1) / pixels / 2;
    for (let i = 0; i < gap.length; i += 2) {
      const begin = Math.max(gap[i], first), end = Math.min(gap[i + 1], last + 1);
      if (end - begin < narrowest || end <= begin) continue;
      edges.begin.push(begin - origin - 0.5);
      edges.end.push(end - origin - 0.5);
    }
    return edges;
  }

  // Borders between sequences, unless there are too many to draw
  function borders(first, last) {
    const inside = offsets.subarray(place(offsets, first + 1), place(offsets, last + 1));
    return {x: inside.length > 100 ? [] : Array.from(inside, (at) => at - origin - 0.5)};
  }

  let waiting = false;
  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  }

  // Panning and zooming

  function show_around(middle, steps) {
    const span = Math.min(length, Math.max(MIN_SPAN, steps));
    const start = Math.min(Math.max(middle - span / 2, -0.5), length - 0.5 - span);
    x.setv({start, end: start + span});
  }

  for (const button of document.querySelectorAll(".controls button:not(.save)")) {
    const {zoom = 1, move = 0} = button.dataset;
    button.addEventListener("click", () => {
      const span = x.end - x.start;
      show_around((x.start + x.end) / 2 + move * span, zoom * span);
    });
  }
  document.getElementById("sequence")?.addEventListener("change", (event) => {
    const sequence = Number(event.target.value);
    origin = sequence < 0 ? 0 : offsets[sequence];
    length = sequence < 0 ? total : offsets[sequence + 1] - origin;
    const [start, end] = [-0.5, length - 0.5];
    x.setv({bounds: [start, end], reset_start: start, reset_end: end, start, end});
    redraw();
  });
  if (matchMedia("(pointer: coarse)").matches) { // touch gestures on the series scroll the page
    for (const tool of figures.series.all_models) if (tool.type == "PanTool") tool.active = false;
  }
  for (const side of ["start", "end"]) x.properties[side].change.connect(redraw);
  new ResizeObserver(redraw).observe(document.getElementById("series"));
  draw();

  // Downloads

  function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  const cell = (value) => {
    const text = String(value).trim().replace(/\s+/g, " ");
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = (rows) => new Blob(["\ufeff", rows.map((row) => row.map(cell).join(",") + "\r\n").join("")], {type: "text/csv"});

  for (const button of document.querySelectorAll("button[data-svg]")) {
    const name = button.dataset.svg;
    button.addEventListener("click", async () => save(await pictures[name].export("svg").to_blob(), `${name}.svg`));
  }
  for (const button of document.querySelectorAll("button[data-csv]")) {
    button.addEventListener("click", () => {
      const rows = [...document.querySelectorAll(`#${button.dataset.csv} tr`)];
      const visible = (one) => [...one.childNodes].filter((node) => node.className != "swatch").map((node) => node.textContent).join("");
      save(csv(rows.map((row) => [...row.cells].map(visible))), `${button.dataset.csv}.csv`);
    });
  }
  document.getElementById("save-series").addEventListener("click", () => {
    const rows = [["step", "sequence", "time", "column", "value", "state", "probability"]];
    columns.forEach(({step, value, state}, c) => step.forEach((t, i) => {
      const sequence = place(offsets, t + 1) - 1, since = t - offsets[sequence];
      const p = probability(Math.floor(t / data.block), state[i]);
      rows.push([since, sequence, +(since * data.tick).toPrecision(9), data.names[c], data.symbols ? data.letters[value[i]] : value[i], data.labels[state[i]], p.toFixed(3)]);
    }));
    save(csv(rows), "series.csv");
  });
  document.documentElement.dataset.ready = Math.round(performance.now());
})();
