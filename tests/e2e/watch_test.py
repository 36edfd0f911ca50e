#!/usr/bin/env python3
"""Tests that a run does not notice who watches it: `ostro watch RUN --listen` beside a run that is killed, resumed and amended. The
server opens no file of the run for writing (strace), the chain is that of an unwatched run, and broken, huge and slow requests
harm nobody else. With --browser the page follows a run in a browser, without being loaded again: begun, killed, resumed, amended, ended.

    watch_test.py --ostro BINARY [--log FILE] [--browser] [--pictures FOLDER]

In full there are 400 hostile connections, in a sample 60.
"""
import argparse
import json
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import browser
import cdp

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fault"))
from harness import Workspace, check

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "suite"))
import seed  # noqa: E402

STEPS, MORE = 12, 18
SEEN_STEPS, SEEN_MORE = 600, 640  # long enough to be stopped in the middle
SKIPPED = 77
PATIENCE = 300  # s
CALLS = "open,openat,creat,truncate,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,chmod,fchmodat"
READS = re.compile(r"O_RDONLY(\||,|\))")
PATHS = ("/", "/facts.json", "/health", "/chain.jsonl", "/report.json")


def can_trace():
    try:
        return subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def writes_of(trace, run):
    """The calls of a trace that could change something below `run`."""
    found = []
    for line in trace.read_text(errors="replace").splitlines():
        call = re.search(r"\b([a-z0-9]+)\(", line)
        if call and call[1] in CALLS.split(",") and run in line:
            opens = call[1] in ("open", "openat")
            if not opens or not READS.search(line) or "O_CREAT" in line or "O_TRUNC" in line:
                found.append(line)
    return found


class Server:
    """`ostro watch --listen`, under strace where that works."""

    def __init__(self, space, trace, *words):
        self.trace = trace
        traced = ["strace", "-f", "-qq", "-s", "400", "-e", f"trace={CALLS}", "-o", str(trace)] if trace else []
        self.process = subprocess.Popen([*traced, space.ostro, "watch", *words], cwd=space.root, env=space.env, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.url = self.process.stdout.readline().strip()
        check(self.url.startswith("http://"), f"the server says {self.url!r}")
        self.port = int(self.url.split("?")[0].rstrip("/").rsplit(":", 1)[1])

    def program(self):
        """The process of ostro itself."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0]) if self.trace else self.process.pid

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def facts(self):
        status, text = self.get("/facts.json")
        check(status == 200, f"{status} {text}")
        return json.loads(text)

    def resident(self):
        """MiB."""
        status = pathlib.Path(f"/proc/{self.program()}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def end(self):
        subprocess.run(["kill", "-TERM", str(self.program())], check=True)
        _, errors = self.process.communicate(timeout=PATIENCE)
        check(self.process.returncode == 0, f"exit status {self.process.returncode}: {errors}")


def story(space, name, seen=lambda what: None):
    """A run that is killed, resumed, amended and comes to its end. `seen` is called between its parts."""
    config = space.config(name, steps=STEPS, every=4, trainer__steps_per_eval=4, data__cache_dir="cache")
    status, _, _ = space.run("train", "--config", config, env={"OSTRO_FAILPOINT": "step:6"})
    check(status == -signal.SIGKILL, f"the failpoint: {status}")
    seen("killed")
    process = space.start("train", "--config", config)
    while process.poll() is None:  # asked again and again while it trains
        seen("resumed")
    out, err = process.communicate()
    check(process.returncode == 0, out + err)
    seen("finished")
    space.good("train", "--config", config, "--amend", "--trainer.num_train_steps", str(MORE))
    seen("amended")
    return space.chain(name)


def hostile(port, rng):
    """Begins a request that no browser makes. The connection, or nothing where it is over."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    kind = rng.choice(("nothing", "half", "noise", "header", "path", "body", "chunks", "method", "paths", "version", "drip"))
    data = {
        "nothing": b"", "half": b"GET / HTTP/1.1\r\nHost: 127", "noise": rng.randbytes(4000),
        "header": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n",
        "path": b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        "body": b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999999999999\r\n\r\n" + b"b" * 100_000,
        "chunks": b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        "method": b"DELETE / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        "paths": b"GET /%2e%2e/%2e%2e/../../chain.jsonl\0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        "version": b"GET / HTTP/9.9\r\n\r\n", "drip": b"G"}[kind]
    try:
        connection.sendall(data)
    except OSError:
        pass  # it was refused before its end
    if rng.random() < 0.5:
        connection.close()
        return kind, None
    return kind, connection


def check_hostile(server, chain, say):
    rng = random.Random(f"{seed.seed()} hostile")
    before, page = server.resident(), server.get("/health")
    kept, kinds = [], set()
    count = 400 if seed.full() else 60
    for n in range(count):
        kind, connection = hostile(server.port, rng)
        kinds.add(kind)
        if connection:
            kept.append(connection)
        if n % 10 == 9:
            check(server.get("/health") == page == (200, "ok\n"), f"after {n + 1} hostile connections the server says nothing of use")
            check(server.facts()["step"] == MORE, "the facts")
    for connection in kept:
        connection.close()
    check(server.get("/health")[0] == 200 and "<title>" in server.get("/")[1], "the page after all that")
    grown = server.resident() - before
    check(grown < 200, f"the server's memory has grown by {grown:.0f} MiB")
    check(not any("chain" in server.get(path)[1][:200] for path in ("/chain.jsonl", "/../chain.jsonl", "/%2e%2e/chain.jsonl")), "a file of the run")
    say(f"seed {seed.seed()}: {count} hostile connections of {len(kinds)} kinds, {len(kept)} of them kept open: all others answered; "
        f"{len(chain.splitlines())} lines of chain as before")


class LivePage:
    """The page of a server in a browser; it is opened once."""

    def __init__(self, server, pictures):
        self.tab, self.server, self.pictures = cdp.Browser(width=1000, height=1400), server, pictures
        self.tab.call("Page.navigate", url=server.url)
        check(self.tab.until("document.readyState === 'complete' && location.protocol === 'http:'"), "the page does not open")
        self.tab.run("window.opened = true")

    def shows(self, what, state, step, resumes):
        """Until the page says state and step, has a curve that ends there and a mark for each resumption; it was not loaded again."""
        script = f"""(() => {{
          const text = selector => (document.querySelector(selector) || {{textContent: ''}}).textContent, tiles = text('.tiles').replace(/,/g, '');
          const line = document.querySelector('figure [data-points][data-name="train/loss"]'), points = line ? JSON.parse(line.dataset.points) : [[0, 0]];
          return window.opened && text('.state').startsWith('{state}') && tiles.startsWith('steps{step}') && points[points.length - 1][1] === {step} &&
              document.querySelectorAll('figure')[0].querySelectorAll('[data-after]').length === {resumes};
        }})()"""
        if not self.tab.until(script, turns=1500):
            raise AssertionError(f"{what}: the page does not come to {state}, step {step}: {self.tab.run('document.body.innerText')[:600]}")
        if self.pictures:
            self.pictures.mkdir(parents=True, exist_ok=True)
            self.tab.picture(self.pictures / f"run-{what}.png")

    def close(self):
        complaints, asked = self.tab.complaints(), self.tab.asked_for()
        self.tab.close()
        check(not complaints, f"the console says {json.dumps(complaints)[:1500]}")
        here = f"http://127.0.0.1:{self.server.port}/"
        strange = [url for url in asked if not url.startswith((here, "about:blank"))]
        check(not strange, f"the page asks for {strange} of {len(asked)}")
        check(sum(url == here for url in asked) > 3, f"the page asked for the next one too rarely: {asked}")


def in_browser(space, pictures):
    config = space.config("seen", steps=SEEN_STEPS, every=50, trainer__steps_per_eval=200)
    process = space.start("train", "--config", config)
    while space.chain_lines("seen") < 60:
        check(process.poll() is None, "the run ended before it was seen")
        time.sleep(0.001)
    process.send_signal(signal.SIGSTOP)
    step = sum(b'"kind":"step"' in line for line in space.chain("seen").splitlines(True) if line.endswith(b"\n"))
    check(step < SEEN_STEPS, "the run came to its end before it was stopped")
    server = Server(space, None, "runs/seen", "--listen", "127.0.0.1:0")
    page = LivePage(server, pictures)
    page.shows("begun", f"running, after step {step}", step, 0)
    process.kill()  # -9
    process.communicate()
    page.shows("killed", "killed", step, 0)
    space.good("train", "--config", config)
    page.shows("ended", "finished", SEEN_STEPS, 1)
    # What a reader chose stays while the page follows.
    page.tab.run("(() => { const log = document.querySelector('.controls input[type=checkbox]'); log.checked = true; log.onchange(); })()")
    space.good("train", "--config", config, "--amend", "--trainer.num_train_steps", str(SEEN_MORE))
    page.shows("amended", "finished", SEEN_MORE, 2)
    check(page.tab.run("document.querySelector('.controls input[type=checkbox]').checked"), "the log scale that was chosen is gone")
    check(page.tab.run("document.querySelectorAll('.controls').length") == 1, "controls twice")
    page.close()
    server.end()
    # The control: the same page with a script that complains, and that asks elsewhere, is found.
    control = cdp.Browser()
    control.call("Page.navigate", url="data:text/html,<img src='http://127.0.0.1:9/x'><script>console.error('x')</script>")
    check(control.until("document.readyState === 'complete'") and control.complaints(), "the browser tells of no fault: it proves nothing")
    control.close()
    print(f"a browser followed a run from step {step}, killed, resumed, ended at {SEEN_STEPS} and amended to {SEEN_MORE}, without loading its page again")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--log", type=pathlib.Path)
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--pictures", type=pathlib.Path)
    args = parser.parse_args()
    if args.browser:
        if browser.find() is None:
            print("SKIPPED: no browser here, so nobody has followed a run on its page: scripts/setup.sh --dev installs chromium")
            sys.exit(SKIPPED)
        space = Workspace(args.ostro)
        try:
            in_browser(space, args.pictures)
        finally:
            space.close()
        return

    def say(line):
        print(line, flush=True)
        if args.log:
            with args.log.open("a") as file:
                file.write(line + "\n")

    traces = can_trace()
    if not traces:
        print("NOT RUN: whether a file of the run is opened for writing; strace is missing or cannot run here")
    space = Workspace(args.ostro)
    try:
        alone = story(space, "alone")
        shutil.move(space.root / "runs/alone", space.root / "alone")
        servers, states = [], []

        def seen(what):
            if not servers:
                servers.append(Server(space, space.root / "trace" if traces else None, "runs/watched", "--listen", "127.0.0.1:0"))
            facts = servers[0].facts()
            states.append((what, facts["state"], facts["step"]))
            check("<title>watched" in servers[0].get("/")[1], f"{what}: the page")

        watched = story(space, "watched", seen)
        server = servers[0]
        check([state for what, state, _ in states if what != "resumed"] == ["gone", "finished", "finished"], f"the facts were {states}")
        check([step for what, _, step in states if what in ("finished", "amended")] == [STEPS, MORE], f"the facts were {states}")
        same = alone == watched
        check(same, "the chain of the watched run is another one")
        check_hostile(server, watched, say)
        check(space.chain("watched") == alone, "the chain was changed")
        server.end()
        if traces:
            check("runs/watched" in server.trace.read_text(), "control: the trace has nothing of the run")
            writes = writes_of(server.trace, "runs/watched")
            check(not writes, "the server changes files of the run:\n" + "\n".join(writes[:10]))
            control = space.root / "control"
            subprocess.run(["strace", "-f", "-qq", "-s", "400", "-e", f"trace={CALLS}", "-o", str(control), space.ostro, "inspect", "runs/watched", "--html", "runs/watched/report.html"],
                           cwd=space.root, env=space.env, check=True, capture_output=True)
            check(writes_of(control, "runs/watched"), "control: a program that writes a page was not noticed")
            say(f"strace: in {len(states)} looks at the run the server opened no file of the run for writing, and made, moved and removed none")
        # Off loopback nothing is said without the token.
        server = Server(space, None, "runs/watched", "--listen", "0.0.0.0:0")
        token = server.url.partition("?")[2]
        check(token, f"off loopback there is no token: {server.url}")
        for path in PATHS:
            status, text = server.get(path)
            check(status == 401 and "watched" not in text and str(MORE) not in text, f"{path} without a token: {status} {text}")
        check(server.get(f"/facts.json?{token}")[0] == 200, "with the token")
        server.end()
        say("the chain of a run that was killed, resumed and amended is the same watched and unwatched")
    finally:
        space.close()


if __name__ == "__main__":
    main()
