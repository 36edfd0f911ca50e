// kCoreScript: what all parts of the pages' script use: elements, the state in the address, data that are
// loaded when they are needed, numbers of chains, SHA-256.
//
// Texts of a lab become text nodes and nothing else. Names of data files come from the pages alone, never
// from the address.
#pragma once

namespace ostro::site {

inline constexpr const char* kCoreScript = R"js(
const $ = (tag, attributes, ...inside) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) name in node ? node[name] = value : node.setAttribute(name, value);
  node.append(...inside);
  return node;
};
const byId = id => document.getElementById(id);

// ---- data: data/NAME.js calls ostro_data ----
const loaded = {}, asked = {};
window.ostro_data = (name, value) => { loaded[name] = value; };
function load(name) {
  if (!/^(run|batches)-\d+(-texts|-[0-9a-f]{16}-step-\d+)?$/.test(name)) return Promise.reject(new Error('no such data'));
  return asked[name] = asked[name] || new Promise((good, bad) => {
    const script = $('script', {src: 'data/' + name + '.js'}), missing = () => bad(new Error('data/' + name + '.js cannot be read'));
    script.onload = () => name in loaded ? good(loaded[name]) : missing();
    script.onerror = missing;
    document.head.append(script);
  });
}

// ---- the state of a page, in its address behind # ----
const state = () => new URLSearchParams(location.hash.slice(1));
function keep(changes) {
  const now = state();
  for (const [name, value] of Object.entries(changes)) value === '' || value === null || value === false ? now.delete(name) : now.set(name, value === true ? '1' : value);
  const hash = String(now);
  if (hash === location.hash.slice(1)) return;
  history.replaceState(null, '', '#' + hash);
}

// ---- numbers ----
// The inverse of hex_float (docs/reference/formats/chain.md).
function fromHex(text) {
  const found = /^(-?)0x([01])(?:\.([0-9a-f]{1,13}))?p([+-]\d+)$/.exec(text);
  if (!found) return NaN;
  const digits = found[3] || '', value = (+found[2] + (digits ? parseInt(digits, 16) / 16 ** digits.length : 0)) * 2 ** +found[4];
  return found[1] ? -value : value;
}
// A value of a canonical object as people read it.
function readable(value) {
  if (value === undefined) return 'absent';
  if (typeof value === 'string') { const number = fromHex(value); return Number.isNaN(number) ? value : String(number); }
  return JSON.stringify(value);
}
// A text that stands within another one, with the marks of direction, which would turn what follows, as letters.
const plain = text => text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, mark => '\\u' + mark.charCodeAt(0).toString(16).padStart(4, '0'));
const short = v => String(+v.toPrecision(6));

// ---- SHA-256 (FIPS 180-4); a page from a folder has no other in every browser ----
const primes = (() => { const out = []; for (let n = 2; out.length < 64; ++n) if (out.every(p => n % p)) out.push(n); return out; })();
const kRound = primes.map(p => (Math.cbrt(p) % 1) * 2 ** 32 | 0), kBegin = primes.slice(0, 8).map(p => (Math.sqrt(p) % 1) * 2 ** 32 | 0);
function sha256(bytes) {
  const size = bytes.length, padded = new Uint8Array((size + 9 + 63) >> 6 << 6), view = new DataView(padded.buffer);
  padded.set(bytes);
  padded[size] = 128;
  view.setUint32(padded.length - 8, Math.floor(size / 2 ** 29));
  view.setUint32(padded.length - 4, size << 3 >>> 0);
  const h = Int32Array.from(kBegin), w = new Int32Array(64), turn = (x, n) => x >>> n | x << 32 - n;
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; ++i) w[i] = view.getInt32(at + 4 * i);
    for (let i = 16; i < 64; ++i) {
      const x = w[i - 15], y = w[i - 2];
      w[i] = w[i - 16] + (turn(x, 7) ^ turn(x, 18) ^ x >>> 3) + w[i - 7] + (turn(y, 17) ^ turn(y, 19) ^ y >>> 10) | 0;
    }
    let [a, b, c, d, e, f, g, k] = h;
    for (let i = 0; i < 64; ++i) {
      const one = k + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + (e & f ^ ~e & g) + kRound[i] + w[i] | 0;
      const two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + (a & b ^ a & c ^ b & c) | 0;
      k = g; g = f; f = e; e = d + one | 0; d = c; c = b; b = a; a = one + two | 0;
    }
    h[0] += a; h[1] += b; h[2] += c; h[3] += d; h[4] += e; h[5] += f; h[6] += g; h[7] += k;
  }
  return Array.from(h, x => (x >>> 0).toString(16).padStart(8, '0')).join('');
}

// What is wider than its place can be scrolled by keys, too.
function scrollable() {
  let tables = 0;
  for (const box of document.querySelectorAll('.scroll, pre')) if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) {
    box.tabIndex = 0;
    if (box.className === 'scroll') { box.setAttribute('role', 'region'); box.setAttribute('aria-label', 'table ' + ++tables); }
  }
}
// A page of a lab that is not done is followed by the next one, where the server still answers.
function follow() {
  const main = document.querySelector('main'), seen = main.dataset.live;
  if (!seen) return;
  setTimeout(async () => {
    try {
      const answer = await fetch(location.href, {cache: 'no-store'});
      const next = answer.ok && new DOMParser().parseFromString(await answer.text(), 'text/html'), body = next && next.querySelector('main');
      if (body && body.dataset.live !== seen) {
        for (const known of [asked, loaded]) for (const name of Object.keys(known)) delete known[name];
        document.querySelector('header').replaceWith(next.querySelector('header'));
        main.replaceWith(body);
        start();
        return;
      }
    } catch { /* it stays as it is */ }
    follow();
  }, 2000);
}
function start() {
  for (const table of document.querySelectorAll('table[data-table]')) upgradeTable(table);
  for (const figure of document.querySelectorAll('figure[data-chart]')) upgradeChart(figure);
  for (const place of document.querySelectorAll('[data-check]')) upgradeCheck(place);
  for (const place of document.querySelectorAll('[data-batches]')) upgradeBatches(place);
  if (byId('diff')) upgradeDiff();
  scrollable();
  follow();
}
)js";

}  // namespace ostro::site
