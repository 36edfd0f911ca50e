// kPageScript: the script of every page: values under the pointer, other axes, smoothing, copying, and new
// numbers of a run that goes on.
//
// The page has the curves without it. It draws them again only when a reader chooses another axis than steps,
// a logarithmic scale or smoothing.
#pragma once

namespace ostro::page {

inline constexpr const char* kPageScript = R"js(
const wanted = {x: 'steps', log: false, smooth: 0}, off = new Set();
const $ = (tag, attributes, ...inside) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) name in node ? node[name] = value : node.setAttribute(name, value);
  node.append(...inside);
  return node;
};
const middle = p => (p[0] + p[1]) / 2, round = v => String(+v.toFixed(2));
const main = () => document.querySelector('main'), axes = () => JSON.parse(main().dataset.axes || '[]');
// How much of the axis there was at a step: between two known points it is proportional.
function reached(run, step) {
  const points = wanted.x == 'steps' ? null : axes_[run] && axes_[run][wanted.x];
  if (!points) return step;
  let i = points.findIndex(p => p[0] >= step);
  if (i < 0) return points[points.length - 1][1];
  if (i == 0) return points[0][1];
  const [a, b] = [points[i - 1], points[i]];
  return a[1] + (b[1] - a[1]) * (step - a[0]) / (b[0] - a[0]);
}
let axes_ = [];
function short(v, format) {
  if (format == 'percent') return +(100 * v).toPrecision(4) + ' %';
  const b = format == 'bytes' ? ' ' : '', unit = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e4, 'k']].find(u => Math.abs(v) >= u[0]);
  const size = unit ? (unit[1] == 'k' ? 1e3 : unit[0]) : 1;
  return +(v / size).toPrecision(6) + (unit ? b + unit[1] : b) + (b ? 'B' : '');
}
function duration(seconds) {
  const s = Math.round(seconds), two = n => String(n).padStart(2, '0');
  if (s >= 86400) return +(s / 86400).toFixed(1) + ' d';
  return s >= 3600 ? Math.floor(s / 3600) + ':' + two(Math.floor(s / 60) % 60) + ' h' : Math.floor(s / 60) + ':' + two(s % 60);
}
const place_text = x => wanted.x == 'seconds' ? duration(x) : short(x) + (wanted.x == 'tokens' ? ' tokens' : '');
function ticks(low, high, most, sizes) {
  const least = (high - low) / most, power = 10 ** Math.floor(Math.log10(least));
  const apart = sizes ? sizes.find(s => s >= least) || Math.ceil(least / 86400) * 86400 : [1, 2, 5, 10].map(f => f * power).find(s => s >= least * (1 - 1e-9));
  const out = [];
  for (let i = Math.ceil(low / apart); i * apart <= high; ++i) out.push(+(i * apart).toPrecision(12));
  return out;
}
function log_ticks(low, high) {
  const out = [];
  for (let e = Math.floor(low); e <= high; ++e)
    for (const f of high - low > 3 ? [1] : [1, 2, 5]) { const t = Math.log10(f) + e; if (t >= low && t <= high) out.push(t); }
  return out.length > 2 ? out : ticks(10 ** low, 10 ** high, 6).map(Math.log10);
}
// The mean of a curve's points, weighed by how near they are; the first ones count as what they are.
function smoothed(points) {
  const keep = wanted.smooth;
  let sum = 0, weight = 0;
  return points.map(p => { sum = keep * sum + (1 - keep) * p[2]; weight = keep * weight + 1 - keep; return sum / weight; });
}
function curves_of(figure) {
  return [...figure.querySelectorAll('[data-points]')].map(p => ({path: p, name: p.dataset.name, id: p.dataset.curve, run: +p.dataset.run,
    label: (figure.querySelector('.key[data-curve="' + p.dataset.curve + '"]') || {}).textContent || p.dataset.name,
    points: JSON.parse(p.dataset.points), is_dots: p.classList.contains('dot')}));
}
// A run that is taken out is out of all charts; of a single run, a curve is out of its chart.
const off_name = (figure, curve) => axes_.length > 1 ? 'run ' + curve : figure.named + '/' + curve;
const is_off = (figure, curve) => off.has(off_name(figure, curve));
function draw(figure) {
  const svg = figure.querySelector('svg'), plot = figure.querySelector('.plot'), format = figure.dataset.format;
  const curves = figure.curves.filter(c => !is_off(figure, c.id));
  const [first, last] = figure.dataset.steps.split(' ').map(Number);
  for (const path of svg.querySelectorAll('[data-curve]')) path.style.display = is_off(figure, path.dataset.curve) ? 'none' : '';
  if (!curves.length) return;
  for (const c of curves) c.xs = c.points.map(p => reached(c.run, middle(p))), c.ys = wanted.smooth > 0 ? smoothed(c.points) : c.points.map(p => p[2]);
  const levels = [...svg.querySelectorAll('[data-level]')], bands = wanted.smooth == 0 && svg.querySelector('.band');
  let values = curves.flatMap(c => c.ys), edges = bands ? curves.flatMap(c => c.points.filter(p => p.length > 3)) : [];
  const cut = Math.floor(edges.length / 100), sorted = k => edges.map(p => p[k]).sort((a, b) => a - b);
  if (edges.length) values.push(sorted(3)[cut], sorted(4)[edges.length - 1 - cut]);
  values.push(...levels.map(l => +l.dataset.level));
  const log = wanted.log && Math.min(...curves.flatMap(c => c.ys)) > 0, of = v => log ? Math.log10(Math.max(v, 1e-300)) : v;
  if (log) values = values.filter(v => v > 0);
  let low = Math.min(...values.map(of)), high = Math.max(...values.map(of));
  const spread = high - low > 1e-12 * Math.abs(high) ? high - low : Math.abs(high) || 1, floor = !log && low >= 0 ? 0 : -Infinity;
  low = Math.max(low - .04 * spread, floor); high += .04 * spread;
  const beside = Math.max(.5, .015 * (last - first) / 1.03), ends = curves.flatMap(c => [reached(c.run, first + beside), reached(c.run, last - beside)]);
  const x0 = Math.min(...ends), x1 = Math.max(...ends), room = wanted.x == 'steps' ? beside : .015 * (x1 - x0) || .5;
  figure.frame = {left: x0 - room, right: x1 + room};
  const X = x => round(1000 * (x - x0 + room) / (x1 - x0 + 2 * room)), Y = v => round(1000 * (1 - (of(v) - low) / (high - low)));
  for (const c of curves) {
    const of_curve = kind => svg.querySelector('.' + kind + '[data-curve="' + c.id + '"]');
    const at = c.points.map((p, i) => X(c.xs[i]) + ' ' + Y(c.ys[i]));
    const line = of_curve('line'), dot = of_curve('dot'), band = of_curve('band');
    if (line) line.setAttribute('d', 'M' + at.join('L'));
    if (dot) dot.setAttribute('d', at.map(a => 'M' + a + 'h0').join(''));
    if (band) band.setAttribute('d', wanted.smooth > 0 ? '' : 'M' + c.points.map((p, i) => X(c.xs[i]) + ' ' + Y(p.length > 3 ? p[4] : p[2])).join('L') +
        'L' + c.points.map((p, i) => X(c.xs[i]) + ' ' + Y(p.length > 3 ? p[3] : p[2])).reverse().join('L') + 'Z');
  }
  for (const l of levels) l.setAttribute('d', 'M0 ' + Y(+l.dataset.level) + 'H1000');
  for (const r of svg.querySelectorAll('[data-after]')) r.setAttribute('d', 'M' + X(reached(0, +r.dataset.after)) + ' 0V1000');
  const ys = log ? log_ticks(low, high) : ticks(low, high, 6);
  svg.querySelector('.grid').setAttribute('d', ys.map(t => 'M0 ' + round(1000 * (1 - (t - low) / (high - low))) + 'H1000').join(''));
  const sizes = wanted.x == 'seconds' && [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  for (const label of plot.querySelectorAll('span')) label.remove();
  for (const t of ys) plot.append($('span', {className: 'y', textContent: short(log ? +(10 ** t).toPrecision(3) : t, format), style: 'top:' + round(100 * (1 - (t - low) / (high - low))) + '%'}));
  for (const t of ticks(x0 - room, x1 + room, plot.clientWidth < 360 ? 4 : 6, sizes).filter(t => t >= 0))
    plot.append($('span', {className: 'x', textContent: wanted.x == 'seconds' ? duration(t) : short(t), style: 'left:' + X(t) / 10 + '%'}));
}
function pointer(figure) {
  const plot = figure.querySelector('.plot'), rule = $('div', {className: 'rule', hidden: true}), tip = $('div', {className: 'tip', hidden: true});
  plot.append(rule, tip);
  plot.addEventListener('pointermove', event => {
    const [low, high] = figure.frame ? [figure.frame.left, figure.frame.right] : figure.dataset.steps.split(' ').map(Number);
    const box = plot.getBoundingClientRect(), x = low + (event.clientX - box.left) / box.width * (high - low);
    const curves = figure.curves.filter(c => !is_off(figure, c.id));
    if (!curves.length) return;
    const far = (c, p) => Math.abs(reached(c.run, middle(p)) - x);
    const found = curves.map(c => [c, c.points.reduce((a, b) => far(c, b) < far(c, a) ? b : a)]);
    const [run, at] = found.reduce((a, b) => far(...b) < far(...a) ? b : a);
    tip.textContent = found.map(([c, p]) => c.label + '  ' + short(p[2], figure.dataset.format) + (p.length > 3 ? ' (' + short(p[3], figure.dataset.format) + ' to ' + short(p[4], figure.dataset.format) + ')' : '') +
        '  step ' + (p[0] == p[1] ? p[0] : p[0] + ' to ' + p[1]) + (wanted.x == 'steps' ? '' : ', ' + place_text(reached(c.run, middle(p))))).join('\n');
    rule.hidden = tip.hidden = false;
    const left = (reached(run.run, middle(at)) - low) / (high - low) * box.width;
    rule.style.left = left + 'px';
    tip.style.left = Math.max(0, Math.min(left + 10, box.width - tip.offsetWidth)) + 'px';
  });
  plot.addEventListener('pointerleave', () => { rule.hidden = tip.hidden = true; });
}
const is_plain = () => wanted.x == 'steps' && !wanted.log && wanted.smooth == 0 && !off.size;
function draw_all() {
  axes_ = axes();
  for (const figure of document.querySelectorAll('figure[data-steps]')) {
    for (const key of figure.querySelectorAll('.key[data-curve]')) key.classList.toggle('off', is_off(figure, key.dataset.curve));
    draw(figure);
  }
}
function controls(place) {
  const has = name => axes_.length && axes_.every(a => a[name]);
  const choice = $('select', {ariaLabel: 'horizontal axis'}, ...[['steps', 'steps'], ['tokens', 'tokens'], ['seconds', 'time in steps']].filter(a => a[0] == 'steps' || has(a[0]))
      .map(a => $('option', {value: a[0], textContent: a[1], selected: a[0] == wanted.x})));
  const log = $('input', {type: 'checkbox', checked: wanted.log}), smooth = $('input', {type: 'range', min: 0, max: .98, step: .02, value: wanted.smooth});
  choice.onchange = () => { wanted.x = choice.value; draw_all(); };
  log.onchange = () => { wanted.log = log.checked; draw_all(); };
  smooth.oninput = () => { wanted.smooth = +smooth.value; draw_all(); };
  place.append($('label', {}, 'axis', choice), $('label', {}, log, 'log scale'), $('label', {}, 'smoothing', smooth));
}
async function copy(text, button) {
  try { await navigator.clipboard.writeText(text); } catch {
    const area = $('textarea', {value: text});
    document.body.append(area); area.select(); document.execCommand('copy'); area.remove();
  }
  button.textContent = 'copied';
  setTimeout(() => { button.textContent = 'copy'; }, 1200);
}
function setup() {
  axes_ = axes();
  for (const figure of document.querySelectorAll('figure[data-steps]')) {
    figure.named = figure.querySelector('b').textContent;
    figure.curves = curves_of(figure);
    pointer(figure);
    for (const key of figure.querySelectorAll('.key[data-curve]'))
      key.onclick = () => { const name = off_name(figure, key.dataset.curve); off.delete(name) || off.add(name); draw_all(); };
  }
  for (const node of document.querySelectorAll('.hash, .command')) {
    const text = node.textContent, button = $('button', {className: 'copy', type: 'button', textContent: 'copy'});
    button.onclick = () => copy(text, button);
    node.after(button);
  }
  for (const place of document.querySelectorAll('.controls')) controls(place);
  if (!is_plain()) draw_all();
}
setup();
// A page that a server gives out asks for the next one; it stays as it is while the server does not answer.
if ('live' in main().dataset) setInterval(async () => {
  try {
    const answer = await fetch(location.href, {cache: 'no-store'});
    if (!answer.ok) return;
    const next = new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('main');
    if (next && next.dataset.version != main().dataset.version) { main().replaceWith(next); setup(); }
  } catch {}
}, 3000);
)js";

}  // namespace ostro::page
