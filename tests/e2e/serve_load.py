"""For the trials of `ostro serve` under load (serve_*_test.py): a tiny model with room for long prompts, a server with its
counters and what it costs, clients on bare sockets, and the log of a trial.

A trial's sampled form is cheap; OSTRO_TEST_SIZE=full runs all of it. `--log FILE` writes what it prints, with machine, date
and commit, to a file. Figures by the clock are reported; only counts, bits and CPU time are compared with limits.
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

from program import check
from serve_test import ROOT, Server, Test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "suite"))
import seed

CONTEXT = 512


def environment(**settings):
    return {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")} | settings


class Place(Test):
    """A folder with a tokenizer and the run "long", a model of random weights with 512 positions."""

    def __init__(self, ostro, folder, steps=2):
        super().__init__(ostro, folder)
        for link in ("LICENSE", "configs"):
            (folder / link).symlink_to(ROOT / link)
        lines = (ROOT / "LICENSE").read_text().splitlines(keepends=True)
        (folder / "corpus").mkdir()
        for i in range(0, len(lines), 6):
            (folder / f"corpus/x{i // 6:02}.txt").write_text("".join(lines[i:i + 6]))
        self.program("tokenizer", "train", "--input", "corpus/*.txt", "--vocab_size", "512", "--out", "tokenizer.json")
        self.train("long", steps)
        self.end = str(json.loads((folder / "tokenizer.json").read_text())["added_tokens"][0]["id"])

    def train(self, name, steps, *more):
        self.program("train", "--config", "configs/nano_test.yaml", "--trainer.id", name, "--trainer.num_train_steps", str(steps),
                     "--model.seq_len", str(CONTEXT), "--trainer.train_batch_size", "4", *more)

    def fields(self, rng, **more):
        """A request whose answer has as many tokens as it asks for."""
        count = rng.randint(1, 40)
        return {"prompt": [rng.randint(3, 500) for _ in range(count)], "max_tokens": rng.randint(4, 24), "seed": rng.randint(0, 2**53),
                "temperature": rng.choice((0, 0.7, 1.2)), "logit_bias": {self.end: -100}, "logprobs": 1, "return_token_ids": True} | more


class LoadServer(Server):
    """A server of `place`'s model. Use it with contextlib.closing."""

    def __init__(self, place, *words, model="runs/long", **settings):
        self.process = subprocess.Popen([place.ostro, "serve", model, "--listen", "127.0.0.1:0", *words], cwd=place.folder,
                                        env=environment(**settings), text=True, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        check(line.startswith("http://127.0.0.1:"), f"serve printed {line!r}")
        self.port = int(line.split("/")[2].split(":")[1])

    def close(self):
        self.process.kill()
        self.process.wait()

    def metrics(self):
        text = self.raw("GET", "/metrics")[1].decode()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if not line.startswith("#")}

    def answered(self, path="/v1/completions"):
        """How many requests of a path were counted, by status."""
        return {int(m[1]): int(v) for k, v in self.metrics().items() if (m := re.fullmatch(rf'ostro_requests_total{{path="{path}",status="(\d+)"}}', k))}

    def busy(self):
        """What runs, waits and holds pages."""
        now = self.metrics()
        return {name: int(now[f"ostro_{name}"]) for name in ("requests_running", "requests_waiting", 'cache_pages{state="held"}')}

    def until_quiet(self, turns=6000):
        for _ in range(turns):
            if not any(self.busy().values()):
                return
            time.sleep(0.005)
        check(False, f"nobody asks, and the server is busy: {self.busy()}")

    def cpu(self):
        """Seconds of CPU time so far."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self):
        """Bytes of resident memory."""
        return int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def send(self, fields, part=1.0, path="/v1/completions"):
        """A socket on which the request, or its first part, was sent."""
        body = json.dumps(fields)
        text = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        out = socket.create_connection(("127.0.0.1", self.port), timeout=300)
        out.sendall(text[:max(1, int(part * len(text)))])
        return out


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


class Log:
    """Prints, and keeps for the file what was printed."""

    def __init__(self, path, title):
        processor = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
        self.path, self.begin = path, time.process_time()
        self.lines = [f"{title}: {'full' if seed.full() else 'sampled'} form, seed {seed.seed()}, {datetime.datetime.now(datetime.UTC):%Y-%m-%d}, "
                      f"commit {(seed.commit() or 'unknown')[:12]}, {processor[1] if processor else 'unknown processor'}, "
                      f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.0f} at the beginning"]
        print(self.lines[0], flush=True)

    def say(self, text):
        self.lines.append(text)
        print(f"  {text}", flush=True)

    def write(self):
        if self.path:
            with open(self.path, "a", encoding="utf-8") as out:
                out.write("\n".join(self.lines) + "\n\n")


def run(title, description, parts, steps=2):
    """The main function of a trial: each part gets the place and the log."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--only", default="", help="one part, by its name")
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    log = Log(args.log, title)
    chosen = [part for part in parts if args.only in ("", part.__name__)]
    check(chosen, f"--only {args.only}: there are {', '.join(part.__name__ for part in parts)}")
    with tempfile.TemporaryDirectory() as name:
        place = Place(args.ostro, pathlib.Path(name), steps)
        for part in chosen:
            began = time.monotonic()
            part(place, log)
            log.say(f"{part.__name__}: good ({time.monotonic() - began:.0f} s)")
    log.write()


serving = contextlib.closing
