// kChainScript: a run's chain.jsonl in the browser: its curve, and the check of its hashes
// (docs/reference/formats/chain.md), which names the line that was changed.
#pragma once

namespace ostro::site {

inline constexpr const char* kChainScript = R"js(
const chains = {};
// The lines of a run's chain, as far as they are JSON.
async function chainOf(id) {
  if (chains[id]) return chains[id];
  const text = await load(id), lines = text.slice(0, text.lastIndexOf('\n')).split('\n');
  return chains[id] = lines.map(line => {
    let entry = null;
    try { entry = JSON.parse(line); } catch {}
    return {line, entry: entry && typeof entry === 'object' ? entry : {}};
  });
}
const stepsOf = chain => chain.filter(l => l.entry.kind === 'step').map(l => l.entry);
const pointsOf = chain => stepsOf(chain).map(e => [e.step, fromHex(e.loss)]).filter(p => Number.isFinite(p[1]));

// A line without its own hash; that is what is hashed behind the hash of the line before.
function withoutHash(line, hash) {
  const mark = '"h":"' + hash + '"', at = line.indexOf(mark);
  if (at < 0) return null;
  const end = at + mark.length;
  return line[end] === ',' ? line.slice(0, at) + line.slice(end + 1) : line.slice(0, at).replace(/,$/, '') + line.slice(end);
}
function lineName(number, entry) {
  const loss = entry.kind === 'step' ? ', loss ' + readable(entry.loss) : '';
  return 'line ' + number + (Number.isInteger(entry.step) ? ' (' + entry.kind + ' ' + entry.step + loss + ')' : entry.kind ? ' (' + entry.kind + ')' : '');
}
// What is wrong with a chain; '' if it holds.
async function faultOf(chain, progress) {
  const utf8 = new TextEncoder();
  let before = '', step = null;
  for (let i = 0; i < chain.length; ++i) {
    const {line, entry} = chain[i], text = typeof entry.h === 'string' ? withoutHash(line, entry.h) : null;
    if (text === null) return 'Line ' + (i + 1) + ' is no line of a chain.';
    if ((i === 0) !== (entry.kind === 'genesis')) return 'Line ' + (i + 1) + ' is no genesis, or a second one.';
    const hash = sha256(utf8.encode(before + text));
    if (hash !== entry.h) return 'Changed: ' + lineName(i + 1, entry) + '. Its hash is ' + entry.h.slice(0, 12) + ', and its text has ' + hash.slice(0, 12) + '.';
    if (entry.kind === 'step') {
      if (step !== null && entry.step !== step + 1) return 'Behind step ' + step + ' comes step ' + entry.step + '.';
      step = entry.step;
    }
    before = hash;
    if (i % 400 === 399) { progress(i + 1); await new Promise(go => setTimeout(go)); }
  }
  return '';
}
function upgradeCheck(place) {
  const {check, head, steps} = place.dataset, button = $('button', {type: 'button', id: 'check'}, 'Check the hash chain'), said = $('span', {id: 'checked', role: 'status'});
  place.append(button, said);
  button.onclick = async () => {
    button.disabled = true;
    said.className = '';
    said.textContent = 'Hashing ...';
    try {
      const chain = await chainOf(check), fault = await faultOf(chain, n => { said.textContent = 'Hashing: ' + n + ' of ' + chain.length + ' lines'; });
      const last = chain.length ? chain[chain.length - 1].entry : {}, done = stepsOf(chain), end = done.length ? done[done.length - 1].step : 0;
      const other = fault || last.h === head ? '' : 'The chain holds, but it is of another run: its last hash is ' + String(last.h).slice(0, 12) + ', and this page is about ' + head.slice(0, 12) + '.';
      said.className = fault || other ? 'bad' : 'good';
      said.textContent = fault || other || 'The chain holds: ' + chain.length + ' lines up to step ' + end + ' of ' + steps + ', each with the hash of its text and of the line before; the last one is the run hash ' + head.slice(0, 12) + '.';
    } catch (error) { said.className = 'bad'; said.textContent = error.message; }
    button.disabled = false;
  };
}
)js";

}  // namespace ostro::site
