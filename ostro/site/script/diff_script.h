// kDiffScript: two runs compared by their chains: what they are made of, the first step that differs, and
// why.
#pragma once

namespace ostro::site {

inline constexpr const char* kDiffScript = R"js(
// The values of an object by the path of their keys.
function flat(value, path, out) {
  if (value && typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length)
    for (const key of Object.keys(value)) flat(value[key], path ? path + '.' + key : key, out);
  else if (path) out.set(path, readable(value));
  return out;
}
function differences(a, b) {
  const one = flat(a, '', new Map()), two = flat(b, '', new Map()), names = [...new Set([...one.keys(), ...two.keys()])].sort();
  return names.filter(name => one.get(name) !== two.get(name)).map(name => [name, one.get(name) ?? 'absent', two.get(name) ?? 'absent']);
}
// kRules comes from the program (run_diff_rules_json), which decides the same in a terminal.
const kCompared = kRules.compared.map(c => c[0]), kMeans = Object.fromEntries(kRules.compared), kWords = kRules.words;
const isOfData = name => kRules.ofData.some(of => of.endsWith('.') ? name.startsWith(of) : name === of);
function tableOf(heads, rows) {
  return $('div', {className: 'scroll'}, $('table', {}, $('thead', {}, $('tr', {}, ...heads.map(h => $('th', {scope: 'col'}, h)))), $('tbody', {}, ...rows.map(row => $('tr', {}, ...row.map(cell => $('td', {}, String(cell).slice(0, 2000))))))));
}
// The first step that both have and that differs, and in which fields.
function firstDifference(a, b) {
  const other = new Map(stepsOf(b).map(e => [e.step, e]));
  let common = 0, first = null, last = null;
  for (const one of stepsOf(a)) {
    const two = other.get(one.step);
    if (!two) continue;
    ++common;
    first = first ?? one.step;
    last = one.step;
    const fields = kCompared.filter(name => one[name] !== two[name]);
    if (fields.length) return {step: one.step, fields, one, two, common, first, last};
  }
  return {step: null, common, first, last};
}
// What explains it: what the two were made of, and what was amended before.
function reasons(found, options, identity, amends) {
  const out = [], data = options.filter(o => isOfData(o[0])), others = options.filter(o => !isOfData(o[0])), list = some => plain(some.map(o => o[0] + ' (' + o[1] + ', ' + o[2] + ')').join('; ').slice(0, 2000));
  if (found.fields.includes('batch')) {
    if (identity.some(i => i[0] === 'data')) out.push(kWords.otherData);
    if (data.length) out.push(kWords.dataOptions + list(data) + '.');
  }
  if (found.fields.some(name => name !== 'batch')) {
    if (!found.fields.includes('batch')) out.push(found.fields.includes('loss') ? kWords.otherLoss : kWords.otherState);
    if (identity.some(i => i[0] === 'initial')) out.push(kWords.otherStart);
    if (identity.some(i => i[0] === 'program')) out.push(kWords.otherPrograms);
    if (others.length) out.push(kWords.options + list(others) + '.');
  }
  for (const [name, entry] of amends) out.push(plain(name) + kWords.amended + entry.step + ': ' + plain(Object.keys(entry.difference || {}).join(', ')) + '.');
  if (!out.length) out.push(kWords.unexplained);
  return out;
}
function upgradeDiff() {
  const a = byId('a'), b = byId('b'), answer = byId('answer'), found = byId('found'), ids = [...a.options].map(o => o.value);
  byId('diff').hidden = false;
  if (ids.length < 2) { answer.textContent = 'There are fewer than two runs.'; return; }
  const nameOf = select => select.selectedOptions[0].textContent;
  async function compare() {
    answer.textContent = 'Comparing ...';
    found.replaceChildren();
    try {
      const [one, two] = await Promise.all([chainOf(a.value), chainOf(b.value)]);
      const [from, to] = [one, two].map(chain => chain[0].entry), options = differences(from.config, to.config);
      const identity = kRules.identity.filter(k => JSON.stringify(from[k]) !== JSON.stringify(to[k])).map(k => [k, readable(from[k]), readable(to[k])]);
      const at = firstDifference(one, two), why = $('ul', {id: 'why'});
      if (!at.common) answer.textContent = 'The two have no step in common.';
      else if (at.step === null) answer.textContent = 'Equal: all ' + at.common + ' steps that both have, ' + at.first + ' to ' + at.last + '.';
      else {
        answer.textContent = 'The first step that differs is step ' + at.step + ': ' + at.fields.map(f => kMeans[f]).join(', ') + '.' + (at.step > at.first ? ' Steps ' + at.first + ' to ' + (at.step - 1) + ' are equal.' : '');
        const amends = [[nameOf(a), one], [nameOf(b), two]].flatMap(([name, chain]) => chain.filter(l => l.entry.kind === 'amend' && l.entry.step < at.step).map(l => [name, l.entry]));
        why.append(...reasons(at, options, identity, amends).map(text => $('li', {}, text)));
        found.append($('h2', {}, 'Why'), why, $('h2', {}, 'Step ' + at.step), tableOf(['of the step', nameOf(a), nameOf(b)], kCompared.map(k => [k, readable(at.one[k]), readable(at.two[k])])));
      }
      if (options.length) found.append($('h2', {}, 'Options that differ'), tableOf(['option', nameOf(a), nameOf(b)], options.slice(0, 200)));
      if (identity.length) found.append($('h2', {}, 'Identity'), tableOf(['of the run', nameOf(a), nameOf(b)], identity));
      const figure = $('figure', {});
      found.append($('h2', {}, 'Losses'), figure);
      makeChart(figure, async () => [{name: nameOf(a), points: pointsOf(one)}, {name: nameOf(b), points: pointsOf(two)}])();
    } catch (error) { answer.textContent = error.message; }
    scrollable();
  }
  function fromAddress() {
    const now = state();
    a.value = ids.includes(now.get('a')) ? now.get('a') : ids[0];
    b.value = ids.includes(now.get('b')) ? now.get('b') : ids[1];
    if (ids.includes(now.get('a')) && ids.includes(now.get('b'))) compare();
    else answer.textContent = 'Choose two runs.';
  }
  a.onchange = b.onchange = () => { keep({a: a.value, b: b.value, from: null, to: null}); compare(); };
  fromAddress();
}
)js";

}  // namespace ostro::site
