#!/usr/bin/env python3
"""Tests `ostro launch slurm`: small programs in the places of sbatch, squeue, scancel and srun run the jobs on this machine.

The chain is that of `ostro train` when a job is preempted, requeued, lost with its node and cancelled by a person, when the launcher is
killed and another takes over its jobs, and when the run is stopped by Ctrl-C and resumed. With the run directory in an
object store and slices by node the same holds, and what jobs need is in the folder --jobs, or without it in the script that sbatch reads (OSTRO_TEST_SEED draws which). A node on which jobs fail is left out by the next ones (--failures), and with
--bring the program and the data are copied beside the scripts. No job is left behind; the secret is in no
program's arguments, with Slurm only where nothing is shared, and in no file that others can read. Variables that would change what the launcher asks Slurm for do
nothing. What is wrong in the options is one clear error.
(tests/e2e/slurm_on_this_machine.sh does the same to the real Slurm.)

    slurm_test.py --ostro PROGRAM
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / room) for room in ("s3", "suite")]
import seed
import workers_test
from fake_slurm import FakeSlurm
from program import kill_all
from store_server import BUCKET, Store
from workers_test import Gate, Place, check, steps_of, workers_of

SECRET = "0123456789abcdef" * 4
# Steps that take long, so that what is done to the run is done before it ends, however fast the machine is. The later ones take so long
# that it is not over when the machine is slow, either.
STEPS = 240
SLOW = ",".join(f"leaf:{step}:*:delay={500 if step < 140 else 10000}" for step in range(10, STEPS))


def wait_for(what):
    return workers_test.wait_for(what, 600)


class Slurm(FakeSlurm):
    """With the launcher of a run."""

    def __init__(self, place):
        super().__init__(place.top / "slurm")
        self.place = place
        self.process = self.log = None

    def words(self, run, options, *own):
        nodes = [] if "--nodes" in own else ["--nodes", "1:2"]
        return [self.place.ostro, "launch", "slurm", *nodes, "--bind", "127.0.0.1", *own, *self.place.words(run, options)]

    def start(self, run, options, *own, fault=SLOW, settings=None):
        settings = {"OSTRO_THREADS": "1", "OSTRO_JOB_SECRET": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET, "OSTRO_FAULT": fault,
                    "SBATCH_JOB_NAME": "another", "SQUEUE_PARTITION": "another"} | self.variables | (settings or {})
        self.log = self.place.top / "launcher.txt"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(self.words(run, options, *own), env=self.place.environment(settings), stdout=log,
                                            stderr=subprocess.STDOUT, cwd=self.place.top)
        return self.process

    def says(self, words):
        """Waits until the launcher has written the words."""
        def found():
            text = self.log.read_text()
            check(words in text or self.process.poll() is None, f"the launcher ended without '{words}'\n{text}")
            return words in text
        wait_for(found)

    def ends(self, seconds=900):
        """Waits for the launcher's end; returns what it wrote."""
        self.process.wait(timeout=seconds)
        return self.log.read_text()

    def running(self):
        return self.in_state("RUNNING")

    def forget(self):
        wait_for(lambda: not self.running() and not list(self.folder.glob("*.group")))
        for path in self.folder.glob("[0-9]*"):
            path.rmdir() if path.is_dir() else path.unlink()


def train_on(place, run, workers, steps=4):
    """Waits until so many workers have trained for a few steps."""
    wait_for(lambda: len(workers_of(run)) == workers)
    now = steps_of(place, run)
    wait_for(lambda: steps_of(place, run) >= now + steps)


def check_secret(place, slurm, run):
    for path in slurm.folder.glob("*.env"):
        text = path.read_text()
        check(SECRET not in text and "OSTRO_" not in text and "SBATCH_JOB_NAME" not in text, f"sbatch got {text}")
    for pid in workers_of(run):
        while pid > 1:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode()
            check(SECRET not in words, f"process {pid} has the secret in its arguments: {words}")
            pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    for path in (place.top / "runs" / run).rglob("*"):
        if path.is_file() and SECRET.encode() in path.read_bytes():
            check(path.name == "environment" and path.stat().st_mode & 0o777 == 0o600, f"{path} has the secret")


def check_faults(place, slurm, options, expected):
    run = "faults"
    process = slurm.start(run, options, "--requeue")
    train_on(place, run, 2)
    slurm.says("job 2 runs on node2")
    check_secret(place, slurm, run)
    slurm.signal(1, signal.SIGTERM)  # preempted: its worker leaves within the grace
    slurm.says("job 1 on node1: its workers have left; another takes its place")
    slurm.says("job 3 runs on node3")
    train_on(place, run, 2)
    slurm.lose(2, "NODE_FAIL")
    slurm.says("job 2 on node2 ended (NODE_FAIL); another takes its place")
    slurm.says("job 4 runs on node4")
    train_on(place, run, 2)
    (slurm.folder / "full").touch()
    slurm.lose(3, "PENDING")  # requeued
    slurm.says("job 3 was taken from node3 and waits for another start")
    train_on(place, run, 1)
    (slurm.folder / "full").unlink()
    wait_for(lambda: slurm.log.read_text().count("job 3 runs on node3") == 2)
    train_on(place, run, 2)
    subprocess.run([slurm.folder / "scancel", "--quiet", "3"], check=True)  # by a person
    slurm.says("job 3 on node3 was cancelled; none takes its place")
    train_on(place, run, 1)
    check(slurm.running() == [4], f"jobs {slurm.running()} run")
    process.kill()
    out = slurm.ends()
    process = slurm.start(run, options, "--requeue")  # takes over job 4, and fills the other place
    slurm.says("1 job of this run is in the queue already")
    slurm.says("job 5 runs on node5")
    train_on(place, run, 2)
    check(slurm.running() == [4, 5], f"jobs {slurm.running()} run")
    process.send_signal(signal.SIGINT)
    slurm.says("asking the workers to save and to end")
    out += slurm.ends()
    check(process.returncode == 75 and slurm.running() == [] and not workers_of(run), f"Ctrl-C: exit code {process.returncode}\n{out}")
    check(not (place.top / "runs" / run / "slurm" / "environment").exists(), "the secret is left behind")
    check(steps_of(place, run) < STEPS, f"the run was over before Ctrl-C\n{out}")
    process = slurm.start(run, options, fault="")
    out += slurm.ends()
    check(process.returncode == 0, f"resumed: exit code {process.returncode}\n{out}")
    check(place.chain(run) == expected, f"another chain than that of ostro train\n{out}")
    check(slurm.running() == [], f"jobs {slurm.running()} are left")
    print("a job preempted, one lost, one requeued, one cancelled; the launcher killed, stopped, resumed: the chain of ostro train")


def check_store(place, slurm, options, expected):
    """No folder of the run: --jobs has what Slurm reads and writes. Each job is a slice."""
    run, store, jobs = "stored", Store(), place.top / "jobs"
    try:
        settings = store.environment() | {"HOME": str(place.top)}
        key = settings["AWS_SECRET_ACCESS_KEY"]
        process = slurm.start(run, [*options, "--trainer.log_dir", f"s3://{BUCKET}/runs"], "--nodes", "2", "--jobs", str(jobs), "--slices", "node",
                              fault="leaf:5:*:delay=5000,leaf:9:*:delay=5000", settings=settings)
        slurm.says("job 2 runs on node2")
        (folder,) = jobs.iterdir()
        check(folder.name.startswith("ostro-stored-"), folder)
        wait_for(lambda: (folder / "1.out").exists())  # the job has begun
        check({p.name for p in folder.iterdir()} >= {"job.sh", "worker.sh", "environment", "launch.yaml"}, list(folder.iterdir()))
        for path in folder.iterdir():
            has = SECRET in path.read_text() or key in path.read_text()
            check(has == (path.name == "environment"), f"{path}: who has the keys")
            check(path.suffix == ".out" or path.stat().st_mode & 0o777 == 0o600, f"{path}: who can read it")
        for path in slurm.folder.glob("*.env"):
            check(key not in path.read_text(), f"sbatch got {path.read_text()}")
        def between():
            members = json.loads(store.files(f"runs/{run}/").get("cluster.json", b'{"members": []}'))["members"]
            return any(m.get("bytes_between_slices") for m in members) or process.poll() is not None
        wait_for(between)
        check(process.poll() is None, f"nothing went between slices\n{slurm.log.read_text()}")
        out = slurm.ends()
        check(process.returncode == 0, f"{run}: exit code {process.returncode}\n{out}")
        files = store.files(f"runs/{run}/")
        check(files["chain.jsonl"] == expected, f"another chain in the store\n{out}")
        check(any(name.startswith("stderr/") and b"M parameters" in text for name, text in files.items()), f"what workers wrote is not in {sorted(files)}")
        check(not any(SECRET.encode() in content or key.encode() in content for content in files.values()), "the store has the keys")
        check(not (folder / "environment").exists() and not (place.top / "runs" / run).exists(), "something is left behind")
    finally:
        store.close()
    slurm.forget()
    print("a run directory in an object store, and slices by node: the chain of ostro train")


def check_nothing_shared(place, slurm, options, expected):
    """The run is in an object store, and there is no --jobs: sbatch gets one script, and each job writes on its node. Jobs with the secret of
    an earlier launcher, which was killed while they waited, are cancelled; those that know the same one are taken over."""
    run, store, gate = f"spooled-{os.getpid()}", Store(), Gate(place.top)  # /tmp is everybody's
    gate.at(4)
    outputs = lambda name: sorted(pathlib.Path("/tmp").glob(f"{name}-*.*"))
    name = None
    try:
        settings = store.environment() | {"HOME": str(place.top), "XDG_CACHE_HOME": ""}
        key = settings["AWS_SECRET_ACCESS_KEY"]

        def start(secret=SECRET):
            return slurm.start(run, [*options, "--trainer.log_dir", f"s3://{BUCKET}/runs"], "--nodes", "2", fault=gate.fault(),
                               settings=settings | {"OSTRO_JOB_SECRET": secret})
        (slurm.folder / "full").touch()
        process = start("f" * len(SECRET))
        slurm.says("2 jobs are in Slurm's queue: 1 2")
        process.kill()
        slurm.ends()
        process = start()
        slurm.says("2 jobs of an earlier launcher are in the queue, which know not this one's address, port and secret")
        slurm.says("2 jobs are in Slurm's queue: 3 4")
        check(slurm.in_state("CANCELLED") == [1, 2], slurm.states())
        (slurm.folder / "full").unlink()
        slurm.says("job 4 runs on node4")
        (folder,) = (place.top / ".cache/ostro/slurm").iterdir()
        name = folder.name
        check(folder.stat().st_mode & 0o777 == 0o700 and [p.name for p in folder.iterdir()] == ["environment"], list(folder.iterdir()))
        kept = folder / "environment"
        check(kept.stat().st_mode & 0o777 == 0o600 and SECRET in kept.read_text() and key not in kept.read_text(), "who can read what")

        def train():
            members = json.loads(store.files(f"runs/{run}/").get("cluster.json", b'{"members": []}'))["members"]
            return len(members) == 2 and all(m["rank"] is not None and m["step"] >= 4 for m in members) or process.poll() is not None
        wait_for(train)
        check(process.poll() is None and len(workers_of(run)) == 2, slurm.log.read_text())
        check_secret(place, slurm, run)
        for path in (*slurm.folder.glob("*.words"), *slurm.folder.glob("*.env"), *outputs(name)):
            check(SECRET not in path.read_text() and key not in path.read_text(), f"{path} has the keys")
        check({p.stat().st_mode & 0o777 for p in outputs(name)} == {0o600} and len(outputs(name)) == 2, outputs(name))
        script = (slurm.folder / "3.script").read_text()
        check(SECRET in script and key in script and str(folder) not in script, "the script of a job")
        process.kill()
        slurm.ends()
        process = start()
        slurm.says("2 jobs of this run are in the queue already")
        gate.open()
        out = slurm.ends()
        check(process.returncode == 0, f"{run}: exit code {process.returncode}\n{out}")
        files = store.files(f"runs/{run}/")
        check(files["chain.jsonl"] == expected, f"another chain in the store\n{out}")
        check(not any(SECRET.encode() in content or key.encode() in content for content in files.values()), "the store has the keys")
        check(not (folder / "environment").exists() and not (place.top / "runs" / run).exists(), "something is left behind")
        check(not (slurm.folder / "5.state").exists(), f"jobs were not taken over\n{out}")
    finally:
        store.close()
        for path in outputs(name) if name else []:
            path.unlink()
    slurm.forget()
    print("nothing shared but an object store; the launcher killed: jobs of another secret are cancelled, others taken over, the chain of ostro train")


def check_left_out(place, slurm, options, expected):
    """Jobs fail on one node: at the second failure the next job leaves it out, with what --sbatch leaves out. The program and the data lie beside the scripts."""
    run, gate = "left_out", Gate(place.top)
    gate.at(3)
    (slurm.folder / "bad").touch()
    process = slurm.start(run, options, "--failures", "2", "--sbatch", "-x worse", "--bring", fault=gate.fault())
    slurm.says("job 2 on bad ended with an error (FAILED); the others go on")
    slurm.says("job 3 on bad ended with an error (FAILED); the others go on")
    slurm.says("the next jobs leave out bad, where 2 in a row have failed, for 600 s")
    slurm.says("job 4 runs on node4")
    check((slurm.folder / "4.exclude").read_text() == "worse,bad\n" and not (slurm.folder / "3.exclude").exists(), "what jobs leave out")
    jobs = place.top / "runs" / run / "slurm"
    (copy,) = (jobs / "copies").iterdir()
    script = (jobs / "worker.sh").read_text()
    check(f"cd {copy}/work " in script and f"{copy}/bin/ostro worker " in script and "--config ../launch.yaml" in script, script)
    check((copy / "work" / "tokenizer.json").read_bytes() == (place.top / "tokenizer.json").read_bytes(), "the tokenizer is not brought")
    gate.open()
    out = slurm.ends()
    check(process.returncode == 0 and place.chain(run) == expected, f"{run}: exit code {process.returncode}\n{out}")
    (slurm.folder / "bad").unlink()
    slurm.forget()
    print("a node on which jobs fail is left out; the workers run a copy of the program: the chain of ostro train")


def check_errors(place, slurm):
    def ends(code, says, *own, options=()):
        process = slurm.start("errors", options, *own)
        out = slurm.ends()
        check(process.returncode == code and says in out and out.count("error: ") == 1, f"{own}: exit code {process.returncode}\n{out}")
        check(slurm.running() == [], f"{own}: jobs are left")

    ends(2, "--nodes: '4:2' is not MIN:MAX", "--nodes", "4:2")
    ends(2, "--sbatch: -N4 is set by `ostro launch slurm` itself; use --nodes", "--sbatch", "--mem=1G -N4")
    ends(2, "--grace: 65536 seconds", "--grace", "65536")
    ends(2, "--failures: -1 is negative; 0 leaves no node out", "--failures", "-1")
    ends(2, "--sbatch: --exclud may stand for --exclude; nodes that fail are left out beside", "--sbatch", "--exclud n1")
    ends(2, "--bring: the copy has a program and a folder of its own; leave out --program and --folder", "--bring", "--program", "/none/ostro")
    ends(2, "--bring_mib belongs to --bring: give that too", "--bring_mib", "5")
    ends(2, "--slices: 'rack' is none of the words partition, switch, node", "--slices", "rack")
    ends(2, "--bring: trainer.log_dir, s3://runs/all, is in an object store, so there is no folder for a copy", "--bring", options=["--trainer.log_dir", "s3://runs/all"])
    ends(2, "--folder /: the workers would look for trainer.log_dir, 'runs', there", "--folder", "/", options=["--trainer.log_dir", "runs"])
    # A program that is not there: both jobs fail before a step, and the run is given up with what a job wrote.
    process = slurm.start("errors", [], "--nodes", "2", "--program", "/none/ostro")
    out = slurm.ends()
    check(process.returncode == 1 and "jobs are left, and 2 are needed: giving up; a job wrote at last:" in out and "/none/ostro" in out, out)
    slurm.forget()
    (slurm.folder / "refuse").touch()
    process = slurm.start("errors", [])
    out = slurm.ends()
    check(process.returncode == 1 and "error: Slurm takes no job: sbatch: error: invalid partition specified" in out, out)
    (slurm.folder / "refuse").unlink()


def check_dry_run(place, slurm):
    process = slurm.start("dry", [], "--dry_run=true", "--requeue", "--sbatch", "--partition=low --gres=gpu:1", "--workers_per_node", "2",
                          "--slices", "switch")
    out = slurm.ends()
    for line in ("#SBATCH --requeue", "#SBATCH --ntasks=2", "#SBATCH --partition=low --gres=gpu:1", "#SBATCH --signal=TERM@120"):
        check(f"\n{line}\n" in out, f"{line} is not in\n{out}")
    check('--slice "$slice"' in out and "SLURM_TOPOLOGY_ADDR" in out, f"the workers have no slice\n{out}")
    check("--dry_run" not in out and "--requeue " not in out, f"workers get the launcher's flags\n{out}")
    check(process.returncode == 0 and SECRET not in out and not (place.top / "runs" / "dry").exists() and not slurm.states(), out)
    process = slurm.start("dry", ["--trainer.log_dir", "s3://runs/all"], "--dry_run=true")
    out = slurm.ends()
    check(process.returncode == 0 and SECRET not in out and "\n#SBATCH --output=/dev/null\n" in out and not slurm.states(), out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-slurm-") as top:
        place = Place(args.ostro, pathlib.Path(top))
        slurm = Slurm(place)
        options = ["--trainer.num_train_steps", str(STEPS), "--trainer.checkpointer.keep", "[{every: 80}]"]
        try:
            check_dry_run(place, slurm)
            check_errors(place, slurm)
            slurm.forget()
            short = ["--trainer.num_train_steps", "30"]
            expected = place.train("short-alone", short)
            stores = {"with --jobs": check_store, "without --jobs": check_nothing_shared}
            for which in seed.draw("a run in an object store", list(stores), 1):
                stores[which](place, slurm, short, expected)
            check_left_out(place, slurm, short, expected)
            check_faults(place, slurm, options, place.train("alone", options, {"OSTRO_THREADS": "1"}, 600))
        finally:
            kill_all([slurm.process])
            slurm.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
