// kTableScript: the table of runs: sorted, filtered and grouped, without columns that are equal, as CSV. What
// was chosen is in the address.
#pragma once

namespace ostro::site {

inline constexpr const char* kTableScript = R"js(
function upgradeTable(table) {
  const head = table.tHead.rows[0], body = table.tBodies[0];
  const columns = [...head.cells].map(cell => ({name: cell.textContent, cell}));
  const rows = [...body.rows].map(row => ({row, texts: [...row.cells].map(cell => cell.textContent)}));
  let all = false;  // whether the options that are the same in all runs have columns
  function addEqual() {
    if (all) return;
    all = true;
    for (const from of document.querySelectorAll('#same tbody tr')) {
      const [name, value] = [...from.cells].map(cell => cell.textContent), cell = $('th', {scope: 'col'}, name);
      head.append(cell);
      columns.push({name, cell});
      for (const r of rows) { r.row.append($('td', {}, value)); r.texts.push(value); }
      sorter(columns.length - 1);
    }
  }
  const filter = $('input', {type: 'search', id: 'filter'}), group = $('select', {id: 'group'}), hide = $('input', {type: 'checkbox', id: 'hide', checked: true});
  const csv = $('button', {type: 'button', id: 'csv'}, 'Export as CSV'), said = $('span', {id: 'said', role: 'status'});
  group.append($('option', {value: ''}, 'none'), ...columns.slice(1).map(c => $('option', {value: c.name}, c.name.slice(0, 80))));
  table.parentNode.before($('div', {className: 'bar'}, $('label', {}, 'filter', filter), $('label', {}, 'group by', group), $('label', {}, hide, 'hide columns that are equal'), csv, said));
  const shown = () => rows.filter(r => !r.row.hidden);
  // Numbers by their value, before texts; texts by their code units, in every language.
  const compare = (a, b) => {
    const [x, y] = [a, b].map(t => t.trim() === '' ? NaN : Number(t)), [m, n] = [Number.isNaN(x), Number.isNaN(y)];
    return m || n ? (m && n ? (a < b ? -1 : a > b ? 1 : 0) : m - n) : x - y;
  };
  function draw() {
    const now = state(), wanted = (now.get('filter') || '').toLowerCase();
    if (now.get('equal')) addEqual();
    const by = columns.findIndex(c => c.name === now.get('sort')), down = now.get('down') ? -1 : 1, grouped = columns.findIndex(c => c.name === now.get('group'));
    filter.value = now.get('filter') || '';
    group.value = grouped > 0 ? columns[grouped].name : '';
    hide.checked = !now.get('equal');
    for (const r of rows) r.row.hidden = wanted !== '' && !r.texts.some(text => text.toLowerCase().includes(wanted));
    for (const line of body.querySelectorAll('.group')) line.remove();
    const order = rows.map((r, i) => [r, i]).sort(([a, i], [b, j]) =>
        (grouped > 0 ? compare(a.texts[grouped], b.texts[grouped]) : 0) || (by >= 0 ? down * compare(a.texts[by], b.texts[by]) : 0) || i - j).map(pair => pair[0]);
    const visible = shown();
    columns.forEach((column, i) => {
      const equal = i > 0 && hide.checked && visible.length > 1 && visible.every(r => r.texts[i] === visible[0].texts[i]);
      column.cell.hidden = equal;
      for (const r of rows) r.row.cells[i].hidden = equal;
      column.cell.setAttribute('aria-sort', i !== by ? 'none' : down > 0 ? 'ascending' : 'descending');
    });
    let last = null;
    for (const r of order) {
      const value = grouped > 0 ? r.texts[grouped] : null;
      if (value !== last && !r.row.hidden) {
        const count = visible.filter(v => v.texts[grouped] === value).length;
        body.append($('tr', {className: 'group'}, $('th', {colSpan: columns.filter(c => !c.cell.hidden).length, scope: 'rowgroup'},
            columns[grouped].name + ': ' + (value || 'none') + ' (' + count + (count === 1 ? ' run)' : ' runs)'))));
        last = value;
      }
      body.append(r.row);
    }
    said.textContent = visible.length + ' of ' + rows.length + ' runs';
    scrollable();
  }
  function sorter(i) {
    const column = columns[i], button = $('button', {type: 'button'}, ...column.cell.childNodes);
    column.cell.append(button);
    button.onclick = () => { const now = state(), again = now.get('sort') === column.name; keep({sort: column.name, down: again && !now.get('down')}); draw(); };
  }
  columns.forEach((column, i) => sorter(i));
  filter.oninput = () => { keep({filter: filter.value}); draw(); };
  group.onchange = () => { keep({group: group.value}); draw(); };
  hide.onchange = () => { keep({equal: !hide.checked}); draw(); };
  // A text that a spreadsheet would take as a formula gets an apostrophe; numbers stay.
  const field = text => '"' + (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? "'" : '') .concat(text).replace(/"/g, '""') + '"';
  csv.onclick = () => {
    const some = columns.map((c, i) => i).filter(i => !columns[i].cell.hidden), order = [...body.rows].map(row => rows.find(r => r.row === row)).filter(r => r && !r.row.hidden);
    const text = [some.map(i => field(columns[i].name)), ...order.map(r => some.map(i => field(r.texts[i])))].map(line => line.join(',')).join('\r\n') + '\r\n';
    let area = byId('csvtext');
    if (!area) {
      area = $('textarea', {id: 'csvtext', readOnly: true, ariaLabel: 'the table as CSV'});
      table.parentNode.after($('p', {}, $('a', {id: 'csvlink', download: 'runs.csv'}, 'Save runs.csv')), area);
    }
    area.value = text;
    if (byId('csvlink').href) URL.revokeObjectURL(byId('csvlink').href);
    byId('csvlink').href = URL.createObjectURL(new Blob([text], {type: 'text/csv'}));
    area.focus();
  };
  addEventListener('hashchange', draw);
  draw();
}
)js";

}  // namespace ostro::site
