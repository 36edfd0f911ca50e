#!/usr/bin/env python3
"""Runs whose directory is in an object store: one hash under faults, kills, expired keys and two writers.

    run_store_test.py --ostro BINARY [--kills N] [--seed 1]

Three kills; OSTRO_TEST_SIZE=full makes 30, kills ten workers and coordinators of runs by hand whose processes share nothing but the store
(run_store_workers.py), lets uploads take seconds, and has a run on a server that is not ours (moto_store.py).
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "fault"))
from harness import Workspace, check, in_order, wait_for
from moto_store import on_moto
from run_store_workers import killed_workers
from store_server import BUCKET, Store

STEPS, EVERY = 24, 8
# Of a lock, and of a machine that this one cannot look at.
ELSEWHERE = "process 1 on elsewhere since 2026-01-01T00:00:00Z (epoch 1)\nostro lock 1, lease {} s, term 7, renewal 0, process boot/pid/1/1\n"


# In the place of ssh: its options, `--`, the host and the command, which gets no variable of this process.
SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
exec env -i PATH="$PATH" SSH_CONNECTION="127.0.0.1 40000 $2 22" sh -c "$3"
"""


class Test:
    def __init__(self, ostro, kills, seed):
        self.w, self.store, self.kills, self.rng = Workspace(ostro), Store(), kills, random.Random(seed)
        self.states = {}  # what checkpoints have, where no process has disturbed another
        self.env = self.store.environment() | {"AWS_MAX_ATTEMPTS": "6", "HOME": str(self.w.root)}
        self.w.train(self.config("local", log_dir="runs"))
        self.chain = self.w.chain("local")

    def close(self):
        self.store.close()
        self.w.close()

    def config(self, name, log_dir=f"s3://{BUCKET}/all", **changes):
        return self.w.config(name, STEPS, EVERY, trainer__log_dir=log_dir, data__cache_dir="cache",
                             **({"numerics__cells__embed": 1} | changes))

    def train(self, name, **env):
        return self.w.run("train", "--config", self.config(name), env=self.env | env)

    def begin(self, fault=None, gates=None, holds=None):
        self.store.begin(fault)
        self.store.gates, self.store.holds = gates, holds

    def whole(self, name, chain=None, states=None):
        """The run has the chain of the local one, and nothing beside it is torn."""
        files, states_there = self.store.files(f"all/{name}/"), self.states if states is None else states
        check(files.get("chain.jsonl") == (self.chain if chain is None else chain), f"{name}: another chain than that on a disk")
        check(not self.store.uploads, f"{name}: uploads were left: {self.store.uploads.keys()}")
        states = {path.split("/")[1] for path in files if path.startswith("checkpoints/")}
        torn = [state for state in states if f"checkpoints/{state}/manifest.json" not in files]
        check(not torn, f"{name}: parts of checkpoints were left: {torn}")
        saved = self.saved(files)
        differ = [path for path in saved.keys() | states_there.keys() if saved.get(path) != states_there.get(path)]
        check(not states_there or not differ, f"{name}: parts of checkpoints are missing or others: {differ}")
        check(files["lock"].startswith(b"free; last held by process "), f"{name}: the lock is held: {files['lock']}")
        return files

    def saved(self, files):
        """The arrays of checkpoints: a manifest also says when, and why, a state was saved."""
        return {path: content for path, content in files.items()
                if path.startswith("checkpoints/") and not path.endswith("manifest.json")}

    def good(self, name, **env):
        status, out, err = self.train(name, **env)
        check(status == 0, f"{name}: status {status}\n{out}{err}")
        self.whole(name)
        return out + err

    def skeleton(self):
        self.begin()
        self.good("plain")
        files = self.whole("plain")
        self.states = self.saved(files)
        check(len(self.states) > 30, f"{len(self.states)} parts of checkpoints")
        local = self.w.root / "runs" / "local"
        for path in local.rglob("*"):
            name = str(path.relative_to(local))
            if not path.is_file() or re.search("tfevents|hang-", name):
                continue
            check(name in files, f"{name} is not in the store")
            if re.search(r"/c[.\d]*$|zarr.json$|leaves.jsonl|program.ir|tokenizer", name):
                check(files[name] == path.read_bytes(), f"{name} has other bytes than on a disk")
        self.requests = len(self.store.requests)
        last = json.loads(files["metrics.jsonl"].splitlines()[-1])
        check(last["step"] == STEPS, f"the metrics end at step {last['step']}")
        kinds = {}
        for what in self.store.requests:
            kinds[what.split()[0]] = kinds.get(what.split()[0], 0) + 1
        print(f"    {len(files)} objects, requests: {kinds}")

    def reads(self):
        """Every command that reads a run says of it what it says of the one on a disk."""
        self.begin()
        run = f"s3://{BUCKET}/all/plain"

        def same(*words):
            texts = [self.w.good(*[word.format(place) for word in words], env=self.env) for place in (run, "runs/local")]
            texts = [text.replace(run, "RUN").replace("runs/local", "RUN") for text in texts]
            check(texts[0] == texts[1], f"{words}: {texts[0]}\non a disk: {texts[1]}")

        out = self.w.verdict("equal", run, env=self.env)
        check("27 chain entries" in out, out)
        same("sample", "--checkpoint", "{}", "--prompt", "eta", "--max_new_tokens", "8", "--json")
        evaluation = ("eval", "--checkpoint", "{}", "--config", "local.yaml", "--json")
        same(*evaluation)
        status = self.w.good("status", run, env=self.env)
        check("finished" in status, status)
        for place, out in ((run, "out-s3"), ("runs/local", "out-local")):
            self.w.good("export", "--checkpoint", place, "--to", "hf", "--out", out, env=self.env)
        weights = [(self.w.root / out / "model.safetensors").read_bytes() for out in ("out-s3", "out-local")]
        check(weights[0] == weights[1], "the exported weights differ")
        self.w.good("log", run, env=self.env)

    def faults(self):
        """Each request, when it comes for the first time, meets a fault."""
        kinds = ("503", "reset", "lost", "slow")

        def fault(what, count):
            reads = what.startswith(("GET", "HEAD"))
            kind = (("503", "reset") if reads else kinds)[len(self.store.seen) % (2 if reads else 4)]
            return kind if count == 0 else None

        self.begin(fault)
        self.good("faults")
        lost = [what for what, count in self.store.seen.items() if count > 1 and not what.startswith(("GET", "HEAD"))]
        check(any("chain.jsonl" in what for what in lost), f"no write of the chain met a fault: {lost}")
        print(f"    {len(self.store.requests)} requests, {len(lost)} kinds of writes met a fault")

    def slow(self):
        """Every 20th write takes seconds, longer than half of the lease of the run's lock."""
        writes = []

        def fault(what, _):
            if what.startswith(("GET", "HEAD")):
                return None
            writes.append(what)
            return "slow" if len(writes) % 20 == 0 else None

        self.store.slow, lease = 3, 5
        self.begin(fault)
        self.good("slow", OSTRO_S3_LEASE_SECONDS=str(lease))
        self.store.slow = 0.1
        print(f"    {len(writes) // 20} of {len(writes)} writes took 3 s, with a lease of {lease} s")

    def killed(self):
        """Kills at drawn requests, before or after they are carried out; the run goes on each time."""
        killed = runs = 0
        while killed < self.kills:
            name, runs = f"killed-{runs}", runs + 1
            check(runs <= 3 * self.kills, f"{runs} runs, and {killed} kills: too few requests")
            for _ in range(10):
                if killed == self.kills:
                    break
                moment, before, process = self.rng.randrange(5, self.requests), self.rng.random() < 0.5, []
                started = threading.Event()

                def kill(*_):
                    if len(self.store.requests) == moment and started.wait(300):
                        process[0].send_signal(signal.SIGKILL)
                        return "reset" if before else "lost"

                self.begin(kill)
                process.append(self.w.start("train", "--config", self.config(name), env=self.env))
                started.set()
                out, err = process[0].communicate(timeout=300)
                if process[0].returncode == 0:
                    break
                check(process[0].returncode == -signal.SIGKILL, f"{name}: status {process[0].returncode}\n{out}{err}")
                killed += 1
            self.begin()
            self.store.uploads.clear()  # of a process that was killed; the bucket's rules remove them after a day
            self.good(name)
        self.w.verdict("equal", f"s3://{BUCKET}/all/killed-0", env=self.env)

    def scratch(self):
        """A run that is killed goes on from what it kept on its machine. What is damaged or gone there comes from the store."""
        name, folder = "scratch", self.w.root / "scratch"
        config = self.config(name, trainer__scratch_dir="scratch")

        def session(kills=True, config=config):
            """The chunks of step 8 that it fetched before it wrote those of step 16, and the bytes that it says it read: from scratch, from
            the store."""
            process, started = [], threading.Event()

            def kill(what, _):
                if kills and what.startswith("PUT") and what.endswith("/step-00000016/manifest.json") and started.wait(300):
                    process[0].send_signal(signal.SIGKILL)
                    return "reset"

            self.begin(kill)
            process.append(self.w.start("train", "--config", config, env=self.env))
            started.set()
            out, err = process[0].communicate(timeout=300)
            check(process[0].returncode == (-signal.SIGKILL if kills else 0), f"status {process[0].returncode}\n{out}{err}")
            asked = self.store.requests
            asked = asked[:next(i for i, what in enumerate(asked) if what.startswith("PUT") and "/step-00000016/" in what)]
            fetched = {match[1] for match in (re.match(r"(?:GET|HEAD) .*/step-00000008/(.*/(?:c[.\d]*|zarr.json))(?: |$)", what)
                                              for what in asked) if match}
            told = re.search(r"(\d+) bytes of its arrays were read from \S+, (\d+) bytes from the store", err)
            return fetched, told and (int(told[1]), int(told[2]))

        check(session() == (set(), None), "a new run read a checkpoint")
        fetched, told = session()
        check(not fetched and told and told[0] > 0 and told[1] == 0, f"{told}; fetched {fetched}")
        size = told[0]
        chunks = [path for path in folder.glob("*/*/step-00000008/**/c*") if path.is_file()]
        damaged = max(chunks, key=lambda path: (path.stat().st_size, path))
        content = bytearray(damaged.read_bytes())
        content[len(content) // 2] ^= 1
        damaged.write_bytes(content)
        array = str(damaged.parent.relative_to(next(p for p in damaged.parents if p.name == "step-00000008")))
        fetched, told = session()
        check(fetched == {f"{array}/{damaged.name}", f"{array}/zarr.json"}, f"fetched {fetched}")
        check(told == (size - len(content), len(content)), f"{told}, {size} bytes in all")
        shutil.rmtree(folder)
        fetched, told = session(kills=False, config=f"s3://{BUCKET}/all/{name}/config.yaml")
        below = [str(path).split("/step-00000008/")[1] for path in chunks]
        check(fetched == {*below, *(f"{os.path.dirname(path)}/zarr.json" for path in below)}, f"fetched {fetched}")
        check(told == (0, size), f"{told}, {size} bytes in all")
        self.whole(name)
        steps = sorted(path.name for path in folder.glob("*/*/step-*"))
        check(steps == ["step-00000016", "step-00000024"], f"scratch has {steps}")

    def expired(self):
        """Keys that expire in the middle are read again from the file; given in the environment, they are an error."""
        keys = self.w.root / "keys"
        env = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SHARED_CREDENTIALS_FILE": str(keys)}

        def write(token):
            given = self.store.environment()
            keys.write_text(f"[default]\naws_access_key_id = {given['AWS_ACCESS_KEY_ID']}\n"
                            f"aws_secret_access_key={given['AWS_SECRET_ACCESS_KEY']}\naws_session_token = {token}\n")

        def renew(*_):
            if len(self.store.requests) % 40 == 0:
                token = f"token{len(self.store.requests)}"
                write(token)
                self.store.tokens = {token}

        write("first")
        self.store.tokens = {"first"}
        self.begin(renew)
        self.good("expired", **env)
        check(self.store.tokens != {"first"}, "no key expired")

        def end(*_):
            if len(self.store.requests) == 60:
                self.store.tokens = {"second"}

        self.store.tokens = {"first"}
        self.begin(end)
        status, out, err = self.train("ended", AWS_SESSION_TOKEN="first")
        check(status != 0 and "have expired" in err and "AWS_ACCESS_KEY_ID" in err, f"status {status}\n{out}{err}")
        self.begin()
        self.good("ended", AWS_SESSION_TOKEN="second")
        self.store.tokens = set()

    def gated(self, name, **env):
        """A run that waits in its first checkpoint; (process, gate)."""
        gate, there = threading.Event(), threading.Event()

        def gates(command, path):
            if command == "PUT" and path.endswith("/manifest.json") and not there.is_set():
                there.set()
                return gate
            return None

        self.begin(gates=gates)
        process = self.w.start("train", "--config", self.config(name), env=self.env | env)
        wait_for(lambda: there.is_set() or process.poll() is not None, 300, "the first checkpoint")
        check(process.poll() is None, "it ended early")
        return process, gate

    def two_at_once(self):
        process, gate = self.gated("two")
        status, out, err = self.train("two")
        check(status != 0 and "locked by process" in err and "another process works on this run" in err, f"{status}\n{out}{err}")
        state = self.w.good("status", f"s3://{BUCKET}/all/two", env=self.env)
        check("running" in state, state)
        gate.set()
        out, err = process.communicate(timeout=300)
        check(process.returncode == 0, out + err)
        self.whole("two")

    def fenced(self, name, lease=5):
        """Another machine takes the lock of a run that was silent. Gives the status and text of the first process."""
        process, gate = self.gated(name, OSTRO_S3_LEASE_SECONDS=str(lease))
        self.store.refused.clear()
        self.store.plant(f"all/{name}/lock", ELSEWHERE.format(lease).encode())
        if name == "control":
            self.store.ignores_conditions = True
            renewals = len([what for what in self.store.requests if what.endswith("/lock")])
            wait_for(lambda: len([w for w in self.store.requests if w.endswith("/lock")]) > renewals + 1, 300, "a renewal")
        else:
            wait_for(lambda: f"all/{name}/lock" in self.store.refused, 300, "a renewal that fails")
        before = len(self.store.requests)
        gate.set()
        out, err = process.communicate(timeout=300)
        self.after = self.store.requests[before:]
        return process.returncode, out + err

    def loses(self):
        status, said = self.fenced("fenced")
        mine = [what for what in self.after if not what.startswith(("GET", "HEAD"))
                and re.search("checkpoints/|report|run.json|config", what)]
        check(not mine, f"it wrote although it had lost the lock: {mine}")
        check(status not in (0, -signal.SIGKILL) and "lost the lock to process 1 on elsewhere" in said, f"status {status}\n{said}")
        check(self.chain.startswith(self.store.files("all/fenced/")["chain.jsonl"]), "the chain is torn")
        # That other machine died, too, a minute ago.
        self.store.plant("all/fenced/lock", ELSEWHERE.format(30).encode(), age=60)
        self.store.uploads.clear()
        self.begin()
        said = self.good("fenced")
        check("sign of life" not in said, "it waited for a lock that was old")

    def control(self):
        """On a server that takes every write, the loss of a lock goes unseen: the case above would find it. Such a
        server is refused when the run begins; this one changes later."""
        status, said = self.fenced("control")
        check(status == 0 and "lost the lock" not in said, f"the control found the loss: {status}\n{said}")
        check(any("report.html" in what for what in self.after), "the control wrote no report")
        self.begin()
        status, out, err = self.train("ignored")
        self.store.ignores_conditions = False
        check(status != 0 and "ignores If-None-Match" in err and "127.0.0.1" in err, f"status {status}\n{out}{err}")
        check(self.store.files("all/ignored/").keys() <= {"lock"}, "it began a run")

    def late(self):
        """A process is stopped within the writing of a manifest that the server has not carried out. Another one goes on
        with the run, to its end. Then the request arrives, and the process wakes up: nothing of its counts."""
        name, lease = "publishes", 5
        gate, reached, stopped = threading.Event(), threading.Event(), threading.Event()

        def holds(command, path):
            if command == "PUT" and path == f"/{BUCKET}/all/{name}/checkpoints/step-00000008/manifest.json" and not stopped.is_set():
                reached.set()
                return gate, False
            return None

        self.begin(holds=holds)
        first = self.w.start("train", "--config", self.config(name), env=self.env | {"OSTRO_S3_LEASE_SECONDS": str(lease)})
        wait_for(lambda: reached.is_set() or first.poll() is not None, 300, "the manifest")
        check(first.poll() is None, "it ended early")
        first.send_signal(signal.SIGSTOP)
        stopped.set()
        self.store.plant(f"all/{name}/lock", ELSEWHERE.format(lease).encode())
        status, out, err = self.w.run("train", "--config", f"{name}.yaml", env=self.env)
        check(status == 0, f"status {status}\n{out}{err}")
        gate.set()
        first.send_signal(signal.SIGCONT)
        out, err = first.communicate(timeout=300)
        check(first.returncode != 0 and re.search("lost the lock|another process has written", err),
              f"status {first.returncode}\n{out}{err}")
        self.whole(name)
        self.w.verdict("equal", f"s3://{BUCKET}/all/{name}", env=self.env)

    def slurm(self):
        """Nodes that share nothing but the store: one script has all, and --dry_run shows none of the keys in it."""
        status, out, err = self.w.run("launch", "slurm", "--nodes", "1:1", "--dry_run", "--config", self.config("slurm"),
                                      env=self.env)
        check(status == 0 and "<<'OSTRO_VARIABLES'" in out, f"status {status}\n{out}{err}")
        check(self.env["AWS_SECRET_ACCESS_KEY"] not in out + err, f"--dry_run shows the key:\n{out}{err}")

    def workers(self):
        """Two processes write one checkpoint, and share nothing else; a second coordinator is refused."""
        name, cells = "workers", {"numerics__cells__embed": 2}  # so that both own some
        self.w.train(self.config("local-workers", log_dir="runs", **cells))
        config = self.config(name, trainer__scratch_dir="scratch-workers", **cells)
        gate, there = threading.Event(), threading.Event()

        def gates(command, path):
            if path.endswith("/manifest.json") and not there.is_set():
                there.set()
                return gate
            return None

        self.begin(gates=gates)
        words = ("launch", "local", "--workers", "2", "--config", config)
        process = self.w.start(*words, env=self.env)
        wait_for(lambda: there.is_set() or process.poll() is not None, 300, "the first checkpoint")
        status, out, err = self.w.run(*words, env=self.env)
        check(status != 0 and "locked by a coordinator" in err, f"{status}\n{out}{err}")
        gate.set()
        out, err = process.communicate(timeout=300)
        check(process.returncode == 0, out + err)
        files = self.whole(name, self.w.chain("local-workers"), {})
        # Each has kept its own cells, in a place of its own.
        kept = [{str(path.relative_to(place)) for path in place.glob("step-*/**/c*") if path.is_file()}
                for place in sorted((self.w.root / "scratch-workers").glob("*/*")) if place.is_dir()]
        chunks = {path[len("checkpoints/"):] for path in files if re.search(r"step-000000(16|24)/.*/c[.\d]*$", path)}
        check(len(kept) == 2 and all(kept) and not kept[0] & kept[1] and kept[0] | kept[1] == chunks, f"{kept}")

    def ssh(self):
        """Machines that ssh reaches need no configuration's file: it comes from the store, and the keys by standard input."""
        name, program, machine = "ssh", self.w.root / "ssh", self.w.root / "machine"
        config = self.config(name)
        program.write_text(SSH)
        program.chmod(0o755)
        (self.w.root / "hosts.txt").write_text("127.0.0.1\n127.0.0.2\n")
        machine.mkdir()
        for part in ("corpus", "tokenizer.json", "cache"):
            (machine / part).symlink_to(self.w.root / part)
        self.begin()
        out = self.w.good("launch", "ssh", "--hosts", "hosts.txt", "--ssh", str(program), "--bind", "127.0.0.1", "--folder", str(machine),
                          "--config", config, env=self.env)
        self.whole(name)
        check(not (machine / config).exists() and "starting 2 workers on 2 machines" in out, out)

    def workers_killed(self):
        killed_workers(self, "workers-killed", STEPS, 10)

    def moto(self):
        on_moto(self)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    full = os.environ.get("OSTRO_TEST_SIZE", "sample") != "sample"
    parser.add_argument("--kills", type=int, default=30 if full else 3)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    return in_order(Test(args.ostro, args.kills, args.seed),
                    ("skeleton", "reads", "faults", "killed", "scratch", "expired", "two_at_once", "loses", "control", "late", "slurm",
                     "workers", "ssh", *(("slow", "workers_killed", "moto") if full else ())))


if __name__ == "__main__":
    sys.exit(main())
