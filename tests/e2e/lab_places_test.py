#!/usr/bin/env python3
"""Tests `ostro lab run --place slurm`: small programs in the places of sbatch, squeue, scancel and srun run the jobs on this machine.

The lab hash and the record are those of a lab whose steps were done here, and each step is done once: undisturbed; and when a job is
killed, preempted and lost, the driver is killed and another takes over its jobs, and when it is stopped by Ctrl-C. Secrets are in no
program's arguments, not with Slurm, and in no file that others can read. A program that computes wrongly gives another hash, and a
journal with a step too many is found. What is wrong in the options is one clear error.
(tests/e2e/lab_slurm_on_this_machine.sh does the same with the real Slurm.)

    lab_places_test.py --ostro PROGRAM --faulty PROGRAM
"""
import argparse
import pathlib
import shutil
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "suite"))
import seed  # noqa: E402
from fake_slurm import FakeSlurm  # noqa: E402
from lab_halving import HALVED  # noqa: E402
from lab_places import DONE_ELSEWHERE, SECRET, Placed, check_done_once, check_nothing_left, done, kill_process, processes_of, record, small_lab, steps_of, wait_for  # noqa: E402
from lab_test import Lab, check  # noqa: E402

BAD_STEPS = """
  bad: {run: {program: [sh, -c, "echo why; exit 3"], inputs: {t: $texts}, outputs: [a]}}
  after: {tokenizer: {from: $bad, vocab_size: 300}}
"""


class Slurm(FakeSlurm):
    def jobs(self):
        """The jobs' numbers, and the files of their tasks."""
        return {int(path.stem): next(line.split()[-1].strip("'").replace("step.sh", "task.json") for line in path.read_text().splitlines()
                                     if line.startswith("exec srun")) for path in self.folder.glob("[0-9]*.script")}

    def running(self):
        return self.in_state("RUNNING", "PENDING")


def check_same(ostro, top, slurm):
    """Returns the local lab and its hash."""
    local = small_lab(ostro, top / "local")
    _, wanted = local.ran()
    lab = small_lab(ostro, top / "undisturbed")
    placed = Placed(lab, ["--place", "slurm", "-j", "2", "--sbatch", "--partition=low --time=30"], **slurm.variables)
    placed.open_gate(1000)
    found = placed.end()
    check(found == wanted, f"the lab hash is {found}, not {wanted}")
    check_done_once(done(lab))
    check(len(slurm.jobs()) == len(DONE_ELSEWHERE), f"{len(slurm.jobs())} jobs for {len(DONE_ELSEWHERE)} steps")
    check(record(lab, "record.sqlite") == record(local, "record.sqlite"), "another record than that of the local lab")
    logs = placed.logs()
    check(len(logs) == len(DONE_ELSEWHERE) and sum("held-out loss" in text for text in logs.values()) == 2, f"logs {logs}")
    script = (slurm.folder / "1.script").read_text()
    for line in ("--cpus-per-task=1", "--no-requeue", "--signal=TERM@120", "--partition=low --time=30"):
        check(f"#SBATCH {line}\n" in script, f"{line} is not in\n{script}")
    for path in slurm.folder.glob("*.env"):
        check(SECRET not in path.read_text() and "OSTRO_" not in path.read_text(), f"sbatch got {path.read_text()}")
    check_nothing_left(lab)
    check(lab.ran() == ([], wanted), "a local run does steps again")
    return local, wanted


def check_faults(ostro, top, slurm, wanted):
    lab = small_lab(ostro, top / "disturbed")
    words = ["--place", "slurm", "-j", "2"]
    placed = Placed(lab, words, **slurm.variables)
    placed.open_gate(4)
    placed.checkpoints(4)
    first = placed.training()
    for task in processes_of(lab):  # who comes beside the process that does a step does nothing
        beside = lab.start("step", task)
        check(beside.returncode == 1 and len(processes_of(lab)[task]) == 1, f"a second process: {beside.returncode} {beside.stdout}{beside.stderr}")
        break
    for task in processes_of(lab):  # a job has read its secrets, and removed their file
        check(not pathlib.Path(task).with_name("environment").exists(), f"{task}: the file environment is still there")
    for environment in (lab.top / "small.lab/jobs").glob("*/environment"):  # of a job that waits
        check(environment.stat().st_mode & 0o777 == 0o600, f"{environment}")
    for pid in first:
        check(SECRET not in pathlib.Path(f"/proc/{pid}/cmdline").read_text(), "a secret is in the arguments")
    kill_process(first[0])
    second = placed.training(without=first[:1])
    job = max(slurm.running())
    slurm.lose(job, "NODE_FAIL")
    placed.training(without=[pid for pid in second if pid not in first])
    placed.kill()  # its jobs go on
    check(len(slurm.running()) == 2 and len(processes_of(lab)) == 2, f"jobs {slurm.running()} run behind a driver that was killed")
    here = lab.start("run", "plan.yaml", "-j", "2")  # does not do beside them what they do
    check(here.returncode == 1 and here.stdout.count("has begun this step elsewhere") == 2, here.stdout + here.stderr)
    jobs = len(slurm.jobs())
    placed = Placed(lab, words, **slurm.variables)
    placed.wait_for(lambda: sum("goes on with what an earlier" in text for text in placed.logs().values()) == 2, "the jobs of the first driver")
    check(len(slurm.jobs()) == jobs, "another job for a step that has one")
    placed.process.send_signal(signal.SIGINT)
    placed.wait_for(lambda: placed.process.poll() is not None or len(list((lab.top / "small.lab/jobs").glob("*/stop"))) == 2, "the wish to stop")
    placed.open_gate(11)
    check(placed.end(75) == "stopped; the same command goes on", "Ctrl-C")
    check(slurm.running() == [] and not processes_of(lab), f"jobs {slurm.running()} are left")
    # The next driver is killed too, and its jobs end without one: their answers are taken.
    placed = Placed(lab, words, **slurm.variables)
    placed.training()
    placed.kill()
    placed.open_gate(1000)
    wait_for(lambda: not processes_of(lab), "the end of the trainings")
    jobs = len(slurm.jobs())
    names = steps_of(lab)
    check(sum(name.startswith("base") for name in names.values()) == 2, f"tasks {names}")
    placed = Placed(lab, words, **slurm.variables)
    found = placed.end()
    check(found == wanted, f"the lab hash is {found}, not {wanted}")
    check(len(slurm.jobs()) == jobs + 2, f"{len(slurm.jobs()) - jobs} jobs for the 2 steps that were left")
    check_done_once(done(lab))
    check_nothing_left(lab)
    print("a job killed, one lost, two drivers killed, one stopped: the hash of a local lab, and each step done once")


def check_errors(ostro, top, slurm, local):
    lab = small_lab(ostro, top / "errors")
    for words, wanted in [
            (["--place", "grid"], "--place grid: use local, ray or slurm"), (["--cpus", "2"], "--cpus: goes with --place ray or slurm"),
            (["--place", "slurm", "--cpus", "0"], "--cpus 0: use 1 to 1024"), (["--place", "slurm", "--address", "a:1"], "--address: goes with --place ray"),
            (["--place", "slurm", "--sbatch", "-N2"], "--sbatch: -N2 is set by `ostro lab run` itself"),
            (["--place", "slurm", "--sbatch", "--cpus-per-task=2"], "use --cpus"), (["--place", "ray", "--resources", "3"], "no JSON object")]:
        failed = lab.start("run", "plan.yaml", *words, **slurm.variables)
        check(failed.returncode == 2 and wanted in failed.stderr and failed.stderr.count("error: ") == 1, f"{words}: {failed.returncode} {failed.stderr}")
    if shutil.which("squeue", path="/usr/bin:/bin") is None:
        failed = lab.start("run", "plan.yaml", "--place", "slurm", PATH="/usr/bin:/bin")
        check(failed.returncode == 1 and "--place slurm" in failed.stderr and "Slurm's programs must be on PATH" in failed.stderr, failed.stderr)
    (slurm.folder / "refuse").touch()
    failed = lab.start("run", "plan.yaml", "--place", "slurm", **slurm.variables)
    check(failed.returncode == 1 and "invalid partition specified" in failed.stdout, failed.stdout + failed.stderr)
    (slurm.folder / "refuse").unlink()
    failed = lab.start("step", f"{lab.top}/small.lab/jobs/none/task.json")
    check(failed.returncode == 1 and "must see the lab's folder under the same path" in failed.stderr, failed.stderr)
    # A step that fails is told as here, and what needs it waits.
    reasons = []
    for place, other in (("slurm", lab), ("local", local)):
        other.write((other.top / "plan.yaml").read_text() + BAD_STEPS)
        failed = other.start("run", "plan.yaml", "--place", place, **slurm.variables)
        check(failed.returncode == 1 and "needs bad, which failed" in failed.stdout, f"{place}: {failed.stdout}{failed.stderr}")
        reasons += [line.replace(str(other.top), "") for line in failed.stdout.splitlines() if line.startswith("failed  bad: ")]
    check(len(reasons) == 2 and "status 3" in reasons[0] and reasons[0] == reasons[1], f"{reasons}")


def check_controls(faulty, top, slurm, wanted, undisturbed):
    lab = small_lab(faulty, top / "faulty")
    found = lab.run("--place", "slurm", "-j", "2", OSTRO_TEST_FAULT="gradient_bit", **slurm.variables).stdout.splitlines()[-1]
    check(found.startswith("lab hash: ") and found != f"lab hash: {wanted}", "a planted fault in the jobs changed nothing")
    try:
        check_done_once([*done(undisturbed), "rows"])
    except SystemExit:
        print("a planted fault gives another hash, and a step that was done twice is found")
        return
    check(False, "a step that was done twice is not found")


def check_halved(ostro, top, slurm):
    """The rungs of a halved sweep decide the same wherever its members were trained."""
    found = []
    for name, words in (("halved_here", ()), ("halved_there", ("--place", "slurm", "-j", "3"))):
        lab = Lab(ostro, top / name)
        lab.write(HALVED)
        found.append(lab.run(*words, **slurm.variables).stdout.splitlines()[-1])
    check(found[0] == found[1] and found[0].startswith("lab hash: "), f"{found}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--faulty", required=True, help="tests/controls")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-places-") as folder:
        top = pathlib.Path(folder)
        slurm = Slurm(top / "slurm")
        try:
            local, wanted = check_same(args.ostro, top, slurm)
            check_controls(args.faulty, top, slurm, wanted, local)
            check_faults(args.ostro, top, slurm, wanted)
            check_errors(args.ostro, top, slurm, local)
            if seed.full():
                check_halved(args.ostro, top, slurm)
        finally:
            slurm.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
