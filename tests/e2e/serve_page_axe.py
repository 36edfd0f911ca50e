#!/usr/bin/env python3
"""The page of `ostro serve` under axe-core, the checker of accessibility, in a browser without a window: empty, with its options
open, after a talk with chances and a checked receipt, and where a key is asked for; in light and dark. Nothing serious may be found,
and the page has at most 100 kB.

axe-core comes from npm, so this is no test of the suite, which asks nobody but this machine. Without npm or chromium it says that it
tried nothing, and exits with 77.

    serve_page_axe.py --ostro BINARY [--axe axe.min.js] [--log FILE]
"""
import argparse
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

import browser
import cdp
import serve_page
from program import check
from serve_load import LoadServer, Log, Place, serving

MOST_BYTES = 100_000
GRAVE = ("serious", "critical")
CONTROL = "document.body.append(document.createElement('button'))"  # which has no name


def axe_source(given, folder, log):
    """The text of axe-core, from a file or from npm; None: there is neither."""
    if given:
        return given.read_text()
    if shutil.which("npm") is None:
        return None
    done = subprocess.run(["npm", "pack", "axe-core", "--silent"], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        log.say(f"npm: {done.stderr[:300]}")
        return None
    name = done.stdout.split()[-1]
    log.say(f"{name}, SHA-256 {hashlib.sha256((folder / name).read_bytes()).hexdigest()}")
    with tarfile.open(folder / name) as package:
        return package.extractfile("package/axe.min.js").read().decode()


def violations(tab, what, log):
    """What axe-core finds of the page as it is now, after the control was found."""
    found = tab.run("axe.run(document, {resultTypes: ['violations']}).then(r => JSON.stringify([r.passes.length, r.violations.map(v => [v.impact, v.id, "
                    "v.nodes.map(n => n.html.slice(0, 160))])]))")
    passed, listed = json.loads(found)
    log.say(f"{what}: {passed} rules hold, {len(listed)} do not: {', '.join(f'{impact} {rule}' for impact, rule, _ in listed) or 'none'}")
    for impact, rule, nodes in listed:
        log.say(f"  {rule}: {nodes[0]}")
    return [(what, rule) for impact, rule, _ in listed if impact in GRAVE]


def talk(tab, server, axe, colours, log):
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])
    tab.call("Page.navigate", url=f"http://127.0.0.1:{server.port}/")
    check(tab.until("document.getElementById('status') && document.getElementById('status').textContent.startsWith('Ready')"), "the page is not ready")
    tab.run(f"{axe}; 0")
    out = violations(tab, f"{colours}, empty", log)
    tab.run("(() => { document.querySelector('details').open = true; })()")
    out += violations(tab, f"{colours}, options open", log)
    tab.run("(() => { document.getElementById('mode').value = 'text'; document.querySelector('[data-field=max_tokens]').value = 12; })()")
    serve_page._say(tab, "the work")
    check(serve_page._over(tab), "no answer comes")
    for button in ("Check the receipt", "Chances"):
        serve_page._press(tab, button)
    tab.until(f"{serve_page.LAST}.querySelectorAll('.good, .bad').length >= 5")
    tab.run(f"{serve_page.LAST}.querySelector('.text').focus()")
    tab.press("ArrowRight")
    out += violations(tab, f"{colours}, an answer with its chances and its receipt", log)
    tab.run(f"(() => {{ {CONTROL}; }})()")
    check(violations(tab, f"{colours}, the control, a button without a name", log), "axe-core does not find the control")
    return out


def asks_for_key(tab, server, axe, log):
    tab.call("Page.navigate", url=f"http://127.0.0.1:{server.port}/")
    check(tab.until("document.getElementById('keys') && !document.getElementById('keys').hidden"), "no key is asked for")
    tab.run(f"{axe}; 0")
    return violations(tab, "a key is asked for", log)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--axe", type=pathlib.Path)
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    log = Log(args.log, "The page under axe-core")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        axe = axe_source(args.axe, folder, log)
        if axe is None or browser.find() is None:
            print("NOT TRIED: axe-core comes by npm, and the page is opened by chromium; one of them is missing here")
            sys.exit(77)
        place, bad = Place(args.ostro, folder), []
        for colours in ("light", "dark"):
            with serving(LoadServer(place)) as server, serving(cdp.Browser()) as tab:
                size = len(server.raw("GET", "/")[1])
                check(size <= MOST_BYTES, f"the page has {size} bytes, of {MOST_BYTES} at most")
                bad += talk(tab, server, axe, colours, log)
        (folder / "keys.txt").write_text(hashlib.sha256(b"sesame").hexdigest() + " anna\n")
        with serving(LoadServer(place, "--api_keys", "keys.txt")) as server, serving(cdp.Browser()) as tab:
            bad += asks_for_key(tab, server, axe, log)
        log.say(f"the page has {size} bytes; {len(bad)} serious or critical findings")
    log.write()
    check(not bad, f"axe-core finds {bad}")


if __name__ == "__main__":
    main()
