// kBatchesScript: from a step to its sequences, from a sequence to its documents, and from a document to all
// steps that use it.
#pragma once

namespace ostro::site {

inline constexpr const char* kBatchesScript = R"js(
function upgradeBatches(place) {
  const id = place.dataset.batches, step = $('input', {type: 'number', id: 'atstep'}), go = $('button', {type: 'button', id: 'show'}, 'Show'), said = $('span', {role: 'status', id: 'atsaid'});
  const earlier = $('button', {type: 'button', id: 'earlier', ariaLabel: 'earlier step'}, '\u25c2'), later = $('button', {type: 'button', id: 'later', ariaLabel: 'later step'}, '\u25b8');
  const find = $('input', {type: 'search', id: 'find'}), list = $('div', {id: 'sequences'}), one = $('div', {id: 'document'}), matches = $('div', {id: 'matches'});
  place.append($('h2', {}, 'A step, its sequences, their documents'), $('div', {className: 'bar'}, $('label', {}, 'step', step), go, earlier, later, $('label', {}, 'documents of file', find), said), matches, list, one);
  place.hidden = false;
  let data = null, drawn = 0;
  const ready = async () => {
    if (data) return true;
    try { data = await load(id); } catch (error) { said.textContent = error.message; return false; }
    data.own ??= data.documents.length;
    step.min = data.first;
    step.max = data.last;
    return true;
  };
  const component = number => data.components[number][0] || data.components[number][1];
  const fileOf = number => (data.documents[number].file || component(data.documents[number].component)).slice(0, 200);
  const nameOf = number => [$('bdi', {}, fileOf(number)), ' ' + data.documents[number].number];
  const link = (inside, act) => $('button', {type: 'button', onclick: act}, ...inside);
  // Documents that join later have other places after a reload, so an address has component and row. A plain number is a place of the page itself.
  const keyOf = d => d.component + ':' + d.row;
  const numberOf = key => key === null ? -1 : /^\d+$/.test(key) ? (+key < data.own ? +key : -1) : data.documents.findIndex(d => keyOf(d) === key);
  const documentButton = number => link(nameOf(number), () => { keep({document: keyOf(data.documents[number])}); draw(); one.scrollIntoView(); });
  const stepButton = number => link(['step ' + number], () => { keep({step: String(number)}); draw(); });
  // A step that the page does not have, from a server that reads it now; its documents join the others.
  async function fetchStep(wanted) {
    const piece = await load(id + '-' + data.demand + '-step-' + wanted), places = piece.documents.map((d, i) => {
      let at = data.documents.findIndex(known => known.component === d.component && known.row === d.row);
      if (at < 0) at = data.documents.push(d) - 1;
      if (piece.shown && piece.shown[i] !== null) data.documents[at].text = piece.shown[i];
      return at;
    });
    for (const [number, sequences] of piece.steps)
      if (!data.steps.some(s => s[0] === number)) data.steps.push([number, sequences.map(([c, sequence, spans]) => [c, sequence, spans.map(([d, ...rest]) => [places[d], ...rest])])]);
    data.steps.sort((a, b) => a[0] - b[0]);
  }
  async function drawStep(wanted, isOld) {
    said.textContent = '';
    if (data.demand && wanted >= data.first && wanted <= data.last && !data.steps.some(s => s[0] === wanted))
      try { await fetchStep(wanted); } catch (error) { if (!isOld()) said.textContent = error.message + '. Load this page again: the lab may have gone on.'; }
    if (isOld()) return;
    const steps = data.steps, at = steps.find(s => s[0] >= wanted) || steps[steps.length - 1];
    step.value = at[0];
    if (at[0] !== wanted) said.textContent += ' The page has no step ' + wanted + '; this is the next one.';
    list.replaceChildren($('h3', {}, 'Step ' + at[0]), $('div', {className: 'scroll'}, $('table', {},
        $('thead', {}, $('tr', {}, ...['row', 'component', 'sequence', 'documents'].map(h => $('th', {scope: 'col'}, h)))),
        $('tbody', {}, ...at[1].map(([c, sequence, spans], row) => $('tr', {}, $('td', {className: 'n'}, String(row)), $('td', {}, component(c)), $('td', {className: 'n'}, String(sequence)),
            $('td', {}, ...spans.map(([d, begin, end, first]) => $('div', {}, documentButton(d), ' positions ' + begin + ' to ' + (end - 1) + ', its tokens from ' + first)))))))));
  }
  async function drawDocument(number) {
    const d = data.documents[number];
    if (!d) { one.replaceChildren(); return; }
    const [begin, end] = d.bytes, facts = [['file', d.file], ['document in it, from 1', d.number], ['row of the store', d.row], ['bytes', end > begin ? begin + ' to ' + (end - 1) : 'not known'],
      ['bytes of text', d.text_bytes], ['tokens', d.tokens], ['SHA-256 of its ids', d.sha256], ['made from', d.page]].filter(f => f[1] !== '');
    const uses = $('ul', {}, ...d.uses.map(([s, row, epoch, from, to]) => $('li', {}, stepButton(s), ' row ' + row + ', epoch ' + (epoch + 1) + (to > from ? ', positions ' + from + ' to ' + (to - 1) : ', as a target'))));
    const text = $('pre', {id: 'text'});
    one.replaceChildren($('h3', {}, 'Document ', ...nameOf(number)), tableOf(['what', 'value'], facts), $('h3', {}, 'Where it is used'), $('p', {}, d.all_uses + ' times' + (d.all_uses > d.uses.length ? '; the first ' + d.uses.length + ' are' : '') + ':'), uses);
    if (data.components[d.component][2]) {
      one.append($('h3', {}, 'The beginning of its text'), text);
      try { text.textContent = d.text ?? (await load(id + '-texts'))[number]; } catch (error) { text.textContent = error.message; }
    }
    scrollable();
  }
  function drawMatches(text) {
    find.value = text;
    const wanted = text.toLowerCase(), found = text === '' ? [] : data.documents.map((d, i) => i).filter(i => fileOf(i).toLowerCase().includes(wanted));
    matches.replaceChildren(...found.slice(0, 40).map(i => $('span', {}, documentButton(i), ' ')));
    if (text !== '') matches.append($('small', {}, found.length + ' documents'));
  }
  async function draw() {
    const mine = ++drawn, isOld = () => mine !== drawn;  // a later draw is the one that is shown
    if (!await ready() || isOld()) return;
    const now = state();
    await drawStep(Math.trunc(+now.get('step')) || data.first, isOld);
    if (isOld()) return;
    drawMatches(now.get('find') || '');
    await drawDocument(numberOf(now.get('document')));
  }
  const move = by => async () => {
    if (!await ready()) return;
    const i = data.steps.findIndex(s => s[0] >= +step.value), next = data.steps[Math.max(0, Math.min(data.steps.length - 1, i + by))][0];
    keep({step: String(data.demand ? Math.max(data.first, Math.min(data.last, +step.value + by)) : next)});
    draw();
  };
  go.onclick = () => { keep({step: step.value}); draw(); };
  step.onchange = go.onclick;
  earlier.onclick = move(-1);
  later.onclick = move(1);
  find.oninput = () => { keep({find: find.value}); draw(); };
  addEventListener('hashchange', draw);
  if (['step', 'document', 'find'].some(name => state().get(name) !== null)) draw();
}
)js";

}  // namespace ostro::site
