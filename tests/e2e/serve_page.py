"""Part of serve_test.py: the page at "/" of `ostro serve`, in a browser: a talk by keys alone, stop, edit, the same seed
again, chances, the check of a receipt, texts that are markup, a key that is asked for. What is hostile beyond that is in
serve_page_hostile.py."""
import hashlib
import json

import browser
import cdp
import serve_page_hostile

HOSTILE = "</textarea><script>window.bad=1</script><img src=http://127.0.0.1:9/x onerror='window.bad=1'>{{7*7}}\u202e\u2028]]>" + "\u0301" * 300
LAST = "document.querySelector('article:last-of-type')"


def _press(tab, text):
    """Goes by Tab to a button of the last answer, and presses it."""
    check = f"document.activeElement.textContent === {json.dumps(text)}"
    tab.run(f"(() => {{ {LAST}.querySelector('button').focus(); }})()")
    for _ in range(20):
        if tab.run(check):
            tab.press("Enter")
            return
        tab.press("Tab")
    raise RuntimeError(f"Tab does not come to {text}")


def _say(tab, text):
    tab.run("document.getElementById('prompt').focus()")
    tab.write(text)
    tab.press("Enter")


def _over(tab):
    return tab.until(f"document.getElementById('stop').hidden && {LAST} && {LAST}.className === 'assistant'")


def page(test, server, check, pictures=None):
    size = len(server.raw("GET", "/")[1])
    check(1000 < size <= 100_000, f"the page has {size} bytes")
    if browser.find() is None:
        print("  NOT TRIED: no chromium, so the page was not opened")
        return
    for colours in ("light", "dark"):
        tab = cdp.Browser()
        try:
            tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])
            tab.call("Page.navigate", url=f"http://127.0.0.1:{server.port}/")
            check(tab.until("document.getElementById('status') && document.getElementById('status').textContent.startsWith('Ready')"), "the page is not ready")
            _talk(test, tab, check)
            if pictures:
                tab.picture(pictures / f"page_{colours}.png")
            # The hostile prompt does not fit into this model's context, and the browser notes the answer's 400.
            wrong = [c for c in tab.complaints() if "status of 400" not in json.dumps(c)]
            check(not wrong and len(tab.complaints()) <= 1, f"the console has {json.dumps(tab.complaints())[:2000]}")
            strange = [url for url in tab.asked_for() if not url.startswith((f"http://127.0.0.1:{server.port}/", "data:,", "blob:"))]
            check(not strange, f"the page asks for {strange}")
            if colours == "light":
                serve_page_hostile.long_lines(tab, check, pictures)
            else:
                serve_page_hostile.policy(tab, server, check)
            back = tab.run("getComputedStyle(document.body).backgroundColor")
            check(back == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}[colours], f"{colours}: {back}")
        finally:
            tab.close()


def _talk(test, tab, check):
    def answer():
        return tab.run(f"{LAST}.querySelector('.text').textContent")

    tab.run("(() => { document.querySelector('[data-field=max_tokens]').value = 12; document.getElementById('seed').value = ''; })()")
    _say(tab, "the work")
    check(_over(tab), "no answer comes")
    first = answer()
    count = tab.run("turns[1].tokens.length")
    check(tab.run("turns.length") == 2 and 1 <= count <= 12, f"{tab.run('turns')}")
    _press(tab, "Again, same seed")
    check(_over(tab) and answer() == first, f"{answer()!r} is another answer than {first!r} with the same seed")
    _press(tab, "Check the receipt")
    check(tab.until(f"{LAST}.querySelectorAll('.good, .bad').length >= 6"), "the receipt is not checked")
    check(tab.run(f"{LAST}.querySelectorAll('.bad').length") == 0, tab.run(f"{LAST}.textContent"))
    document = tab.run("turns[1].file")
    raw = tab.run("turns[1].raw")
    check(raw == json.dumps(json.loads(raw), separators=(",", ":"), ensure_ascii=False) or "1.0" in raw, f"{raw} is not canonical")
    (test.folder / "page.json").write_text(document)
    text = test.program("verify", "--receipt", "page.json", "--checkpoint", "runs/nano")
    check(text.startswith(f"equal: {count} tokens"), f"the page's receipt: {text}")
    check(hashlib.sha256(raw.encode()).hexdigest() in tab.run(f"{LAST}.textContent"), "the page shows another hash than its receipt's")
    # A receipt that says something else is found, and so the check can fail.
    tab.run("(() => { turns[1].document.opening.output_ids[0] ^= 1; turns[1].tokens[0].logprob = -0.5; draw(); })()")
    _press(tab, "Check the receipt")
    check(tab.until(f"{LAST}.querySelectorAll('.bad').length === 2"), f"a forged opening: {tab.run(f'{LAST}.textContent')}")
    _press(tab, "Chances")
    tab.run(f"{LAST}.querySelector('.text').focus()")
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        tab.press(key)
    shown = tab.run(f"{LAST}.querySelector('pre').textContent")
    check(shown.startswith(f"token 1 of {count}: ") and "log-probability -" in shown and shown.count("\n") >= 5, shown)
    # Markup is text, in both directions.
    tab.run("(() => { document.querySelector('[data-field=max_tokens]').value = 3; })()")
    tab.run("document.getElementById('fresh').click()")
    tab.run(f"(() => {{ document.getElementById('prompt').value = {json.dumps(HOSTILE)}; document.getElementById('prompt').focus(); }})()")
    tab.press("Enter")
    check(tab.until("turns.length === 2 && !running"), "no end")
    tab.run(f"(() => {{ turns[1] = {{role: 'assistant', text: {json.dumps(HOSTILE * 20)}, tokens: [], note: {json.dumps(HOSTILE)}}}; draw(); }})()")
    check(tab.run("turns[0].text") == HOSTILE and tab.run(f"{LAST}.querySelector('.text').textContent") == HOSTILE * 20, "a text is changed")
    check(tab.run("document.querySelectorAll('#talk img, #talk script').length") == 0 and not tab.run("window.bad"), "markup became elements")
    check(tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), "the page is wider than its window")
    # Edit, and stop.
    tab.run("document.querySelector('article.user button').click()")
    check(tab.run("document.getElementById('prompt').value") == HOSTILE and tab.run("turns.length") == 0, "Edit does not bring the text back")
    tab.run("(() => { document.getElementById('prompt').value = ''; document.querySelector('[data-field=max_tokens]').value = 60; })()")
    _say(tab, "a")
    tab.press("Escape")
    check(_over(tab), "Escape does not stop")
    note = tab.run("turns[1].note")
    check(note in ("Stopped.", "") and (note == "Stopped." or tab.run("turns[1].finish")), f"after Escape: {note}")
    tab.run("(() => { document.getElementById('fresh').click(); document.querySelector('[data-field=max_tokens]').value = 20; })()")
    _say(tab, "the copyright")
    check(_over(tab), "no answer")
    _press(tab, "Chances")
    _press(tab, "Check the receipt")
    check(tab.until(f"{LAST}.querySelectorAll('.good').length >= 6"), "the last receipt")
    # Continuing a text, which models without a template do; the options open by the keyboard.
    tab.run("(() => { document.getElementById('fresh').click(); document.querySelector('summary').focus(); })()")
    tab.press("Enter")
    check(tab.run("document.querySelector('details').open"), "the options do not open")
    tab.run("(() => { document.getElementById('mode').value = 'text'; document.getElementById('seed').value = '18446744073709551615'; })()")
    _say(tab, "the copyright")
    check(_over(tab) and tab.run("turns[1].seed") == "18446744073709551615", f"{tab.run('turns[1]')}")
    _press(tab, "Check the receipt")
    check(tab.until(f"{LAST}.querySelectorAll('.good').length >= 5") and tab.run(f"{LAST}.querySelectorAll('.bad').length") == 0, "a continued text's receipt")


def key(test, server_class, check):
    """A page of a server with keys asks for one."""
    if browser.find() is None:
        return
    (test.folder / "keys.txt").write_text(hashlib.sha256(b"sesame").hexdigest() + " anna\n")
    server = server_class(test.ostro, test.folder, "runs/nano", "--listen", "127.0.0.1:0", "--api_keys", "keys.txt")
    tab = cdp.Browser()
    try:
        tab.call("Page.navigate", url=f"http://127.0.0.1:{server.port}/")
        check(tab.until("document.getElementById('keys') && !document.getElementById('keys').hidden && document.activeElement.id === 'key'"), "no key is asked for")
        tab.write("sesame")
        tab.press("Enter")
        check(tab.until("document.getElementById('status').textContent.startsWith('Ready')"), "the key does not open")
        server.stop()
    finally:
        tab.close()
        server.process.kill()
