"""Part of serve_page.py: a line of a million characters in the field and in answers, and what the policy of the page keeps from a
script that came into it."""
import hashlib
import json
import random

LAST = "document.querySelector('article:last-of-type')"


def long_lines(tab, check, pictures):
    """One line of a million characters, in scripts of both directions, goes into the field, is sent, is an answer and comes back. A
    browser alone takes minutes for it, so no field and no block of the page may have all of it."""
    line = "a\u202eb\u0645\u0631</script><b>" * (2**20 // 16)
    blocks = "[...document.querySelectorAll('.text > div')]"
    shown = "[$('prompt').value.length, held.length, $('held').hidden]"

    def whole(which):
        return tab.run(f"(async () => hex(await crypto.subtle.digest('SHA-256', new TextEncoder().encode({which}))))()") == hashlib.sha256(wanted.encode()).hexdigest()

    tab.run("(() => { $('fresh').click(); $('mode').value = 'text'; $('prompt').focus(); })()")
    tab.write(line)
    check(tab.run(shown) == [0, len(line), False], f"a long line in the field: {tab.run(shown)}")
    tab.write(" and more")
    wanted = line + " and more"
    tab.press("Enter")
    check(tab.until("turns.length === 2 && !running"), "a long line has no end")
    check("context is" in tab.run("turns[1].note") and whole("turns[0].text") and tab.run(shown) == [0, 0, True], f"{tab.run('turns[1].note')[:300]}, {tab.run(shown)}")
    tab.run("(() => { turns[1].text = turns[0].text; draw(); })()")
    check(whole("document.querySelectorAll('.text')[0].textContent") and whole(f"{LAST}.querySelector('.text').textContent"), "a long text is shown as another one")
    sizes = tab.run(f"{blocks}.map(block => block.textContent.length)")
    check(len(sizes) > 2 * len(line) // 8000 and max(sizes) <= 8000, f"{len(sizes)} blocks of at most {max(sizes)} characters")
    check(tab.run("document.querySelectorAll('#talk b').length === 0 && document.documentElement.scrollWidth <= document.documentElement.clientWidth"), "a long line is markup, or wider than the page")
    copied = f"(() => {{ getSelection().selectAllChildren({LAST}.querySelector('.text')); const e = new ClipboardEvent('copy', {{clipboardData: new DataTransfer(), bubbles: true}}); "
    check(whole(copied + f"{LAST}.querySelector('.text').dispatchEvent(e); return e.clipboardData.getData('text/plain'); }})()"), "what is copied has other characters")
    # Answers grow by pieces; a text of short lines ends its blocks behind lines, and no character is halved.
    rng = random.Random(1)
    pieces = ["".join(rng.choice(("\U0001f600", "a", "word ", "\u0301", "\n" if i % 2 else "b")) for _ in range(rng.randint(1, 900))) for i in range(200)]
    tab.run(f"(() => {{ window.grown = $('fresh').ownerDocument.createElement('div'); for (const piece of {json.dumps(pieces)}) grow(grown, piece); }})()")
    wanted = "".join(pieces)
    ends = tab.run("[...grown.children].map(block => [block.textContent.length, block.textContent.isWellFormed()])")
    check(whole("grown.textContent") and max(size for size, _ in ends) <= 8000 and all(good for _, good in ends), f"{ends}")
    tab.run("document.querySelector('article.user button').click()")
    check(tab.run(shown) == [0, len(line) + 9, False], f"Edit of a long text: {tab.run(shown)}")
    if pictures:
        tab.run("(() => { turns = [{role: 'user', text: held}, {role: 'assistant', text: held, tokens: [], note: 'A note.'}]; draw(); })()")
        tab.picture(pictures / "page_long.png")
        tab.run("$('fresh').click()")
    tab.run("$('unhold').click()")
    check(tab.run(shown) == [0, 0, True] and tab.run("document.activeElement.id") == "prompt", f"a long text that is left out: {tab.run(shown)}")
    # Pasted, in the middle of what stands there; a text of short lines stays in the field.
    def paste(text):
        tab.run(f"(() => {{ $('system').closest('details').open = true; $('system').value = {json.dumps(text)}; $('system').select(); }})()")
        tab.call("Input.dispatchKeyEvent", type="keyDown", key="F15", commands=["copy"])
        tab.run("(() => { $('prompt').value = '<>'; $('prompt').focus(); $('prompt').setSelectionRange(1, 1); })()")
        tab.call("Input.dispatchKeyEvent", type="keyDown", key="F15", commands=["paste"])
        return tab.run("[held, $('prompt').value]")

    check(paste("x" * 9000) == ["<" + "x" * 9000 + ">", ""], f"pasted: {tab.run(shown)}")
    tab.run("$('unhold').click()")
    check(paste("short\n" * 3000) == ["", "<" + "short\n" * 3000 + ">"], f"many short lines: {tab.run(shown)}")
    tab.run("(() => { $('prompt').value = $('system').value = ''; })()")


# What a page that was broken into would try; each line is undone by the directives behind it.
BREAK_IN = """new Promise(done => {
  const seen = [];
  document.addEventListener('securitypolicyviolation', event => seen.push(event.effectiveDirective));
  const script = document.createElement('script'), image = new Image(), text = document.createElement('p');
  script.append('window.bad = 1');
  document.body.append(script, text);
  image.src = OTHER + '/image.png';
  fetch(OTHER + '/fetch').catch(() => {});
  text.setAttribute('style', 'color: rgb(1, 2, 3)');
  try { text.innerHTML = '<b>bold</b>'; } catch {}
  setTimeout(() => done([[...new Set(seen)].sort(), !!window.bad, getComputedStyle(text).color === 'rgb(1, 2, 3)', !!text.querySelector('b')]), 100);
})"""


def policy(tab, server, check):
    """The policy of the page keeps a script, a picture, a request, a style and markup from it; without the policy, as a control, they come."""
    other = f"http://127.0.0.1:{server.port + 1 if server.port < 65535 else server.port - 1}"
    script = BREAK_IN.replace("OTHER", json.dumps(other))
    seen, *came = tab.run(script)
    check(set(seen) >= {"connect-src", "img-src", "require-trusted-types-for", "style-src-attr"} and any(d.startswith("script-src") or d == "require-trusted-types-for" for d in seen), f"violations of {seen}")
    check(came == [False] * 3, f"script, style and markup came: {came}")
    check(not _sent(tab, other), f"the page asked for {_sent(tab, other)}")
    tab.call("Page.setBypassCSP", enabled=True)
    tab.call("Page.navigate", url=f"http://127.0.0.1:{server.port}/")
    check(tab.until("document.getElementById('status') && document.getElementById('status').textContent.startsWith('Ready')"), "the page without its policy is not ready")
    seen, *came = tab.run(script)
    check(not seen and came == [True] * 3 and len(_sent(tab, other)) == 2, f"without the policy: {seen}, {came}, {_sent(tab, other)}")


def _sent(tab, address):
    """Requests to an address that went out."""
    stopped = {e["params"]["requestId"] for e in tab.events if e.get("method") == "Network.loadingFailed" and e["params"].get("blockedReason") == "csp"}
    return [e["params"]["request"]["url"] for e in tab.events if e.get("method") == "Network.requestWillBeSent" and e["params"]["requestId"] not in stopped
            and e["params"]["request"]["url"].startswith(address)]
