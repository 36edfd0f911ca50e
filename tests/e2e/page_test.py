#!/usr/bin/env python3
"""Tests the page of a run: RUN/report.html, `ostro inspect --html` and `--plot`, and `ostro watch`.

The page's curves have the values that the chain and metrics.jsonl have, to the last digit that is written; texts with
markup are text; the same run gives the same page, whichever command writes it; a run that cannot have a page is a run
all the same. A run that goes on has a page, too, and a server that gives it out to those who may see it. With --browser a browser opens the page from disk: the curves are seen, in light and in dark, with and
without the script; nothing is asked for; the console stays empty.

    page_test.py --ostro BINARY [--browser]
"""
import argparse
import html.parser
import json
import pathlib
import re
import signal
import sys
import urllib.error
import urllib.request

import browser

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fault"))
from harness import Workspace, check

SKIPPED = 77
STEPS = 60
# As a held-out text, so that it is in the samples.
HOSTILE = ("</pre></script><script>console.error(1)</script>"
           "<img src='http://127.0.0.1:9/seen' onerror='document.title=1'> &amp; \u2028 <!-- ]]> " * 4)


class Page(html.parser.HTMLParser):
    """Elements as (tag, attributes), and the text inside <pre>."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.pre, self.inside = [], [], 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "pre":
            self.inside += 1
            self.pre.append("")

    def handle_endtag(self, tag):
        self.inside -= tag == "pre"

    def handle_data(self, data):
        if self.inside:
            self.pre[-1] += data

    def figures(self):
        """name: (attributes of the figure, attributes of the path) of the first curve with this name."""
        found, figure = {}, None
        for tag, attributes in self.elements:
            if tag == "figure":
                figure = attributes
            elif tag == "path" and "data-points" in attributes:
                found.setdefault(attributes["data-name"], (figure, attributes))
        return found


def coordinate(value):
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def expected_path(figure, values):
    """The SVG path through (step, value), as docs/reference/formats/run_directory.md says."""
    (left, right), (low, high) = (map(float, figure[key].split()) for key in ("data-steps", "data-values"))
    points = (coordinate(1000 * ((step - left) / (right - left))) + " " +
              coordinate(1000 * (1 - (value - low) / (high - low))) for step, value in values)
    return "M" + "L".join(points)


def shown(text):
    """Characters that no page may hold stand in it as marks, one a byte."""
    return re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda c: "\ufffd" * len(c[0].encode()), text)


def recorded(run, name):
    """The numbers of one name by step, from where the page has them."""
    if name == "train/loss":
        lines = map(json.loads, (run / "chain.jsonl").read_text().splitlines())
        return [(line["step"], float.fromhex(line["loss"])) for line in lines if line["kind"] == "step"]
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    unknown = 0 if name == "throughput/tokens_per_second" else None  # in the first steps
    return [(line["step"], line[name]) for line in lines if name in line and line[name] != unknown]


def check_curves(run, page):
    figures = page.figures()
    for name in ("train/loss", "eval/loss", "eval/bits_per_byte", "train/learning_rate", "train/grad_norm",
                 "throughput/tokens_per_second"):
        check(name in figures, f"no curve of {name}")
        figure, path = figures[name]
        values = recorded(run, name)
        check(path["d"] == expected_path(figure, values), f"{name}: the path is not through the recorded values")
        points = [[step, step, float(f"{value:.6g}")] for step, value in values]
        check(json.loads(path["data-points"]) == points, f"{name}: data-points are not the recorded values")
        print(f"  {name}: {len(values)} points")


def check_content(space, run, text, page):
    links = [attributes["href"] for _, attributes in page.elements if "href" in attributes]
    check(links and all(re.fullmatch("#[a-z-]+", link) and f'<h2 id="{link[1:]}">' in text for link in links), f"links: {links}")
    for attribute in ("src", "onerror", "onload"):
        check(not any(attribute in attributes for _, attributes in page.elements), f"an element has {attribute}")
    check({tag for tag, _ in page.elements}.isdisjoint({"img", "link", "iframe", "object", "base"}), "a foreign element")
    check(sum(tag == "script" for tag, _ in page.elements) == 1, "more scripts than ours")
    check("url(" not in text and "@import" not in text, "the style sheet fetches")
    record = json.loads((run / "run.json").read_text())
    manifests = [json.loads(p.read_text()) for p in sorted(run.glob("checkpoints/step-*/manifest.json"))]
    head = space.good("hash", str(run)).strip()
    for word in (head, record["program_hash"], record["data_hash"], record["tokenizer_hash"], "finished",
                 record["sessions"][-1]["started"], *(m["name"] for m in manifests)):
        check(word in text, f"the page lacks {word}")
    samples = json.loads((run / "report.json").read_text())["samples"]
    check(len(samples) == 1 and samples[0]["file"] == "held_out.txt", f"samples: {samples}")
    check(HOSTILE.startswith(samples[0]["prompt"] + samples[0]["text"]), "the sample is not the held-out text")
    for part in ("model", "text"):
        check(shown(samples[0]["prompt"] + samples[0][part]) in page.pre, f"the sample's {part} is not on the page")
    check("num_train_steps: 60" in page.pre[2], f"the config is not on the page: {page.pre[2]}")


def check_again(space, run, text):
    """Whoever writes the page: the same; samples are made again with the same result, on other kernels, too."""
    space.good("inspect", str(run), "--html", "again.html")
    check((space.root / "again.html").read_text() == text, "inspect --html gives another page")
    facts = (run / "report.json").read_text()
    (run / "report.json").unlink()
    space.good("train", "--config", "page.yaml", env={"OSTRO_ISA": "generic", "OSTRO_THREADS": "2"})
    check((run / "report.json").read_text() == facts, "other kernels give another sample")
    before = (run / "report.json").stat().st_ino
    space.good("train", "--config", "page.yaml", env={"OSTRO_EXECUTOR": "interpreter"})
    check((run / "report.json").read_text() == facts, "the samples of a finished run are gone")
    check((run / "report.json").stat().st_ino != before, "the report was not written again")


def check_ends(space):
    """Stopped, killed, without a place to write to: the run says what it did, and the page what it is."""
    config = space.config("stopped", steps=100000, trainer__steps_per_eval=5)
    process = space.start("train", "--config", config)
    for line in process.stderr:
        if line.startswith("step 5:"):
            process.send_signal(signal.SIGTERM)
    check(process.wait() == 75, f"SIGTERM: exit status {process.returncode}")
    process.stdout.close()
    process.stderr.close()
    page = (space.root / "runs/stopped/report.html").read_text()
    check(">interrupted<" in page and ">Samples</h2>" not in page, "the page of a stopped run")
    space.config("killed", steps=10, trainer__steps_per_eval=5)
    status, _, _ = space.run("train", "--config", "killed.yaml", env={"OSTRO_FAILPOINT": "step:7"})
    check(status < 0, "the failpoint")
    report = space.root / "runs/killed/report.html"
    check(">running, after step 5<" in report.read_text(), "the page that was written after the evaluation")
    space.good("inspect", "runs/killed", "--html", "killed.html")
    check(">killed<" in (space.root / "killed.html").read_text(), "the page of a killed run")
    metrics, kept = space.root / "runs/killed/metrics.jsonl", space.root / "kept.jsonl"
    metrics.rename(kept)
    metrics.mkdir()  # which no program can read
    space.good("inspect", "runs/killed", "--html", "killed.html")
    page = (space.root / "killed.html").read_text()
    check("The metrics cannot be read" in page and "<svg" in page, "the page of a run with metrics that cannot be read")
    metrics.rmdir()
    kept.rename(metrics)
    report.unlink()
    report.mkdir()
    said = space.good("train", "--config", "killed.yaml")
    check("warning: the run has no new page" in said and "run hash: " in said, said)
    check(said.count("the run's page is not kept up to date") == 1, said)


def asked(url, **headers):
    """Status and body of the answer to a GET."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=300) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def check_watch(space):
    """The server of a run, on loopback and with a token; without one, a line for a log."""
    said = space.good("watch", "runs/page")
    check("runs/page: finished  step 60 of 60  loss " in said, said)
    space.bad("watch", "runs/none", says=["runs/none is no run directory"])
    space.bad("watch", "runs/page", "--listen", "127.0.0.1", says=["127.0.0.1: no port"])
    for listen in ("127.0.0.1:0", "0.0.0.0:0"):
        server = space.start("watch", "runs/page", "--listen", listen)
        url = server.stdout.readline().strip().replace("0.0.0.0", "127.0.0.1")
        place, _, token = url.partition("?")
        check(bool(token) == (listen == "0.0.0.0:0"), url)
        status, page = asked(url)
        check(status == 200 and "<title>page · Ostro</title>" in page and " data-live>" in page, f"{status} {page[:200]}")
        status, facts = asked(f"{place}facts.json?{token}")
        check(status == 200 and facts == space.good("status", "runs/page", "--json"), f"{status} {facts}")
        check(asked(f"{place}health?{token}") == (200, "ok\n"), "/health")
        check(asked(f"{place}report.json?{token}")[0] == 404, "a file of the run is given out")
        check(asked(place, Host="evil.example")[0] == (401 if token else 403), "a foreign name")
        if token:
            check(asked(place)[0] == 401 and asked(f"{place}?token=0")[0] == 401, "without the token")
            check(asked(place, Authorization=f"Bearer {token.removeprefix('token=')}")[0] == 200, "the token in a header")
        server.send_signal(signal.SIGTERM)
        check(server.wait(timeout=300) == 0, f"exit status {server.returncode}")
        server.stdout.close()
        server.stderr.close()


def check_compared(space):
    space.good("inspect", "runs/page", "runs/stopped", "--html", "two.html")
    text = (space.root / "two.html").read_text()
    curves = [attributes for tag, attributes in Page(text).elements if tag == "path" and attributes.get("data-name") == "train/loss"]
    check([c["data-run"] for c in curves] == ["0", "1"], f"curves: {len(curves)}")
    check("<th>trainer.num_train_steps</th><td>60</td><td>100000</td>" in text, "the difference is not shown")
    check("<th>optimizer." not in text, "an equal option is shown")
    space.bad("inspect", "runs/page", "runs/stopped", says=["several runs are shown by --html alone"])
    space.bad("inspect", "runs/page", "runs/none", "--html", "x.html", says=["runs/none is no run directory"])


def check_plot(space):
    said = space.good("inspect", "runs/page", "--plot", env={"COLUMNS": "60", "LC_ALL": "C.UTF-8"})
    check("loss of runs/page, 60 steps" in said and "⠒ train/loss" in said and "● eval/loss" in said, said)
    check(max(map(len, said.splitlines())) <= 60, said)
    said = space.good("inspect", "runs/page", "--plot", "--metric", "bits_per_byte,grad_norm", env={"LC_ALL": "C", "COLUMNS": ""})
    check(said.isascii() and "# eval/bits_per_byte" in said and "* train/grad_norm" in said, said)
    check(max(map(len, said.splitlines())) == 80, said)
    space.bad("inspect", "runs/page", "--plot", "--metric", "los", says=["--metric los", "train/loss"])
    space.bad("inspect", "runs/page/checkpoints/step-00000060", "--plot", says=["is no run directory"])
    space.bad("inspect", "runs/page", "--ascii", says=["add --plot"])
    space.bad("inspect", "runs/page", "--json", "--plot", says=["--json"])


def check_browser(space, run):
    blank = space.root / "blank.html"
    blank.write_text("<!doctype html><img src='http://127.0.0.1:9/x'><script>console.error('x')</script>")
    wrong = browser.View(blank)
    check(wrong.console and wrong.requests == ["http://127.0.0.1:9/x"], "the browser tells of no fault: it proves nothing")
    page, without = run / "report.html", space.root / "without.html"
    without.write_text(re.sub("<script>.*?</script>", "", page.read_text(), flags=re.S))
    light, dark = ("#2f6db5", "#d9661f"), ("#7ab0ee", "#f2a366")
    for name, file, scheme, colours in (("light", page, 1, light), ("dark", page, 0, dark),
                                        ("no script", without, 1, light)):
        # So high that the curves, which stand below the results, are in the picture.
        view = browser.View(file, f"--blink-settings=preferredColorScheme={scheme}", height=1400)
        check(not view.console, f"{name}: the console says {view.console}")
        check(not view.requests, f"{name}: the page asked for {view.requests}")
        check("<title>page · Ostro</title>" in view.dom, f"{name}: the title is another")
        check(Page(view.dom).figures() == Page(page.read_text()).figures(), f"{name}: other curves than in the file")
        tips = len(re.findall('class="tip"', view.dom))
        check(tips == (0 if name == "no script" else len(re.findall("<figure", view.dom))), f"{name}: {tips} tips")
        pixels = [view.count(colour) for colour in colours]
        print(f"  {name}: {pixels} pixels of the curves' colours")
        check(min(pixels) > 100, f"{name}: the curves are not to be seen: {pixels} pixels of {colours}")
    other = space.root / "other.html"
    shown = re.sub("<meta http-equiv.*?>", "", page.read_text(), count=1)  # its hash is that of the script as it was
    for asked_for in ("x: 'tokens'", "x: 'seconds'", "log: true", "smooth: 0.5"):
        other.write_text(shown.replace(f"{asked_for.split(':')[0]}: " + {"x": "'steps'", "log": "false", "smooth": "0"}[asked_for.split(":")[0]],
                                       asked_for, 1))
        view = browser.View(other)
        figures, drawn = Page(page.read_text()).figures(), Page(view.dom).figures()
        check(not view.console, f"{asked_for}: the console says {view.console}")
        same = [name for name in figures if figures[name][1]["d"] == drawn[name][1]["d"]]
        check("train/loss" not in same and not any("NaN" in path["d"] for _, path in drawn.values()), f"{asked_for}: as before: {same}")
        check(view.count(light[0]) > 100, f"{asked_for}: the curve is not to be seen")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--browser", action="store_true")
    args = parser.parse_args()
    if args.browser and browser.find() is None:
        print("SKIPPED: no browser here, so nobody has seen the page: scripts/setup.sh --dev installs chromium")
        return SKIPPED
    space = Workspace(args.ostro)
    try:
        (space.root / "held_out.txt").write_text(HOSTILE)
        space.config("page", steps=STEPS, every=20, data__validation_urls=["held_out.txt"],
                     data__validation_fraction=0, trainer__steps_per_eval=5, model__seq_len=96)
        space.good("train", "--config", "page.yaml")
        run = space.root / "runs/page"
        if args.browser:
            check_browser(space, run)
            return 0
        text = (run / "report.html").read_text()
        check(len(text.encode()) < 300_000, f"{len(text)} characters")
        page = Page(text)
        check_curves(run, page)
        check_content(space, run, text, page)
        check_again(space, run, text)
        check_ends(space)
        check_plot(space)
        check_watch(space)
        check_compared(space)
    finally:
        space.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
