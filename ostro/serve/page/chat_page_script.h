// kChatScript: what the page at "/" does: asks the server, shows answers as they come, and checks receipts.
//
// Texts of the model and of people become text nodes and nothing else. Numbers that a receipt's hash covers
// are taken from the bytes that came, since a browser writes some of them in another way.
#pragma once

namespace ostro::serve {

inline constexpr const char* kChatScript = R"js(
'use strict';
const $ = id => document.getElementById(id);
const node = (tag, attributes, ...inside) => {
  const out = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) name in out ? out[name] = value : out.setAttribute(name, value);
  out.append(...inside);
  return out;
};
const button = (text, action, more = {}) => node('button', {type: 'button', onclick: action, ...more}, text);

// A browser takes minutes to lay out one line of a million characters, of some scripts. So a long text stands in blocks of at
// most `most` characters, of which only those in sight are laid out. They end behind a line where there is one.
const most = 8000;
function cut(text) {
  if (text.length <= most) return text.length;
  const line = text.lastIndexOf('\n', most - 1), word = text.lastIndexOf(' ', most - 1);
  if (line > 0) return line + 1;
  if (word > most / 2) return word + 1;
  return (text.charCodeAt(most) & 0xfc00) === 0xdc00 ? most - 1 : most;  // no character is halved
}
// Adds text to the blocks of an element.
function grow(place, text) {
  const last = place.lastChild;
  if (last && last.textContent.length + text.length <= most) { last.firstChild.appendData(text); return place; }
  if (last) { text = last.textContent + text; last.remove(); }
  while (text) {
    const end = cut(text);
    place.append(node('div', {}, text.slice(0, end)));
    text = text.slice(end);
  }
  return place;
}
// What is copied has no line ends that blocks made.
document.oncopy = event => {
  const chosen = getSelection(), range = chosen.rangeCount ? chosen.getRangeAt(0) : null, inside = range && range.commonAncestorContainer;
  if (!inside || !(inside.nodeType === 1 ? inside : inside.parentElement).closest('.text')) return;
  event.clipboardData.setData('text/plain', range.cloneContents().textContent);
  event.preventDefault();
};
let turns = [], running = null, model = null, hasTemplate = false, key = sessionStorage.getItem('key') || '';

function say(text, bad) { $('status').textContent = text; $('status').className = bad ? 'bad' : ''; }
const headers = () => key ? {'Content-Type': 'application/json', Authorization: 'Bearer ' + key} : {'Content-Type': 'application/json'};
async function ask(path, body, signal) {
  const answer = await fetch(path, {method: body === undefined ? 'GET' : 'POST', body, headers: headers(), signal});
  if (answer.status === 401) { $('keys').hidden = false; $('key').focus(); }
  if (!answer.ok) {
    const text = await answer.text();
    let message = text;
    try { message = JSON.parse(text).error.message; } catch {}
    throw new Error(answer.status + ': ' + message);
  }
  return answer;
}
async function connect() {
  try {
    model = (await (await ask('/v1/models')).json()).data[0];
    hasTemplate = 'chat_template' in await (await ask('/tokenizer_info')).json();
    $('name').textContent = model.id;
    $('facts').textContent = 'state ' + model.state.slice(0, 12) + ', context of ' + model.max_model_len + ' tokens';
    document.title = model.id;
    $('mode').value = hasTemplate ? 'chat' : 'text';
    $('mode').querySelector('[value=chat]').disabled = !hasTemplate;
    $('keys').hidden = !key;
    say(hasTemplate ? 'Ready.' : 'Ready. This model has no chat template: it continues your text.');
  } catch (error) { say(String(error.message), true); }
}

function options() {
  const out = {};
  for (const input of document.querySelectorAll('[data-field]'))
    if (input.value !== '') out[input.dataset.field] = Number(input.value);
  return out;
}
// `seed`: digits, since a number of JavaScript has no 64 bits.
function body(before, seed) {
  const out = {...options(), stream: true, receipt: $('receipts').checked};
  const chat = $('mode').value === 'chat';
  if (chat) {
    const system = $('system').value ? [{role: 'system', content: $('system').value}] : [];
    Object.assign(out, {messages: system.concat(before.map(t => ({role: t.role, content: t.text}))), logprobs: true, top_logprobs: 5});
  } else {
    Object.assign(out, {prompt: before.map(t => t.text).join(''), logprobs: 5, max_tokens: out.max_tokens || 128});
  }
  if (!seed && out.receipt) out.nonce = Array.from(crypto.getRandomValues(new Uint8Array(16)), b => b.toString(16).padStart(2, '0')).join('');
  const text = JSON.stringify(out);
  return seed ? text.slice(0, -1) + ',"seed":' + seed + '}' : text;
}

// The text of a member's object in JSON text, as it came.
function rawObject(text, name) {
  let begin = text.indexOf('"' + name + '":{');
  if (begin < 0) return '';
  begin += name.length + 3;
  let depth = 0, quoted = false;
  for (let i = begin; i < text.length; ++i) {
    const c = text[i];
    if (quoted) { if (c === '\\') ++i; else if (c === '"') quoted = false; }
    else if (c === '"') quoted = true;
    else if (c === '{') ++depth;
    else if (c === '}' && --depth === 0) return text.slice(begin, i + 1);
  }
  return '';
}
// Log-probabilities of both paths as {bytes or text, logprob, top: [[text, logprob]]}.
function tokensOf(choice) {
  const l = choice.logprobs;
  if (!l) return [];
  if (l.content) return l.content.map(t => ({text: t.token, bytes: t.bytes, logprob: t.logprob, top: t.top_logprobs.map(o => [o.token, o.logprob])}));
  return l.tokens.map((text, i) => ({text, logprob: l.token_logprobs[i], top: Object.entries(l.top_logprobs[i] || {}).sort((a, b) => b[1] - a[1])}));
}

async function answer(seed) {
  if (running) return;
  const turn = {role: 'assistant', text: '', tokens: [], note: ''};
  const asked = body(turns, seed), path = $('mode').value === 'chat' ? '/v1/chat/completions' : '/v1/completions';
  turns.push(turn);
  running = new AbortController();
  draw();
  try {
    const reader = (await ask(path, asked, running.signal)).body.getReader(), decoder = new TextDecoder();
    let waiting = '';
    while (true) {
      const {value, done} = await reader.read();
      if (done) break;
      waiting += decoder.decode(value, {stream: true});
      const events = waiting.split('\n\n');
      waiting = events.pop();
      for (const event of events) take(turn, event.slice(6));
      redraw(turn);
    }
    if (!turn.finish && !turn.note) turn.note = 'The answer was cut off.';
  } catch (error) {
    turn.note = error.name === 'AbortError' ? 'Stopped.' : error.message;
    turn.bad = error.name !== 'AbortError';
  }
  running = null;
  draw();
  $('prompt').focus();
}
function take(turn, data) {
  if (data === '[DONE]') return;
  const event = JSON.parse(data);
  if (event.error) { turn.note = event.error.message; turn.bad = true; return; }
  for (const choice of event.choices) {
    turn.text += choice.delta ? choice.delta.content || '' : choice.text || '';
    turn.tokens.push(...tokensOf(choice));
    if (choice.finish_reason) {
      turn.finish = choice.finish_reason;
      turn.seed = String(choice.seed);
      if (choice.receipt) {
        turn.document = choice.receipt;
        turn.file = rawObject(data, 'receipt');
        turn.raw = rawObject(turn.file, 'receipt');
        turn.seed = choice.receipt.receipt.seed;
      }
    }
  }
}

const percent = logprob => (100 * Math.exp(logprob)).toPrecision(3) + ' %';
const shade = logprob => 'p' + Math.min(4, Math.floor(5 * Math.exp(logprob)));
const visible = text => JSON.stringify(text);
function tokenText(decoder, token) {
  if (!token.bytes) return token.text.startsWith('bytes:') ? '\ufffd' : token.text;
  return decoder.decode(new Uint8Array(token.bytes), {stream: true});
}
// The tokens of an answer, shaded by their chance; the arrow keys go through them.
function chances(turn) {
  const decoder = new TextDecoder(), about = node('pre', {ariaLive: 'polite'}, 'Click a token, or press the arrow keys, to see its chance.');
  const spans = turn.tokens.map(t => node('span', {className: 't ' + shade(t.logprob)}, tokenText(decoder, t)));
  const text = node('div', {className: 'text', tabIndex: 0, role: 'group', ariaLabel: 'tokens with their chances'});
  let size = 0;
  for (const span of spans) {
    if (!size) text.append(node('div', {}));
    text.lastChild.append(span);
    size += span.textContent.length;
    if (size > most || size > most / 2 && span.textContent.endsWith('\n')) size = 0;
  }
  let now = -1;
  const show = i => {
    if (i < 0 || i >= spans.length) return;
    if (now >= 0) spans[now].classList.remove('now');
    spans[now = i].classList.add('now');
    spans[i].scrollIntoView({block: 'nearest'});
    const t = turn.tokens[i];
    about.textContent = 'token ' + (i + 1) + ' of ' + spans.length + ': ' + visible(t.text) + ', chance ' + percent(t.logprob) + ', log-probability ' + t.logprob +
      t.top.map(([other, l]) => '\n' + percent(l).padStart(8) + '  ' + visible(other)).join('');
  };
  text.onkeydown = event => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (step) { show(now < 0 ? 0 : now + step); event.preventDefault(); }
  };
  spans.forEach((span, i) => span.onclick = () => show(i));
  return [text, about];
}

const hex = bytes => Array.from(new Uint8Array(bytes), b => b.toString(16).padStart(2, '0')).join('');
const sha = async data => hex(await crypto.subtle.digest('SHA-256', typeof data === 'string' ? new TextEncoder().encode(data) : data));
function fromPem(text) {
  return Uint8Array.from(atob(text.replace(/-----[^-]*-----|\s/g, '')), c => c.charCodeAt(0));
}
// What a browser can check of a receipt: everything but the model's own computation.
async function check(turn) {
  const {receipt, opening, signature, public_key} = turn.document, lines = [];
  const line = (good, text) => lines.push([good, text]);
  if (!crypto.subtle) return [[false, 'this browser computes hashes only on https or on localhost']];
  const ids = (label, list) => sha(label + '\n' + opening.salt + '\n' + list.join(',') + '\n');
  line(await ids('prompt', opening.prompt_ids) === receipt.prompt, 'the prompt of the opening has the hash of the receipt');
  line(await ids('output', opening.output_ids) === receipt.output, 'the answer of the opening has the hash of the receipt');
  const floats = new DataView(new ArrayBuffer(4 * opening.log_probs.length));
  opening.log_probs.forEach((v, i) => floats.setFloat32(4 * i, v, true));
  line(await sha(floats.buffer) === receipt.log_probs, 'the log-probabilities have the hash of the receipt');
  line(opening.log_probs.length === turn.tokens.length && opening.log_probs.every((v, i) => v === turn.tokens[i].logprob), 'they are the chances that this page shows');
  const now = (await (await ask('/v1/models')).json()).data[0].state, same = receipt.state === now;
  lines.push([same || null, same ? 'the state is the one that the server names' : 'the state is ' + receipt.state.slice(0, 12) + '; the server has another one now, ' + now.slice(0, 12)]);
  if (receipt.nonce) {
    const digest = await sha(receipt.nonce + '\n' + receipt.state + '\n' + opening.prompt_ids.join(',') + '\n' + rawObject(turn.raw, 'options') + '\n');
    line(BigInt('0x' + digest.slice(0, 16)).toString() === receipt.seed, 'the seed follows from the nonce that this page drew');
  }
  if (signature) {
    try {
      const der = fromPem(public_key), secret = await crypto.subtle.importKey('spki', der, 'Ed25519', true, ['verify']);
      const bytes = Uint8Array.from(signature.match(/../g), b => parseInt(b, 16));
      line(await crypto.subtle.verify('Ed25519', secret, bytes, new TextEncoder().encode(turn.raw)) && await sha(der) === receipt.key, 'the signature is one of this receipt, by the key ' + receipt.key.slice(0, 12));
    } catch { lines.push([null, 'signed; this browser does not know Ed25519']); }
  } else { lines.push([null, 'not signed']); }
  lines.push([null, 'receipt ' + receipt.number + ' of its server, hash ' + await sha(turn.raw)]);
  return lines;
}
function receiptBox(turn, place) {
  const shown = node('pre', {}), file = new Blob([turn.file], {type: 'application/json'});
  const save = node('a', {href: URL.createObjectURL(file), download: 'r.json'}, 'save r.json');
  place.append(node('div', {className: 'tools'}, save), shown);
  check(turn).then(lines => {
    for (const [good, text] of lines)
      shown.append(node('span', {className: good === null ? '' : good ? 'good' : 'bad'}, (good === null ? '  ' : good ? '\u2713 ' : '\u2717 ') + text + '\n'));
    shown.append('\nWhat takes the checkpoint itself, that it gives this answer, is checked by\nostro verify --receipt r.json --checkpoint CHECKPOINT');
  }).catch(error => { shown.append(node('span', {className: 'bad'}, String(error))); });
}

// A text with a line too long for the field is kept beside it, and sent before what stands there.
let held = '';
function hold(text) {
  held = text;
  $('held').hidden = !held;
  $('heldsize').textContent = 'A text of ' + held.length + ' characters, which begins \u2068' + held.slice(0, 40).replace(/\s/g, ' ') + '\u2069\u2026, is sent before what you write.';
}
const isLong = text => text.split('\n').some(line => line.length > most);
function fill(text) {
  hold(isLong(text) ? text : '');
  $('prompt').value = held ? '' : text;
}

function edit(i) {
  if (running) return;
  fill(turns[i].text);
  turns.length = i;
  draw();
  $('prompt').focus();
}
function again(i, seed) {
  if (running) return;
  turns.length = i;
  answer(seed);
}
function card(turn, i) {
  const out = node('article', {className: turn.role}, node('h2', {}, turn.role === 'user' ? 'You' : model ? model.id : 'Model'));
  const tools = node('div', {className: 'tools'}), place = node('div', {});
  turn.shown = turn.text.length;
  if (turn.chances) out.append(...chances(turn));
  else out.append(turn.view = grow(node('div', {className: 'text'}), turn.text));
  if (turn.note) out.append(node('p', {className: turn.bad ? 'bad' : '', role: 'status'}, turn.note));
  const idle = !running;
  if (turn.role === 'user') tools.append(button('Edit', () => edit(i), {disabled: !idle}));
  else if (idle) {
    if (turn.seed) tools.append(button('Again, same seed', () => again(i, turn.seed)));
    tools.append(button('Again, another seed', () => again(i, '')));
    if (turn.tokens.length) tools.append(button(turn.chances ? 'Text alone' : 'Chances', () => { turn.chances = !turn.chances; draw(); }, {ariaPressed: String(!!turn.chances)}));
    if (turn.document) tools.append(button('Check the receipt', event => { event.target.disabled = true; receiptBox(turn, place); }));
    if (turn.seed) tools.append(node('span', {}, turn.tokens.length + ' tokens, seed ' + turn.seed + ', ' + (turn.finish === 'length' ? 'cut at its length' : 'ended')));
  }
  out.append(tools, place);
  return out;
}
function draw() {
  $('talk').replaceChildren(...turns.map(card));
  $('send').disabled = !!running;
  $('stop').hidden = !running;
  const last = $('talk').lastChild;
  if (!last) return;
  last.style.scrollMarginBottom = $('form').offsetHeight + 'px';  // the form stands over the end of the window
  last.scrollIntoView({block: 'end'});
}
function redraw(turn) { if (turn.view) grow(turn.view, turn.text.slice(turn.shown)); turn.shown = turn.text.length; }

function send() {
  if (running) return;
  const text = held + $('prompt').value;
  if (!text) return;
  fill('');
  turns.push({role: 'user', text});
  answer($('seed').value.trim());
}
$('form').onsubmit = event => { event.preventDefault(); send(); };
$('prompt').onkeydown = event => { if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(); } };
$('prompt').onbeforeinput = event => {
  const text = event.data ?? event.dataTransfer?.getData('text/plain') ?? '', field = $('prompt');
  if (!isLong(text)) return;
  event.preventDefault();
  fill(held + field.value.slice(0, field.selectionStart) + text + field.value.slice(field.selectionEnd));
};
$('unhold').onclick = () => { hold(''); $('prompt').focus(); };
document.onkeydown = event => { if (event.key === 'Escape' && running) running.abort(); };
$('stop').onclick = () => running?.abort();
$('fresh').onclick = () => { if (!running) { turns = []; draw(); $('prompt').focus(); } };
$('usekey').onclick = () => { key = $('key').value.trim(); sessionStorage.setItem('key', key); $('key').value = ''; connect(); };
$('key').onkeydown = event => { if (event.key === 'Enter') { event.preventDefault(); $('usekey').click(); } };
connect();
)js";

}  // namespace ostro::serve
