// kChartScript: curves that can be zoomed, drawn on a logarithmic scale and smoothed. The page has the same
// curve as a figure; the numbers are loaded when a reader first touches a control.
#pragma once

namespace ostro::site {

inline constexpr const char* kChartScript = R"js(
const kWidth = 720, kHeight = 330, kLeft = 64, kRight = 708, kTop = 14, kBottom = 292;
const svgNode = (tag, attributes) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
};
function ticksOf(low, high, most) {
  const least = (high - low) / most, power = 10 ** Math.floor(Math.log10(least)), apart = [1, 2, 5, 10].map(f => f * power).find(s => s >= least * (1 - 1e-9));
  const out = [];
  for (let i = Math.ceil(low / apart); i * apart <= high; ++i) out.push(+(i * apart).toPrecision(12));
  return out;
}
// A mean of the values so far, in which the newest counts most; the first ones count as what they are.
function smoothedOf(points, keepShare) {
  let sum = 0, weight = 0;
  return points.map(([x, y]) => { sum = keepShare * sum + (1 - keepShare) * y; weight = keepShare * weight + 1 - keepShare; return [x, sum / weight]; });
}
// Where there are more points than the line can show, the least and the greatest of each stretch.
function thinned(points) {
  const size = Math.ceil(points.length / 1200);
  if (size < 2) return points;
  const out = [];
  for (let i = 0; i < points.length; i += size) {
    const some = points.slice(i, i + size), low = some.reduce((a, b) => b[1] < a[1] ? b : a), high = some.reduce((a, b) => b[1] > a[1] ? b : a);
    out.push(...(low[0] <= high[0] ? [low, high] : [high, low]));
  }
  return out;
}

// `series`: a promise of [{name, points: [[step, value], ...]}]. The controls stand behind the figure.
function makeChart(figure, ask) {
  const button = (id, text, label) => $('button', {type: 'button', id, ariaLabel: label, title: label}, text);
  const inside = button('in', '+', 'zoom in'), outside = button('out', '\u2212', 'zoom out'), back = button('back', '\u25c2', 'earlier steps'), on = button('on', '\u25b8', 'later steps');
  const whole = button('whole', 'all steps', 'all steps'), log = $('input', {type: 'checkbox', id: 'log'}), smooth = $('input', {type: 'range', id: 'smooth', min: 0, max: 0.98, step: 0.02, value: 0});
  const step = $('input', {type: 'number', id: 'step', min: 0}), said = $('output', {id: 'value', role: 'status'});
  figure.after($('div', {className: 'bar'}, inside, outside, back, on, whole, $('label', {}, log, 'log scale'), $('label', {}, 'smoothing', smooth), $('label', {}, 'value at step', step), said));
  let series = null, svg = null, frame = null;
  async function draw() {
    if (!series) {
      try { series = (await ask()).filter(s => s.points.length); } catch (error) { said.textContent = error.message; return; }
      svg = svgNode('svg', {class: 'live', viewBox: '0 0 ' + kWidth + ' ' + kHeight, role: 'img', 'aria-label': 'training loss by step; the values of a step can be asked for below'});
      figure.replaceChildren(svg);
      if (series.length > 1) figure.append(...series.map((s, i) => $('small', {className: 's' + i + 'k'}, plain(s.name.slice(0, 200)) + ' ')));
      drag();
    }
    if (!series.length) return;
    const now = state(), ends = series.flatMap(s => [s.points[0][0], s.points[s.points.length - 1][0]]), first = Math.min(...ends), last = Math.max(...ends);
    const number = name => now.get(name) === null || !Number.isFinite(+now.get(name)) ? null : +now.get(name);
    let from = Math.max(first, number('from') ?? first), to = Math.min(last, number('to') ?? last);
    if (to <= from) [from, to] = first < last ? [first, last] : [first - 0.5, last + 0.5];
    const share = Math.min(0.98, Math.max(0, number('smooth') ?? 0));
    log.checked = !!now.get('log');
    smooth.value = share;
    const curves = series.map(s => ({all: s.points.filter(([x]) => x >= from && x <= to), smooth: share > 0 ? smoothedOf(s.points, share).filter(([x]) => x >= from && x <= to) : null}));
    const values = curves.flatMap(c => c.all.map(p => p[1])).filter(v => !log.checked || v > 0);
    const of = v => log.checked ? Math.log10(v) : v;
    let low = values.reduce((a, b) => Math.min(a, of(b)), Infinity), high = values.reduce((a, b) => Math.max(a, of(b)), -Infinity);
    if (!(low <= high)) [low, high] = [0, 1];
    const room = high > low ? 0.04 * (high - low) : Math.abs(high) * 0.05 || 0.5;
    low -= room; high += room;
    frame = {from, to, first, last};
    const X = x => kLeft + (kRight - kLeft) * (x - from) / (to - from), Y = v => kBottom - (kBottom - kTop) * (of(v) - low) / (high - low);
    const nodes = [];
    for (const t of ticksOf(low, high, 6)) {
      const value = log.checked ? 10 ** t : t, label = svgNode('text', {x: kLeft - 8, y: kBottom - (kBottom - kTop) * (t - low) / (high - low) + 4, 'text-anchor': 'end'});
      label.textContent = log.checked ? String(+value.toPrecision(3)) : short(value);
      nodes.push(svgNode('path', {class: 'grid', d: 'M' + kLeft + ' ' + (+label.getAttribute('y') - 4) + 'H' + kRight}), label);
    }
    for (const t of ticksOf(from, to, 7)) {
      const label = svgNode('text', {x: X(t), y: kBottom + 20, 'text-anchor': 'middle'});
      label.textContent = short(t);
      nodes.push(label);
    }
    nodes.push(svgNode('path', {class: 'axis', d: 'M' + kLeft + ' ' + kBottom + 'H' + kRight}));
    const line = points => 'M' + thinned(points.filter(p => !log.checked || p[1] > 0)).map(([x, y]) => X(x).toFixed(2) + ' ' + Math.max(-1e4, Math.min(1e4, Y(y))).toFixed(2)).join('L');
    curves.forEach((c, i) => {
      if (!c.all.length) return;
      nodes.push(svgNode('path', {class: 's' + i + (c.smooth ? ' faint' : ''), d: line(c.all)}));
      if (c.smooth) nodes.push(svgNode('path', {class: 's' + i, d: line(c.smooth)}));
    });
    svg.replaceChildren(...nodes);
    tell();
  }
  function tell() {
    if (!series || step.value === '') { said.textContent = ''; return; }
    said.textContent = series.map(s => { const found = s.points.find(p => p[0] === +step.value); return (series.length > 1 ? plain(s.name.slice(0, 80)) + ': ' : '') + (found ? String(found[1]) : 'no such step'); }).join('; ');
  }
  async function move(change) {
    if (!series) await draw();
    if (!frame) return;
    const width = frame.to - frame.from;
    let [from, to] = change(frame.from, frame.to, width);
    if (from < frame.first) [from, to] = [frame.first, Math.max(to, frame.first + Math.min(width, to - from))];
    if (to > frame.last) [from, to] = [Math.max(frame.first, Math.min(from, frame.last - Math.min(width, to - from))), frame.last];
    from = Math.round(from), to = Math.round(to);
    if (to - from < 1) return;
    keep(from <= frame.first && to >= frame.last ? {from: null, to: null} : {from: String(from), to: String(to)});
    draw();
  }
  function drag() {
    const place = event => { const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * kWidth; return frame.from + (Math.min(kRight, Math.max(kLeft, x)) - kLeft) / (kRight - kLeft) * (frame.to - frame.from); };
    let begin = null;
    svg.addEventListener('pointerdown', event => { begin = frame && place(event); if (begin !== null) svg.setPointerCapture(event.pointerId); });
    svg.addEventListener('pointermove', event => {
      if (!frame) return;
      const at = place(event);
      if (begin === null) { step.value = Math.round(at); tell(); return; }
      for (const old of svg.querySelectorAll('.chosen')) old.remove();
      const X = x => kLeft + (kRight - kLeft) * (x - frame.from) / (frame.to - frame.from), left = Math.min(X(begin), X(at));
      svg.append(svgNode('rect', {class: 'chosen', x: left, y: kTop, width: Math.abs(X(at) - X(begin)), height: kBottom - kTop}));
    });
    svg.addEventListener('pointerup', event => {
      const [from, to] = [begin, place(event)].sort((a, b) => a - b);
      begin = null;
      for (const old of svg.querySelectorAll('.chosen')) old.remove();
      if (to - from > (frame.to - frame.from) / 100) move(() => [from, to]);
    });
    svg.addEventListener('dblclick', () => whole.click());
  }
  inside.onclick = () => move((a, b, w) => [a + w / 4, b - w / 4]);
  outside.onclick = () => move((a, b, w) => [a - w / 2, b + w / 2]);
  back.onclick = () => move((a, b, w) => [a - w / 4, b - w / 4]);
  on.onclick = () => move((a, b, w) => [a + w / 4, b + w / 4]);
  whole.onclick = () => { keep({from: null, to: null}); draw(); };
  log.onchange = () => { keep({log: log.checked}); draw(); };
  smooth.oninput = () => { keep({smooth: +smooth.value ? smooth.value : null}); draw(); };
  step.oninput = () => series ? tell() : draw();
  figure.addEventListener('pointerdown', () => { if (!series) draw(); });
  addEventListener('hashchange', () => { if (series) draw(); });
  return draw;
}
function upgradeChart(figure) {
  const id = figure.dataset.chart, now = state(), draw = makeChart(figure, async () => [{name: 'loss', points: pointsOf(await chainOf(id))}]);
  if (['from', 'to', 'log', 'smooth'].some(name => now.get(name))) draw();
}
)js";

}  // namespace ostro::site
