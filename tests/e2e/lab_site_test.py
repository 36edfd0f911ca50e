#!/usr/bin/env python3
"""Tests the pages of `ostro lab site`: the same bytes from other folders, threads and locales; texts in no file unless the plan
marks their licence; names and texts that are markup. With --browser a browser opens them from disk and uses every kind of page:
the run table, curves, the check of a chain, two runs compared, a document and its steps; without scripts, too. What the
pages say is compared with the lab's own files.

    lab_site_test.py --ostro PROGRAM [--browser] [--pictures FOLDER]
"""
import argparse
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import browser
import cdp
from lab_test import Lab, Texts
from program import check

SKIPPED = 77
PATIENCE = 600
SHOWN, HIDDEN = "a sentence that everybody may read", "a sentence that nobody gave away"
HOSTILE = "</script><script>window.bad=1</script><img src=x onerror='window.bad=1'>\u202e\"'\u2028]]>"
FILE = "<b onclick='bad=1'>\u202e&.jsonl"
CONFIG = """
model: {seq_len: 32, hidden_dim: 16, intermediate_dim: 32, num_layers: 1, num_heads: 2, num_kv_heads: 2}
trainer: {mp: f32, train_batch_size: 4, num_train_steps: 12, steps_per_eval: 6, checkpointer: {keep: [{every: 4}]}}
numerics: {leaf_examples: 2}
"""
PLAN = """
lab: small
question: QUESTION
show_texts: [CC0-1.0]
steps:
  open: {source: {files: [open], licence: CC0-1.0}}
  long: {source: {files: [long], licence: CC0-1.0}}
  closed: {source: {files: [closed], licence: "</td><script>window.bad=1</script>"}}
  held: {source: {files: ["held/*.txt"], licence: Apache-2.0}}
  words: {tokenizer: {from: $open, vocab_size: 300}}
  open_rows: {tokens: {from: $open, held_out: $held, tokenizer: $words}}
  long_rows: {tokens: {from: $long, held_out: $held, tokenizer: $words}}
  closed_rows: {tokens: {from: $closed, held_out: $held, tokenizer: $words}}
  base:
    sweep: {rate: [0.001, 0.01]}
    train: {data: {web: $open_rows, hq: $closed_rows, long: $long_rows}, config: tiny.yaml, set: {data.train_weights: {web: 0.5, hq: 0.25, long: 0.25}, optimizer.learning_rate: $rate}}
  cool: {fork: {of: $base, at: 8, set: {optimizer.decay: 4}}}
  score: {eval: {of: $base}}
hypotheses:
  better: {metric: "SELECT s.name, s.loss FROM evaluations s", supported: "mean > 0", refuted: "mean < 0"}
"""


class SiteLab(Lab):
    """A lab with two sources, one of which may be shown, and its site."""

    def __init__(self, ostro, top):
        super().__init__(ostro, top)
        for name in ("open", "closed", "long"):
            (top / name).mkdir()
        words = pathlib.Path("/usr/share/common-licenses/Apache-2.0").read_text().split()
        rows = [{"text": " ".join(words[i:i + 40])} for i in range(0, 200, 40)]
        rows.insert(3, {"text": f"{HOSTILE} {SHOWN}"})
        (top / "open" / FILE).write_text("".join(json.dumps(row) + "\n" for row in rows))
        (top / "long/line.jsonl").write_text(json.dumps({"text": "x yz " * (1 << 18)}) + "\n")
        (top / "closed/more.jsonl").write_text("".join(json.dumps({"text": f"{HIDDEN} {i} " + " ".join(words[i:i + 20])}) + "\n" for i in range(60)))
        (top / "tiny.yaml").write_text(CONFIG)
        self.write(PLAN.replace("QUESTION", json.dumps(f"Which? {HOSTILE}" + "y" * (1 << 20))))
        check(self.start("register", "plan.yaml").returncode == 0, "register")
        self.run()

    def site(self, out, cwd=None, path="plan.yaml", words=(), **variables):
        shutil.rmtree(self.top / out, ignore_errors=True)
        done = self.start_in(cwd or self.top, "site", path, "--out", str(self.top / out), *words, **variables)
        check(done.returncode == 0, f"site: {done.stderr[-2000:]}")
        return self.top / out

    def start_in(self, cwd, *words, **variables):
        top, self.top = self.top, cwd
        try:
            return self.start(*words, **variables)
        finally:
            self.top = top


def files_of(folder):
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def check_bytes(lab, site):
    """The same bytes from elsewhere, and where the lab itself is elsewhere."""
    wanted = files_of(site)
    check(lab.start("run", "plan.yaml").returncode == 0, "the lab's outputs are others than before its pages were made")
    for what, cwd, path, variables in (("threads and locale", None, "plan.yaml", {"OSTRO_THREADS": "2", "LC_ALL": "C", "TZ": "Asia/Tokyo"}),
                                       ("another folder", lab.top.parent, f"{lab.top.name}/plan.yaml", {}), ("a whole path", pathlib.Path("/"), f"{lab.top}/plan.yaml", {})):
        found = files_of(lab.site("again", cwd, path, **variables))
        check(found.keys() == wanted.keys(), f"{what}: files {found.keys() ^ wanted.keys()}")
        check(found == wanted, f"{what}: {[name for name in wanted if found[name] != wanted[name]]} differ")
    moved = lab.top.with_name("moved lab")
    shutil.copytree(lab.top, moved)
    here, lab.top = lab.top, moved
    found = files_of(lab.site("again"))
    lab.top = here
    check(found == wanted, f"a copy of the lab: {[name for name in wanted if found.get(name) != wanted[name]]} differ")
    shutil.rmtree(moved)
    measured = files_of(lab.site("measured", words=("--measured",)))
    check(b"Sessions" in measured["run-1.html"] and b"Sessions" not in wanted["run-1.html"], "sessions")
    sizes = {name: len(data) for name, data in wanted.items() if not name.startswith("report/")}
    check(max(sizes.values()) < 500_000, f"something is large: {sizes}")
    check(sizes["index.html"] + sizes["style.css"] + sizes["site.js"] < 100_000, f"a question of 1 MB: {sizes}")


def check_texts(lab, site):
    """Texts of the source that the plan marks are in one file, those of the other in none; without the mark none is anywhere."""
    def having(folder, text):
        return sorted(name for name, data in files_of(folder).items() if text.encode() in data)

    shown = having(site, SHOWN)
    check(shown and all(re.fullmatch(r"data/batches-\d+-texts\.js", name) for name in shown), f"{SHOWN!r} is in {shown}")
    check(not having(site, HIDDEN), f"{HIDDEN!r} is in {having(site, HIDDEN)}")
    plan = (lab.top / "plan.yaml").read_text()
    lab.write(plan.replace("show_texts: [CC0-1.0]\n", ""))
    index, list_file = site / "index.html", site / "site_files.txt"
    index.unlink()
    index.mkdir()  # an error before most is written
    done = lab.start("site", "plan.yaml", "--out", str(site))
    check(done.returncode == 1 and not having(site, SHOWN), f"after an error {SHOWN!r} is in {having(site, SHOWN)}")
    index.rmdir()
    # A folder of a version that wrote no list: what it has of texts and samples goes, also when the site cannot be written.
    lab.write(plan)
    lab.site("unlisted")
    unlisted = lab.top / "unlisted"
    (unlisted / "site_files.txt").unlink()
    (unlisted / "run-1.html").write_text("<h2>Samples</h2>")
    (unlisted / "data/batches-77-texts.js").write_text(SHOWN)
    for name in ("run-77.html", "notes.html", "run-book.html"):
        (unlisted / name).write_text("of another lab")
    unmarked = plan.replace("show_texts: [CC0-1.0]\n", "")
    lab.write(unmarked)
    index = unlisted / "index.html"
    index.unlink()
    index.mkdir()
    done = lab.start("site", "plan.yaml", "--out", str(unlisted))
    check(done.returncode == 1, f"a folder where a page should be: {done.stderr}")
    check(not having(unlisted, SHOWN) and not having(unlisted, "<h2>Samples"), "texts and samples after an error")
    index.rmdir()
    done = lab.start("site", "plan.yaml", "--out", str(unlisted))
    check(done.returncode == 0, f"after the error: {done.stderr}")
    found = files_of(unlisted)
    check("run-77.html" not in found and "notes.html" in found and "run-book.html" in found, f"without a list: {sorted(found)}")
    shutil.rmtree(unlisted)
    own, old = ("data/vega.min.js", "run-book.html", "batches-1.old.html"), "report/old.html"
    for name in (*own, old):
        (site / name).write_text("of another")
    list_file.write_text(list_file.read_text() + f"{old}\n../plan.yaml\n{own[0][:-1]}")  # the last line is torn
    done = lab.start("site", "plan.yaml", "--out", str(site))  # into the same folder: what was there must go
    check(done.returncode == 0 and not having(site, SHOWN), f"without a mark {SHOWN!r} is in {having(site, SHOWN)}")
    found = files_of(site)
    check(old not in found and (lab.top / "plan.yaml").exists(), "a page of an earlier site is there, or a file beside the site is gone")
    check(all(name in found for name in own), f"files that no site has written are gone: {set(own) - set(found)}")
    check(found["site_files.txt"].decode().split() == sorted(set(found) - {"site_files.txt", *own}), "the list of files")
    lab.write(plan.replace("[CC0-1.0]", "CC0-1.0"))
    check("show_texts: expected a list" in lab.start("site", "plan.yaml", "--out", str(site)).stderr, "a mark that is no list")
    lab.write(plan)
    lab.site("site")


def check_markup(site):
    for name, data in files_of(site).items():
        if name.endswith(".html"):
            page = Texts(data.decode())
            allowed = 0 if name.startswith("report/") else 1
            check(len(re.findall(r"<script", data.decode())) == allowed, f"{name} has other scripts than its own")
            check(not page.found & {"img", "onclick", "onerror", "iframe"}, f"{name}: {page.found}")
            check("default-src 'none'" in data.decode(), f"{name} has no policy")
            for link in page.links:
                check(":" not in link and (site / pathlib.PurePath(name).parent / (link.split("#")[0] or pathlib.PurePath(name).name)).exists(), f"{name}: {link} leads nowhere")
        elif name.endswith(".js") and name.startswith("data/"):
            check(data.isascii() and data.startswith(b"ostro_data(\"") and b"\n" not in data[:-1], f"{name} is no data")


class Tab:
    """A page from disk; what it complains of and asks for is looked at when it is left."""

    def __init__(self, site, *, dark=False, height=900):
        self.site, self.tab = site, cdp.Browser(width=1000, height=height)
        if dark:
            self.tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.run, self.press = self.tab.run, self.tab.press

    def until(self, script):
        return self.tab.until(f"!!({script})")

    def open(self, name):
        """A page that is new, also where only the part behind # differs."""
        self.tab.call("Page.navigate", url="about:blank")
        self.tab.call("Page.navigate", url=(self.site / name.split("#")[0]).resolve().as_uri() + ("#" + name.split("#")[1] if "#" in name else ""))
        check(self.until("document.readyState === 'complete' && location.protocol === 'file:'"), f"{name} does not open")

    def reload(self):
        self.run("window.before = true")
        self.tab.call("Page.reload")
        check(self.until("!window.before && document.readyState === 'complete'"), "the page does not open again")

    def text(self, selector):
        return self.run(f"(document.querySelector({json.dumps(selector)}) || {{}}).textContent")

    def texts(self, selector):
        return self.run(f"[...document.querySelectorAll({json.dumps(selector)})].filter(e => e.offsetParent).map(e => e.textContent)")

    def enter(self, selector, value):
        """What a reader does to a control: a text, or a choice."""
        self.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.value = {json.dumps(value)}; "
                 "e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change', {bubbles: true})); })()")

    def key(self, selector, key="Enter"):
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.press(key)

    def close(self):
        complaints, asked = self.tab.complaints(), self.tab.asked_for()
        self.tab.close()
        check(not complaints, f"the console says {json.dumps(complaints)[:1500]}")
        strange = [url for url in asked if not url.startswith(("file:", "about:blank", "blob:file:", "blob:null"))]
        check(not strange and any(url.startswith("file:") for url in asked), f"the page asks for {strange} of {len(asked)}")


def use_runs(tab):
    tab.open("runs.html")
    rows = "table[data-table] tbody tr:not(.group)"
    first = [f"{rows} td:first-child", f"{rows} td:nth-child({tab.run('''[...document.querySelectorAll('table[data-table] th')].findIndex(t => t.textContent === 'last loss') + 1''')})"]
    names = tab.texts(first[0])
    check(names == ["base[rate=0.001]", "base[rate=0.01]", "cool[rate=0.001]", "cool[rate=0.01]"], names)
    tab.key("table[data-table] th:nth-child(1) button")
    tab.press("Enter")
    check(tab.texts(first[0]) == names[::-1] and "down=1" in tab.run("location.hash"), f"sorted: {tab.texts(first[0])}")
    column = "[...document.querySelectorAll('table[data-table] th button')].find(b => b.textContent === 'last loss')"
    tab.run(f"{column}.click()")
    losses = [float(text) for text in tab.texts(first[1])]
    check(losses == sorted(losses) and len(losses) == 4, f"by loss: {losses}")
    tab.enter("#filter", "cool")
    check(set(tab.texts(first[0])) == set(names[2:]) and tab.text("#said") == "2 of 4 runs", tab.texts(first[0]))
    tab.enter("#group", "rate")
    check(tab.texts("tr.group") == ["rate: 0.001 (1 run)", "rate: 0.01 (1 run)"], tab.texts("tr.group"))
    hidden = "[...document.querySelectorAll('table[data-table] th')].filter(t => t.hidden).map(t => t.textContent)"
    check("optimizer.decay" in tab.run(hidden), f"a column that is equal in what is left: {tab.run(hidden)}")
    state, shown = tab.run("location.hash"), tab.texts(rows)
    tab.reload()
    check(tab.run("location.hash") == state and tab.texts(rows) == shown and tab.run("document.querySelector('#filter').value") == "cool", "after a reload")
    tab.run("document.querySelector('#hide').click()")
    check(tab.run(hidden) == [] and tab.run("[...document.querySelectorAll('th')].some(t => t.textContent === 'model.seq_len')"), "columns that are equal")
    tab.key("#csv")
    lines = tab.run("document.querySelector('#csvtext').value").split("\n")
    check(lines[0].startswith('"run","rate","steps","last loss"') and len(lines) == 4 and lines[1].startswith('"cool[rate=0.001]","0.001","12",'), f"{lines[:2]}")
    check(tab.run("document.querySelector('#csvlink').href.startsWith('blob:')"), "no file to save")


def use_run(tab, lab, run):
    tab.open("run-1.html")
    check(tab.run("document.querySelectorAll('figure svg:not(.live)').length") == 1, "no figure")
    check(not tab.run("document.querySelector('script[src^=data]')"), "data are loaded before anybody asked for them")
    steps = [json.loads(line) for line in (run / "chain.jsonl").read_text().splitlines()]
    losses = {e["step"]: float.fromhex(e["loss"]) for e in steps if e["kind"] == "step"}
    tab.enter("#step", "7")
    check(tab.until("document.querySelector('svg.live')") and tab.until("document.querySelector('#value').textContent"), "no curve")
    check(float(tab.text("#value")) == losses[7], f"step 7: {tab.text('#value')}, and the chain has {losses[7]}")
    whole = tab.run("document.querySelector('svg.live .s0').getAttribute('d')")
    check(whole.count("L") + 1 == len(losses), "the curve has another number of points than the chain")
    tab.key("#in")
    check(tab.until("location.hash.includes('from=')") and tab.run("document.querySelector('svg.live .s0').getAttribute('d')") != whole, "zoom")
    box = tab.run("(() => { const b = document.querySelector('svg.live').getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()")
    before = tab.run("location.hash")
    for kind, at in (("mousePressed", 0.3), ("mouseMoved", 0.6), ("mouseReleased", 0.7)):
        tab.tab.call("Input.dispatchMouseEvent", type=kind, x=box[0] + at * box[2], y=box[1] + box[3] / 2, button="left", buttons=1, clickCount=1)
    check(tab.run("location.hash") != before, "a stretch that is chosen by the pointer")
    tab.key("#whole")
    tab.run("document.querySelector('#log').click()")
    check(tab.until("location.hash.includes('log=1')") and tab.run("document.querySelector('svg.live .s0').getAttribute('d')") != whole, "log scale")
    tab.enter("#smooth", "0.5")
    check(tab.until("document.querySelectorAll('svg.live path.s0').length === 2"), "smoothing")
    state = tab.run("location.hash")
    tab.reload()
    check(tab.until("document.querySelectorAll('svg.live path.s0').length === 2") and tab.run("location.hash") == state and tab.run("document.querySelector('#log').checked"), "after a reload")
    tab.key("#check")
    check(tab.until("document.querySelector('#checked').className"), "no answer")
    said = tab.text("#checked")
    check(tab.run("document.querySelector('#checked').className") == "good" and steps[-1]["h"][:12] in said and f"{len(steps)} lines" in said, said)
    for heading in ("Evaluations", "Evaluations by component", "Lineage", "Identity", "Checkpoints", "Configuration"):
        check(heading in tab.texts("h2"), f"no {heading}")


def canonical(entry):
    return json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def use_check(tab, site):
    """Chains that were changed: the line is named, or that the chain is another run's."""
    def place_of(lines, step):
        return next(i for i, line in enumerate(lines) if json.loads(line)["kind"] == "step" and json.loads(line)["step"] == step)

    def one_loss(lines):
        at = place_of(lines, 7)
        loss = json.loads(lines[at])["loss"]
        other = re.sub(r"p[+](\d+)$", lambda found: f"p+{int(found[1]) + 1}", loss)
        check(other != loss and float.fromhex(other) == 2 * float.fromhex(loss), f"{loss} was not changed")
        return lines[:at] + [lines[at].replace(loss, other)] + lines[at + 1:], f"Changed: line {at + 1} (step 7, loss {2 * float.fromhex(loss)})"

    def all_hashes(lines):
        head, out = "", []
        for line in one_loss(lines)[0]:
            entry = json.loads(line)
            del entry["h"]
            head = hashlib.sha256((head + canonical(entry)).encode()).hexdigest()
            out.append(canonical(entry | {"h": head}))
        return out, f"The chain holds, but it is of another run: its last hash is {head[:12]}"

    def one_missing(lines):
        at = place_of(lines, 3)
        return lines[:at] + lines[at + 1:], f"Changed: line {at + 1} (step 4"

    def no_json(lines):
        return [lines[0], "{", *lines[1:]], "Line 2 is no line of a chain"

    path = site / "data/run-1.js"
    kept = path.read_bytes()
    lines = json.loads(kept.decode().partition(", ")[2].removesuffix(");\n")).splitlines()
    for change in (one_loss, all_hashes, one_missing, no_json):
        changed, words = change(lines)
        path.write_text(f'ostro_data("run-1", {json.dumps(chr(10).join(changed) + chr(10))});\n')
        tab.open("run-1.html")
        tab.key("#check")
        check(tab.until("document.querySelector('#checked').className"), "no answer")
        said = tab.text("#checked")
        check(tab.run("document.querySelector('#checked').className") == "bad" and said.startswith(words), f"{change.__name__}: {said}, not {words}")
    path.write_bytes(kept)


def use_diff(tab, lab, outputs):
    """Compared with what Python reads out of the chains, and with `ostro lab diff`."""
    def steps_of(name):
        return {e["step"]: e for e in map(json.loads, (outputs[name] / "chain.jsonl").read_text().splitlines()) if e["kind"] == "step"}

    names = ["base[rate=0.001]", "base[rate=0.01]", "cool[rate=0.001]", "cool[rate=0.01]"]
    for a, b, option in ((0, 1, "optimizer.learning_rate"), (0, 2, "optimizer.decay")):
        one, two = steps_of(names[a]), steps_of(names[b])
        first = next(s for s in sorted(one.keys() & two.keys()) if any(one[s][k] != two[s][k] for k in ("batch", "tokens", "loss", "leaves", "state")))
        tab.open(f"diff.html#a=run-{a + 1}&b=run-{b + 1}")
        check(tab.until("document.querySelector('#why li')"), f"no answer: {tab.text('#answer')}")
        said, why = tab.text("#answer"), tab.text("#why")
        check(f"is step {first}:" in said and option in why, f"{names[a]}, {names[b]}: step {first} differs, and the page says {said} {why}")
        check(tab.until("document.querySelectorAll('svg.live path.s0, svg.live path.s1').length === 2"), "two curves")
        found = json.loads(lab.start("diff", "--lab", "plan.yaml", names[a], names[b], "--json").stdout)
        without_values = [[re.sub(r" \([^()]*\)", "", text) for text in texts] for texts in (tab.texts("#why li"), found["why"])]
        check(said == found["answer"] and without_values[0] == without_values[1], f"the page says {said} {without_values[0]}, lab diff {found['answer']} {without_values[1]}")
    tab.enter("#b", "run-1")
    check(tab.until("document.querySelector('#answer').textContent.startsWith('Equal: all 12 steps')"), tab.text("#answer"))


def use_batches(tab, lab, run):
    """A step's sequences and a document's uses are those of `ostro data find` and of the source file."""
    tab.open("data.html")
    for text in ("Sources", "Token stores", "open", "closed"):
        check(text in tab.text("main"), f"the ledger has no {text}")
    page = tab.run("document.querySelector('a[href^=batches]').getAttribute('href')")
    tab.open(page)
    check(tab.run("document.querySelectorAll('figure svg').length") == 1, "no figure of the mixture")
    tab.enter("#find", FILE)
    check(tab.until("document.querySelector('#matches button')"), "no documents of the file")
    number = "4"  # the one that is markup
    check(number in tab.run("[...document.querySelectorAll('#matches button')].map(b => b.textContent.split(' ').pop())"), "the document that is markup is in no step")
    tab.run(f"[...document.querySelectorAll('#matches button')].find(b => b.textContent.split(' ').pop() === '{number}').click()")
    check(tab.until("document.querySelector('#document h3')"), "no document")
    facts = dict(tab.run("[...document.querySelectorAll('#document tbody tr')].map(r => [...r.cells].map(c => c.textContent))"))
    lines = (lab.top / "open" / FILE).read_bytes().splitlines(True)
    begin = sum(map(len, lines[:int(number) - 1]))
    check(facts["file"] == f"open/{FILE}" and facts["bytes"] == f"{begin} to {begin + len(lines[int(number) - 1].rstrip()) - 1}", f"{facts}, and the row begins at {begin}")
    done = subprocess.run([lab.ostro, "data", "find", str(run), "--document", f"{FILE}:{number}", "--json"], cwd=lab.top, text=True, capture_output=True, check=False)
    check(done.returncode == 0, done.stderr)
    theirs = sorted((use["step"] + 1, use["row"]) for row in json.loads(done.stdout)["rows"] for use in row["uses"])
    ours = sorted((int(a), int(b)) for a, b in (re.match(r"step (\d+) row (\d+),", text).groups() for text in tab.texts("#document li")))
    check(ours == theirs and f"{len(ours)} times" in tab.text("#document"), f"the page has {ours}, data find {theirs}")
    check(tab.until("document.querySelector('#text') && document.querySelector('#text').textContent"), "no text")
    check(SHOWN in tab.text("#text") and "window.bad=1" in tab.text("#text"), tab.text("#text"))
    check(not tab.run("window.bad") and tab.run("document.querySelectorAll('main img, main script').length") == 0, "markup became elements")
    # From the document to a step that uses it, whose sequence has it.
    check(ours, "no step uses the document")
    tab.run("document.querySelector('#document li button').click()")
    check(tab.until(f"document.querySelector('#sequences h3') && document.querySelector('#sequences h3').textContent === 'Step {ours[0][0]}'"), "the step that uses it")
    check(tab.run(f"[...document.querySelectorAll('#sequences tbody tr')][{ours[0][1]}].textContent.includes({json.dumps(FILE + ' ' + number)})"), "the sequence has the document")
    tab.enter("#atstep", "1")
    tab.key("#later")
    check(tab.until("document.querySelector('#sequences h3').textContent === 'Step 2'"), tab.run("location.hash"))
    state = tab.run("location.hash")
    check(re.search(r"document=\d+%3A\d+", state), f"the address has no component and row: {state}")
    tab.reload()
    check(tab.until("document.querySelector('#sequences h3') && document.querySelector('#document h3')") and tab.run("location.hash") == state, "after a reload")
    # A document of the source without a mark has no text.
    tab.enter("#find", "more.jsonl")
    check(tab.until("[...document.querySelectorAll('#matches button')].some(b => b.textContent.includes('more.jsonl'))"), "no documents of the other file")
    tab.run("document.querySelector('#matches button').click()")
    check(tab.until("document.querySelector('#document h3').textContent.includes('more.jsonl')") and tab.run("document.querySelector('#text') === null"), "a text that nobody marked")


def without_scripts(site):
    tab = cdp.Browser(width=1000)
    try:
        tab.call("Emulation.setScriptExecutionDisabled", value=True)
        for name, words, figures in (("index.html", ["Which?", "base[rate=0.01]", "supported"], 1), ("runs.html", ["cool[rate=0.001]", "optimizer.decay"], 1),
                                     ("run-1.html", ["Lineage", "ostro verify"], 1), ("diff.html", ["begins with the state of"], 0), ("data.html", ["Sources", "batches-1"], 0),
                                     ("batches-1.html", ["Documents", "SHA-256"], 1), ("hypotheses.html", ["better"], 0)):
            url = (site / name).resolve().as_uri()
            tab.call("Page.navigate", url=url)
            check(tab.until(f"location.href === {json.dumps(url)} && document.readyState === 'complete'"), f"{name} does not open")
            check(tab.run("typeof ostro_data") == "undefined", "the page's script ran")
            html = tab.run("document.documentElement.outerHTML")
            check(all(word in Texts(html).data for word in words), f"{name} without scripts lacks some of {words}")
            check(html.count("<svg") == figures, f"{name} without scripts has {html.count('<svg')} figures")
    finally:
        tab.close()


def check_browser(lab, site, pictures):
    outputs = lab.outputs("train") | lab.outputs("fork")
    run = outputs["base[rate=0.001]"]
    tab = Tab(site)
    for name in sorted(p.name for p in site.glob("*.html")):
        tab.open(name)
        check(not tab.run("window.bad") and tab.run("document.querySelectorAll('main img').length") == 0, f"{name}: markup became elements")
        check(tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), f"{name} is wider than its window")
    use_runs(tab)
    use_run(tab, lab, run)
    use_diff(tab, lab, outputs)
    use_batches(tab, lab, run)
    use_check(tab, site)
    tab.close()
    without_scripts(site)
    # The control: a page that complains and asks is found.
    bad = site / "bad.html"
    bad.write_text("<!doctype html><img src='http://127.0.0.1:9/x'><script>console.error('x')</script>")
    tab = Tab(site)
    tab.open("bad.html")
    check(tab.tab.complaints() and any(url.startswith("http:") for url in tab.tab.asked_for()), "the browser tells of no fault: it proves nothing")
    tab.tab.close()
    bad.unlink()
    if pictures:
        take_pictures(site, pictures)


def take_pictures(site, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for dark in (False, True):
        tab = Tab(site, dark=dark, height=1400)
        for name, wait in (("index.html", "true"), ("runs.html#group=rate", "true"), ("run-1.html#smooth=0.5", "document.querySelector('svg.live')"), ("diff.html#a=run-1&b=run-3", "document.querySelector('svg.live')"),
                           ("data.html", "true"), ("batches-1.html#document=1&find=jsonl", "document.querySelector('#document h3')"), ("hypotheses.html", "true")):
            tab.open(name)
            tab.until(wait)
            tab.tab.picture(folder / f"{name.split('.')[0]}{'-dark' if dark else ''}.png")
        tab.close()


def get(address, path=""):
    """Status and bytes of an answer."""
    try:
        with urllib.request.urlopen(address + path, timeout=PATIENCE) as answer:
            return answer.status, answer.read(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read(), dict(error.headers)


def check_served(lab, site):
    """`ostro lab serve` sends the files of the site, with the token also off loopback, and writes nothing into the lab."""
    before = files_of(lab.top / "small.lab")
    for listen in ("127.0.0.1:0", "0.0.0.0:0"):
        server = subprocess.Popen([lab.ostro, "lab", "serve", "plan.yaml", "--listen", listen], cwd=lab.top, stdout=subprocess.PIPE, text=True)
        try:
            address = server.stdout.readline().strip().replace("0.0.0.0", "127.0.0.1")
            check(address.startswith("http://127.0.0.1:") and address.endswith("/"), address)
            for name in ("index.html", "run-1.html", "style.css", "site.js", "data/run-1.js"):
                status, data, headers = get(address, name)
                check((status, data) == (200, (site / name).read_bytes()), f"{address}{name}: {status}")
                check("Refresh" not in headers, f"{name} of a finished lab is loaded again")
            check(get(address)[1] == (site / "index.html").read_bytes(), "the first page")
            check(get(address, "no.html")[0] == 404 and get(address, "%2e%2e/plan.yaml")[0] == 404, "a file that is none of the site's")
            if listen.startswith("0"):
                check(re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/", address), f"no token: {address}")
                check(get(re.match(r"http://[^/]+/", address)[0], "index.html")[0] == 401, "without the token")
        finally:
            server.terminate()
            server.wait()
    check(files_of(lab.top / "small.lab") == before, "serving changed the lab")


def check_extras(lab, site):
    """Operations are on every run's page; samples only where all licences are marked."""
    pages = {name: data for name, data in files_of(site).items() if re.fullmatch(r"run-\d+\.html", name)}
    check(pages and all(b" FLOPs, forward and backward" in data for data in pages.values()), "a run's page has no operations")
    check(not any(b"<h2>Samples" in data for data in pages.values()), "samples of texts that nobody gave away")
    plan = (lab.top / "plan.yaml").read_text()
    marked = plan.replace("show_texts: [CC0-1.0]", 'show_texts: [CC0-1.0, Apache-2.0, "</td><script>window.bad=1</script>"]')
    check(marked != plan, plan)
    lab.write(marked)
    all_shown = lab.site("shown")
    page = (all_shown / "run-1.html").read_text()
    check("<h2>Samples" in page and "the model goes on" in page, "a run whose texts may be shown has no samples")
    check_markup(all_shown)
    lab.write(plan)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--pictures", type=pathlib.Path)
    args = parser.parse_args()
    if args.browser and browser.find() is None:
        print("SKIPPED: no browser here, so nobody has used the pages of a lab: scripts/setup.sh --dev installs chromium")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="ostro-site-") as folder:
        lab = SiteLab(args.ostro, pathlib.Path(folder) / "lab")
        site = lab.site("site")
        if args.browser:
            check_browser(lab, site, args.pictures)
            print("used: every kind of page, and nothing was asked for outside of the folder")
            return 0
        check_markup(site)
        check_bytes(lab, site)
        check_texts(lab, site)
        check_served(lab, site)
        check_extras(lab, site)
    print("equal: the pages are the same from everywhere, and have no text that the plan does not mark")
    return 0


if __name__ == "__main__":
    sys.exit(main())
