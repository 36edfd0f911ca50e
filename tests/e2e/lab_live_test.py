#!/usr/bin/env python3
"""Tests what a person sees of a lab while it goes on: `ostro watch PLAN` in a log and as a page, which follows the lab through a kill to its end
without being loaded again; the pages of scaling plans and boards, opened and used; `ostro lab serve`, which reads the batch of a step that its
pages do not have. With --browser the pages are in a browser, else they are asked for by HTTP.

    lab_live_test.py --ostro PROGRAM [--browser] [--pictures FOLDER]
"""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import browser
from lab_scaling_test import CONFIG, PLAN
from lab_site_test import Tab, get
from lab_test import Lab
from program import check

SKIPPED = 77
PATIENCE = 300  # s
WIDE = """
  wide: {train: {data: $rows, config: tiny.yaml, set: {model.seq_len: 8, trainer.train_batch_size: 128, trainer.num_train_steps: 17, trainer.checkpointer.keep: [{every: 17}]}}}
scaling:
"""  # 2,176 sequences: a page has every second step


class Served:
    """`ostro lab serve` or `ostro watch` of the plan, in the background."""

    def __init__(self, lab, *words):
        env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")} | {"OSTRO_THREADS": "1"}
        self.process = subprocess.Popen([lab.ostro, *words, "--listen", "127.0.0.1:0"], cwd=lab.top, env=env, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        check(self.url.startswith("http://127.0.0.1:"), f"{words}: {self.url!r}")

    def get(self, name, status=200):
        found, data, _ = get(self.url, name)
        check(found == status, f"{name}: {found}, not {status}: {data[:300]}")
        return data.decode()

    def data(self, name):
        """What a file of data hands over."""
        text = self.get(f"data/{name}.js")
        begin = f'ostro_data("{name}", '
        check(text.startswith(begin) and text.endswith(");\n") and text.isascii(), f"{name} is no data: {text[:100]}")
        return json.loads(text[len(begin):-3])

    def end(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        check(self.process.returncode == 0, f"exit status {self.process.returncode}")


class HttpTab(Tab):
    """A page from a server."""

    def __init__(self, url, **size):
        self.url = url
        super().__init__(pathlib.Path("/"), **size)

    def open(self, name):
        self.tab.call("Page.navigate", url="about:blank")
        self.tab.call("Page.navigate", url=self.url + name)
        check(self.until("document.readyState === 'complete' && location.protocol === 'http:'"), f"{name} does not open")

    def close(self):
        complaints, asked = self.tab.complaints(), self.tab.asked_for()
        self.tab.close()
        check(not complaints, f"the console says {json.dumps(complaints)[:1500]}")
        strange = [url for url in asked if not url.startswith((self.url, "about:blank"))]
        check(not strange, f"the page asks for {strange}")


class Page:
    """The first page of a server: in a browser, which opens it once, or asked for again and again."""

    def __init__(self, server, in_browser, pictures):
        self.server, self.pictures, self.tab = server, pictures, None
        if in_browser:
            self.tab = HttpTab(server.url, height=1400)
            self.tab.open("")
            self.tab.run("window.opened = true")

    def shows(self, what, *words, lacks="\0"):
        text = ""
        for _ in range(15000 if self.tab else 1500):  # 300 s
            if self.tab:
                check(self.tab.run("window.opened"), f"{what}: the page was loaded again")
                text = self.tab.run("document.querySelector('main').textContent")
            else:
                text = re.sub(r"<[^>]*>", "", self.server.get(""))
            if all(word in text for word in words) and lacks not in text:
                break
            time.sleep(0.02 if self.tab else 0.2)
        else:
            raise AssertionError(f"{what}: the page lacks some of {words}: {text[:1500]}")
        if self.tab and self.pictures:
            self.pictures.mkdir(parents=True, exist_ok=True)
            self.tab.tab.picture(self.pictures / f"lab-{what}.png")

    def close(self):
        if self.tab:
            self.tab.close()


def stopped_in_training(lab):
    """A driver that was stopped (SIGSTOP) while it trains, and what `ostro watch` says of it."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")} | {"OSTRO_THREADS": "1"}
    driver = subprocess.Popen([lab.ostro, "lab", "run", "plan.yaml"], cwd=lab.top, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while driver.poll() is None:
        chains = list(lab.top.glob("small.lab/out/*/chain.jsonl"))
        if any(chain.read_bytes().count(b"\n") > 1 for chain in chains):
            driver.send_signal(signal.SIGSTOP)
            watch = subprocess.Popen([lab.ostro, "watch", "plan.yaml"], cwd=lab.top, env=env, stdout=subprocess.PIPE, text=True)
            line = watch.stdout.readline()
            watch.terminate()
            watch.communicate(timeout=PATIENCE)
            if re.search(r": step \d+ of \d+", line):
                return driver, line
            driver.send_signal(signal.SIGCONT)
        time.sleep(0.001)
    raise AssertionError(f"the lab was done before a training was seen: {driver.communicate()[1][-500:]}")


def follow(lab, in_browser, pictures):
    server = Served(lab, "watch", "plan.yaml")
    page = Page(server, in_browser, pictures)
    page.shows("new", "Nobody works on the lab", "never done")
    driver, line = stopped_in_training(lab)
    check(f"process {driver.pid} of " in line and re.search(r"small: \d+ of \d+ steps done; .* works on it; \S+: step \d+ of \d+", line), line)
    page.shows("training", f"process {driver.pid} of", "works on the lab", "running", "time left" if "ETA" in line else "step")
    driver.kill()  # -9
    driver.communicate()
    page.shows("killed", "Nobody works on the lab", "was begun")
    lab.run(status=1)  # up to the forecast, which is to be registered
    page.shows("forecast", "not registered", lacks="was begun")
    check(lab.start("register", "plan.yaml").returncode == 0, "register")
    lab.run()
    page.shows("done", "lab hash", lacks="Nobody works on the lab")
    page.close()
    server.end()
    done = subprocess.run([lab.ostro, "watch", "plan.yaml"], cwd=lab.top, text=True, capture_output=True, check=False)
    count = len(re.findall(r"<rect ", (lab.site() / "index.html").read_text()))
    check(done.returncode == 0 and done.stdout == f"small: {count} of {count} steps done; nobody works on it here\n", done.stdout + done.stderr)
    folder = subprocess.run([lab.ostro, "watch", "small.lab"], cwd=lab.top, text=True, capture_output=True, check=False)
    check(folder.returncode != 0 and "name its plan" in folder.stderr, folder.stderr)


class LiveLab(Lab):
    """A scaling plan, a training with more sequences than a page lists, and a board with that training."""

    def __init__(self, ostro, top):
        super().__init__(ostro, top)
        (top / "texts/GPL-2.txt").unlink()
        (top / "tiny.yaml").write_text(CONFIG)
        self.write(PLAN.replace("scaling:\n", WIDE.lstrip("\n"), 1))

    def finish(self):
        self.run(status=1)
        check(self.start("register", "plan.yaml").returncode == 0, "register")
        self.run()

    def add_board(self):
        """The training as an entry, which is refused: it has more operations than the track allows."""
        run = self.outputs("train")["wide"].relative_to(self.top)
        done = subprocess.run([self.ostro, "publish", str(run), "--out", "entry", "--score"], cwd=self.top, text=True, capture_output=True, check=False)
        check(done.returncode == 0, f"publish: {done.stderr}")
        done = self.start("board", "track", str(run), "--name", "tiny", "--evaluation", "held/a.txt", "--flops", "1e6")
        check(done.returncode == 0, done.stderr)
        (self.top / "track.yaml").write_text(done.stdout)
        for words in (("new", "board", "--track", "track.yaml"), ("enter", "entry", "--board", "board")):
            done = self.start("board", *words)
            check(done.returncode == 0, f"{words}: {done.stderr}")
        done = self.start("board", "check", "entry", "--board", "board", "--beacon", "1 2 3", "--cuts", "30", "--sums", "2",
                          "--cache", str(self.outputs("tokens")["rows"].relative_to(self.top)))
        check(done.returncode == 1 and "refused: flops" in done.stdout, done.stdout + done.stderr)
        return "board"

    def site(self, *words):
        done = self.start("site", "plan.yaml", "--out", "site", *words)
        check(done.returncode == 0, f"site: {done.stderr[-2000:]}")
        return self.top / "site"


def use_scaling(tab, lab):
    tab.open("scaling.html")
    record = lab.start("record", "plan.yaml", "--out", "r.sqlite")
    check(record.returncode == 0, record.stderr)
    verdict = tab.text("td b")
    check(verdict in ("inside", "outside") and tab.texts("h2") == ["Fits", "Forecasts"], f"{verdict} {tab.texts('h2')}")
    check(tab.run("document.querySelectorAll('svg circle').length") == 6 and tab.run("document.querySelectorAll('svg path[stroke-width=\"1.6\"]').length") == 2, "runs and fits")
    check(tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), "scaling.html is wider than its window")
    # What is wider than its place is reached by keys.
    tab.run("document.querySelectorAll('.scroll')[1].focus()")
    wide = tab.run("document.querySelectorAll('.scroll')[1].scrollWidth > document.querySelectorAll('.scroll')[1].clientWidth")
    if wide:
        tab.press("ArrowRight")
        check(tab.until("document.querySelectorAll('.scroll')[1].scrollLeft > 0"), "the table of forecasts cannot be scrolled by keys")
    tab.run("[...document.querySelectorAll('nav a')].find(a => a.textContent === 'Lab').click()")
    check(tab.until("location.pathname.endsWith('/index.html') && document.readyState === 'complete'"), "the link to the lab")
    tab.run("[...document.querySelectorAll('nav a')].find(a => a.textContent === 'Scaling').click()")
    check(tab.until("document.querySelector('nav a[aria-current]') && document.querySelector('nav a[aria-current]').textContent === 'Scaling'"), "and back")


def use_boards(tab):
    tab.open("boards.html")
    rows = tab.run("[...document.querySelectorAll('main table')[1].tBodies[0].rows].map(r => [...r.cells].map(c => c.textContent))")
    check(len(rows) == 1 and "refused" in rows[0][5] and "flops" in rows[0][5] and "wide" in rows[0][6], rows)
    check(tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), "boards.html is wider than its window")
    tab.run("document.querySelector('main a[href^=run-]').click()")
    check(tab.until("document.readyState === 'complete' && document.querySelector('h1') && document.querySelector('h1').textContent === 'wide'"), "the link to the run")
    tab.key("#check")
    check(tab.until("document.querySelector('#checked').className === 'good'"), tab.text("#checked"))


def take_pictures(site, folder):
    """The pages of scaling plans and of boards, whole and in both colours."""
    folder.mkdir(parents=True, exist_ok=True)
    for dark in (False, True):
        tab = Tab(site, dark=dark, height=1600)
        for name in ("scaling", "boards"):
            tab.open(f"{name}.html")
            tab.tab.picture(folder / f"{name}{'-dark' if dark else ''}.png")
        tab.close()


def uses_of(lab, document):
    """Steps and rows of a document, by `ostro data find`."""
    run = lab.outputs("train")["wide"].relative_to(lab.top)
    done = subprocess.run([lab.ostro, "data", "find", str(run), "--document", f"{document['file']}:{document['number']}", "--json"], cwd=lab.top, text=True,
                          capture_output=True, check=False)
    check(done.returncode == 0, done.stderr)
    return {(use["step"] + 1, use["row"]) for row in json.loads(done.stdout)["rows"] for use in row["uses"]}


def any_batch(lab, site, in_browser):
    """A step that the pages do not have is read by `ostro lab serve`; the files of `ostro lab site` say who has it."""
    static = next(page for page in sorted(site.glob("batches-*.html")) if "every 2th step" in page.read_text())
    check("ostro lab serve" in static.read_text() and '"demand"' not in (site / f"data/{static.stem}.js").read_text(), "the page from a folder")
    server = Served(lab, "lab", "serve", "plan.yaml")
    server.get("")
    name = static.stem
    data = server.data(name)
    check(data["demand"] and data["every"] == 2 and [s[0] for s in data["steps"]] == list(range(1, 18, 2)), [s[0] for s in data["steps"]])
    asked = f"{name}-{data['demand']}"
    for step in (1, 2, 16):
        piece = server.data(f"{asked}-step-{step}")
        (number, sequences), = piece["steps"]
        check(number == step and len(sequences) == 128, f"step {number}: {len(sequences)} sequences")
        document = piece["documents"][sequences[5][2][0][0]]
        check((step, 5) in uses_of(lab, document), f"step {step}: data find does not have {document['file']} {document['number']} in row 5")
    check([s[:2] for s in data["steps"][0][1]] == [s[:2] for s in server.data(f"{asked}-step-1")["steps"][0][1]], "step 1 is another one than on the page")
    # The key is of what the page has: with that of another page, as after the lab has gone on, nothing is sent.
    other = f"{name}-{data['demand'][::-1]}"
    for wrong in (f"{asked}-step-0", f"{asked}-step-18", f"{asked}-step-", f"{asked}-step-2x", f"{other}-step-2", f"{name}-step-2", "batches-99-step-2", "run-1-step-2"):
        server.get(f"data/{wrong}.js", 404)
    if in_browser:
        tab = HttpTab(server.url)
        tab.open(f"{name}.html")
        tab.enter("#atstep", "1")
        check(tab.until("document.querySelector('#sequences h3') && document.querySelector('#sequences h3').textContent === 'Step 1'"), "the first step")
        tab.key("#later")
        check(tab.until("document.querySelector('#sequences h3').textContent === 'Step 2'"), "the step that the page does not have: " + tab.text("#atsaid"))
        check(tab.run("document.querySelectorAll('#sequences tbody tr').length") == 128 and tab.text("#atsaid") == "", "its sequences")
        tab.run("document.querySelector('#sequences tbody button').click()")
        check(tab.until("document.querySelector('#document h3') && document.querySelector('#document li')"), "a document of that step")
        state, shown = tab.run("location.hash"), tab.text("#document h3")
        tab.reload()
        check(tab.until("document.querySelector('#sequences h3') && document.querySelector('#sequences h3').textContent === 'Step 2'") and tab.run("location.hash") == state, "after a reload")
        check(tab.until("document.querySelector('#document h3')") and tab.text("#document h3") == shown, f"after a reload another document than {shown}")
        tab.close()
    server.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--pictures", type=pathlib.Path)
    args = parser.parse_args()
    if args.browser and browser.find() is None:
        print("SKIPPED: no browser here, so nobody has followed a lab on its page: scripts/setup.sh --dev installs chromium")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="ostro-live-") as folder:
        lab = LiveLab(args.ostro, pathlib.Path(folder) / "lab")
        follow(lab, args.browser, args.pictures)
        site = lab.site("--board", lab.add_board())
        if args.browser:
            tab = Tab(site)
            use_scaling(tab, lab)
            use_boards(tab)
            tab.close()
            if args.pictures:
                take_pictures(site, args.pictures)
        any_batch(lab, site, args.browser)
    print("seen: a lab from nothing to its end on one page, its scaling plan and board, and a batch that its pages do not have")
    return 0


if __name__ == "__main__":
    sys.exit(main())
