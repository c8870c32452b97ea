"use strict";
(async () => {
  const CLOSE = 1.5; // values a pixel up to which each has a mark of its own
  const CLOSEST = 4; // steps
  const read = (id) => JSON.parse(document.getElementById(id).textContent);

  // Figures

  const figures = {};
  for (const script of document.querySelectorAll("script[data-figure]")) {
    const name = script.dataset.figure;
    const views = await Bokeh.embed.embed_item(JSON.parse(script.textContent), name);
    figures[name] = views.roots[0].model.document;
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

  // The series

  const data = read("series-data");
  const unpack = ({type, bytes}) => new globalThis[type](Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0)).buffer);
  const offsets = unpack(data.offsets), probabilities = unpack(data.probabilities), gaps = data.gaps.map(unpack);
  const columns = data.columns.map(({ahead, value, state}) => {
    let step = 0;
    return {step: Int32Array.from(unpack(ahead), (by) => step += by), value: unpack(value), state: unpack(state)};
  });
  const n_states = data.colours.length, total = offsets.at(-1);
  const model = (name) => figures.series.get_model_by_name(name);
  const x = model("x");

  let origin = 0, length = total; // what is shown: all sequences, or one of them, whose steps count from 0

  function draw() {
    if (x.end - x.start < CLOSEST) around((x.start + x.end) / 2, CLOSEST);
    const first = Math.max(0, Math.round(x.start)) + origin;
    const last = Math.min(length - 1, Math.round(x.end)) + origin;
    const pixels = Math.max(100, document.getElementById("series").clientWidth - 80);
    columns.forEach((column, c) => {
      const begin = place(column.step, first), end = place(column.step, last + 1);
      const close = !data.symbols && end - begin <= CLOSE * pixels;
      const every = close ? Array.from({length: end - begin}, (_, i) => begin + i) : [];
      const {boxes, alone} = ranges(column, begin, close ? begin : end, first, last, pixels);
      model(`boxes-${c}`).data = boxes;
      model(`dots-${c}`).data = single(column, close ? every : alone);
      model(`line-${c}`).data = joined(column, every);
      model(`gaps-${c}`).data = stretches(gaps[c], first, last, pixels);
      model(`borders-${c}`).data = borders(first, last);
    });
    model("strip").data = stacked(first, last, pixels);
    model("borders-strip").data = borders(first, last);
  }

  // The first position in a sorted array whose entry is at least `value`
  function place(sorted, value) {
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
  }

  function single({step, value, state}, places) {
    const steps = places.map((i) => step[i]), states = places.map((i) => state[i]);
    return {
      x: steps.map((t) => t - origin), y: places.map((i) => value[i]), state: states,
      colour: states.map((k) => data.colours[k]), marker: states.map((k) => data.markers[k % data.markers.length]),
      sure: steps.map((t, i) => Math.round(100 * probability(Math.floor(t / data.piece), states[i]))),
    };
  }

  const probability = (piece, state) => probabilities[piece * n_states + state] / 255;

  // A line through points that is broken where something is missing or a sequence begins
  function joined({step, value}, places) {
    const line = {x: [], y: []};
    for (const i of places) {
      const apart = data.whole && step[i] > step[i - 1] + 1;
      if (line.x.length && (apart || place(offsets, step[i - 1] + 1) < place(offsets, step[i] + 1))) {
        line.x.push(NaN);
        line.y.push(NaN);
      }
      line.x.push(step[i] - origin);
      line.y.push(value[i]);
    }
    return line;
  }

  // From the lowest to the highest value of each state, in pieces that are a pixel wide; symbols have boxes of their own.
  // A value without another of its state in this piece or beside it would be lost to the eye: these are `alone`.
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
    const alone = [];
    const boxes = {left: [], right: [], bottom: [], top: [], low: [], high: [], first: [], last: [], state: [], colour: []};
    for (let at = 0; at < n_boxes; at++) {
      if (count[at] == 0) continue;
      if (count[at] == 1 && !data.symbols && !count[at - 1] && !count[at + 1]) alone.push(index[at]);
      const k = Math.floor(at / bins / kinds), left = first + (at % bins) * width - 0.5 - origin;
      boxes.left.push(left);
      boxes.right.push(left + width);
      boxes.bottom.push(low[at] - data.lane);
      boxes.top.push(high[at] + data.lane);
      boxes.low.push(low[at]);
      boxes.high.push(high[at]);
      boxes.first.push(Math.ceil(left));
      boxes.last.push(Math.ceil(left + width) - 1);
      boxes.state.push(k);
      boxes.colour.push(data.colours[k]);
    }
    return {boxes, alone};
  }

  // Probabilities one above the other, averaged over pieces that are a pixel wide
  function stacked(first, last, pixels) {
    const areas = {left: [], right: [], bottom: [], top: [], state: [], colour: [], percent: [], first: [], last: []};
    const begin = Math.floor(first / data.piece), end = Math.floor(last / data.piece) + 1;
    const width = Math.max(1, Math.ceil((end - begin) / pixels));
    for (let piece = begin; piece < end; piece += width) {
      const until = Math.min(piece + width, end);
      const left = Math.max(first, piece * data.piece), right = Math.min(last + 1, until * data.piece);
      let bottom = 0;
      for (let k = 0; k < n_states; k++) {
        let sum = 0;
        for (let i = piece; i < until; i++) sum += probability(i, k);
        const height = sum / (until - piece);
        if (height < 0.002) continue;
        areas.left.push(left - 0.5 - origin);
        areas.right.push(right - 0.5 - origin);
        areas.bottom.push(bottom);
        areas.top.push(bottom + height);
        areas.state.push(k);
        areas.colour.push(data.colours[k]);
        areas.percent.push(100 * height);
        areas.first.push(left - origin);
        areas.last.push(right - 1 - origin);
        bottom += height;
      }
    }
    return areas;
  }

  // Where something is missing, if it is wide enough to be seen
  function stretches(gap, first, last, pixels) {
    const edges = {begin: [], end: []}, narrowest = (last - first + 1) / pixels / 2;
    for (let i = 0; i < gap.length; i += 2) {
      const begin = Math.max(gap[i], first), end = Math.min(gap[i + 1], last + 1);
      if (end - begin < narrowest || end <= begin) continue;
      edges.begin.push(begin - origin - 0.5);
      edges.end.push(end - origin - 0.5);
    }
    return edges;
  }

  // Where sequences meet, unless there are so many that the lines would hide the rest
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

  // Moving about

  function around(middle, wanted) {
    const span = Math.min(length, Math.max(CLOSEST, wanted));
    const start = Math.min(Math.max(middle - span / 2, -0.5), length - 0.5 - span);
    x.setv({start, end: start + span});
  }

  for (const button of document.querySelectorAll(".controls button")) {
    const {zoom = 1, move = 0} = button.dataset;
    button.addEventListener("click", () => {
      const span = x.end - x.start;
      around((x.start + x.end) / 2 + move * span, zoom * span);
    });
  }
  document.getElementById("sequence")?.addEventListener("change", (event) => {
    const chosen = Number(event.target.value);
    origin = chosen < 0 ? 0 : offsets[chosen];
    length = chosen < 0 ? total : offsets[chosen + 1] - origin;
    const [start, end] = [-0.5, length - 0.5];
    x.setv({bounds: [start, end], reset_start: start, reset_end: end, start, end});
    redraw();
  });
  if (matchMedia("(pointer: coarse)").matches) { // fingers that move across the series scroll the page
    for (const tool of figures.series.all_models) if (tool.type == "PanTool") tool.active = false;
  }
  for (const side of ["start", "end"]) x.properties[side].change.connect(redraw);
  new ResizeObserver(redraw).observe(document.getElementById("series"));
  draw();
  document.documentElement.dataset.ready = Math.round(performance.now());
})();
