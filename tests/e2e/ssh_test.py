#!/usr/bin/env python3
"""Tests `ostro launch ssh`: a program in the place of ssh runs the workers on this machine, at several addresses of the loopback.

The chain is that of `ostro train` when a worker is killed, a machine is not reached and a connection breaks off; a stopped worker is killed, a machine that fails left out; the secret is in no
program's arguments; workers end when their launcher is killed, and go on when the same command is typed again; --bring carries the program, the
configuration and the data to machines that share the run's folder alone, once, and refuses a byte that was flipped on the way; and what is wrong in the list of
hosts is one clear error.

    ssh_test.py --ostro PROGRAM
"""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from workers_test import Gate, Place, check, steps_of, wait_for, workers_of

# ssh's options, `--`, the host and the command. A host `down` cannot be reached. OpenSSH ends its own lines with "\r\n".
SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
[ "$2" != down ] || { printf 'ssh: connect to host down port 22: Connection refused\\r\\n' >&2; exit 255; }
echo $$ >> "$0.pids"
exec env -i PATH="$PATH" HOME="$HOME" SSH_CONNECTION="127.0.0.1 40000 $2 22" sh -c "$3"
"""
# Each machine has a home folder of its own, and the command begins in it. On the way to the machine of the file `flip` a byte of what looks like a program changes.
SSH_HOMES = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
home="${0%/*}/homes/$2"
mkdir -p "$home" && cd "$home" || exit 255
take() { env -i PATH="$PATH" HOME="$home" SSH_CONNECTION="127.0.0.1 40000 $1 22" sh -c "$2"; }
[ "$2" != "$(cat "${0%/*}/flip" 2>/dev/null)" ] || { python3 "${0%/*}/flip.py" | take "$2" "$3"; exit; }
exec env -i PATH="$PATH" HOME="$home" SSH_CONNECTION="127.0.0.1 40000 $2 22" sh -c "$3"
"""
FLIP = """import os
before, done = 0, False
while data := os.read(0, 65536):
    at = data.find(b"ELF")
    if not done and at >= 0 and at + 1000 < len(data):
        data, done = data[:at + 900] + bytes([data[at + 900] ^ 1]) + data[at + 901:], True
    while data:
        data = data[os.write(1, data):]
"""
SECRET = "0123456789abcdef" * 4


class Ssh:
    def __init__(self, place):
        self.place = place
        self.ssh = place.top / "ssh"
        self.ssh.write_text(SSH)
        self.ssh.chmod(0o755)
        self.gate = Gate(place.top)

    def hosts(self, *lines):
        path = self.place.top / "hosts.txt"
        path.write_text("".join(f"{line}\n" for line in lines))
        return ["--hosts", str(path), "--ssh", str(self.ssh)]

    def start(self, run, hosts, options):
        words = [self.place.ostro, "launch", "ssh", *hosts, "--bind", "127.0.0.1", *self.place.words(run, options)]
        return subprocess.Popen(words, env=self.place.environment({"OSTRO_THREADS": "1", "OSTRO_JOB_SECRET": SECRET, "OSTRO_FAULT": self.gate.fault()}), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.place.top)

    def ended(self, process, run, expected):
        out = process.communicate(timeout=300)[0]
        check(process.returncode == 0, f"{run}: exit code {process.returncode}\n{out}")
        check(self.place.chain(run) == expected, f"{run}: another chain than that of ostro train")
        wait_for(lambda: not workers_of(run))
        return out


def check_secret(run):
    for pid in workers_of(run):
        while pid > 1:  # the worker and the programs that started it
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode()
            check(SECRET not in words, f"process {pid} has the secret in its arguments: {words}")
            pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def check_faults(place, ssh, options, expected):
    """Of three machines one is down, a worker is killed, and then a connection."""
    ssh.gate.at(20)
    process = ssh.start("faults", ssh.hosts("127.0.0.1 slots=2", "127.0.0.2  # another", "down"), options)
    wait_for(lambda: steps_of(place, "faults") > 5 and len(workers_of("faults")) == 3)
    check_secret("faults")
    os.kill(list(workers_of("faults"))[1], signal.SIGKILL)
    now = steps_of(place, "faults")
    ssh.gate.at(now + 15)
    wait_for(lambda: steps_of(place, "faults") > now + 5 and len(workers_of("faults")) == 3)
    wrappers = [int(line) for line in pathlib.Path(f"{ssh.ssh}.pids").read_text().split()]
    gone = next(pid for pid in wrappers if pathlib.Path(f"/proc/{pid}").exists())
    os.kill(gone, signal.SIGKILL)
    ssh.gate.at(now + 30)
    wait_for(lambda: steps_of(place, "faults") > now + 20 and len(workers_of("faults")) == 3)
    ssh.gate.open()
    out = ssh.ended(process, "faults", expected)
    for words in ("down ended with status 255; the others go on", "lost its place", "was killed by signal 9",
                  "ssh: connect to host down port 22: Connection refused"):
        check(words in out, f"'{words}' is not in\n{out}")


def check_stopped(place, ssh, options, expected):
    """A worker that is stopped is killed on its machine, and another takes its place; a machine that is down is left out, and tried again."""
    ssh.gate.at(20)
    process = ssh.start("stopped", [*ssh.hosts("127.0.0.1", "127.0.0.2", "down"), "--failures", "1", "--left_out", "2"], options)
    wait_for(lambda: steps_of(place, "stopped") > 5 and len(workers_of("stopped")) == 2)
    stopped = list(workers_of("stopped"))[1]
    os.kill(stopped, signal.SIGSTOP)
    ssh.gate.at(30)
    wait_for(lambda: steps_of(place, "stopped") > 22 and len(set(workers_of("stopped")) - {stopped}) == 2)
    wait_for(lambda: stopped not in workers_of("stopped"))
    ssh.gate.open()
    out = ssh.ended(process, "stopped", expected)
    for words in ("is silent: its process is killed", "started worker process", "the machine is left out after 1 failures in a row, and tried again in 2 s",
                  "the machine is left out after 2 failures in a row"):
        check(words in out, f"'{words}' is not in\n{out}")
    kept = "".join(path.read_text() for path in sorted((place.top / "runs" / "stopped" / "stderr").iterdir()))
    check("connect to host down port 22: Connection refused" in kept, f"what ssh said is not kept:\n{kept}")


def check_orphans(place, ssh, options, expected):
    """Workers whose launcher was killed end; the same command goes on from the last checkpoint, to the chain of ostro train."""
    ssh.gate.at(25)
    process = ssh.start("orphans", ssh.hosts("127.0.0.1", "127.0.0.2"), options)
    wait_for(lambda: steps_of(place, "orphans") > 13)
    process.kill()
    wait_for(lambda: not workers_of("orphans"))
    process.communicate()
    check(place.chain("orphans") != expected, "the run had ended before its launcher was killed")
    ssh.gate.open()
    ssh.ended(ssh.start("orphans", ssh.hosts("127.0.0.1", "127.0.0.2"), options), "orphans", expected)


def check_bring(place, options, expected):
    """Two machines share nothing but the run's folder. Everything is copied once, to both; the workers run the copies."""
    here = place.top / "brought"
    here.mkdir()
    for name, text in (("ssh", SSH_HOMES), ("flip.py", FLIP)):
        (here / name).write_text(text)
        (here / name).chmod(0o755)
    (here / "hosts.txt").write_text("127.0.0.1\n127.0.0.2\n")
    for name in ("text.txt", "tokenizer.json"):
        shutil.copy(place.top / name, here / name)
    config = (place.top / "c.yaml").read_text().replace(f"{place.top}/runs", "@").replace(f"{place.top}/", "").replace("@", f"{place.top}/runs")
    (here / "c.yaml").write_text(config)
    gate = Gate(here)

    def start(run, more=()):
        words = [place.ostro, "launch", "ssh", "--hosts", "hosts.txt", "--ssh", str(here / "ssh"), "--bind", "127.0.0.1", "--bring", "--config", "c.yaml",
                 "--trainer.id", run, *options, *more]
        return subprocess.Popen(words, env=place.environment({"OSTRO_THREADS": "1", "OSTRO_FAULT": gate.fault()}), text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, cwd=here)

    def ended(process, run):
        out = process.communicate(timeout=300)[0]
        check(process.returncode == 0, f"{run}: exit code {process.returncode}\n{out}")
        check(place.chain(run) == expected, f"{run}: another chain than that of ostro train\n{out}")
        return out

    def brought_workers():
        # The words of a worker do not have the run's name: it is in the configuration.
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            try:
                exe, cwd = os.readlink(entry / "exe"), os.readlink(entry / "cwd")
                worker = (entry / "cmdline").read_bytes().split(b"\0")[1:2] == [b"worker"]
            except OSError:
                continue
            if worker and exe.startswith(str(here / "homes")):
                found[exe.removeprefix(str(here / "homes") + "/").split("/")[0], exe.split("/bin/")[0] + "/work" == cwd] = int(entry.name)
        return found

    # The negative control: what is flipped on the way is found, and the run does not begin.
    (here / "flip").write_text("127.0.0.2")
    process = start("brought", ["--min_workers", "2"])
    out = process.communicate(timeout=300)[0]
    check(process.returncode == 1 and "127.0.0.2 has no copy of the program and the data" in out and "arrived with other bytes than it has here" in out
          and "machines for 1 workers have the copy, and 2 workers are needed" in out, f"a flipped byte: exit code {process.returncode}\n{out}")
    check(not list((here / "homes" / "127.0.0.2" / ".cache/ostro/copies").iterdir()), "something of a damaged copy stayed")
    (here / "flip").unlink()
    gate.at(20)
    process = start("brought")
    wait_for(lambda: steps_of(place, "brought") > 5 and len(brought_workers()) == 2)
    check(set(brought_workers()) == {("127.0.0.1", True), ("127.0.0.2", True)}, f"the workers are {brought_workers()}")
    process.send_signal(signal.SIGTERM)
    gate.open()
    out = process.communicate(timeout=300)[0]
    check(process.returncode == 75, f"stopped: exit code {process.returncode}\n{out}")
    check("127.0.0.1 has all of" in out and "were copied to" in out and "of 127.0.0.2" in out, f"what was copied is not said:\n{out}")
    # The same command copies nothing. But a machine that loses its copy, and with it a worker, gets another.
    now = steps_of(place, "brought")
    gate.at(now + 20)
    process = start("brought")
    wait_for(lambda: steps_of(place, "brought") > now + 5 and len(brought_workers()) == 2)
    lost = brought_workers()["127.0.0.2", True]
    shutil.rmtree(here / "homes" / "127.0.0.2" / ".cache")
    os.kill(lost, signal.SIGKILL)
    wait_for(lambda: ("127.0.0.2", True) in brought_workers())
    gate.open()
    out = ended(process, "brought")
    check(out.count("were copied to") == 1 and "127.0.0.1 has all of" in out and "127.0.0.2 has all of" in out, f"the same command copied again:\n{out}")
    check("were copied to" in out.split("lost its place", 1)[-1], f"what was lost was not brought again:\n{out}")
    for more, says in ((["--program", "x"], "leave out --program and --folder"), (["--bring_mib", "0"], "--bring_mib: 0 is not a number from 1")):
        process = start("bring-errors", more)
        out = process.communicate(timeout=300)[0]
        check(process.returncode == 2 and says in out, f"{more}: exit code {process.returncode}\n{out}")


def check_errors(place, ssh):
    for lines, says in ((["127.0.0.1", "127.0.0.1"], "hosts.txt:2: 127.0.0.1 stands in line 1 already"),
                        (["a gpus=2"], "hosts.txt:1: gpus=2 is neither slots=N nor devices=LIST"),
                        (["a devices=gpu"], "gpu"), ([], "hosts.txt: has no host")):
        process = ssh.start("errors", ssh.hosts(*lines), [])
        out = process.communicate(timeout=300)[0]
        check(process.returncode == 2 and says in out and out.count("error: ") == 1, f"{lines}: exit code {process.returncode}\n{out}")
    process = ssh.start("errors", [*ssh.hosts("127.0.0.1"), "--min_workers", "2"], [])
    out = process.communicate(timeout=300)[0]
    check(process.returncode == 2 and "--min_workers: 2 is not a number from 1 to the 1 workers of" in out, out)
    process = ssh.start("errors", [*ssh.hosts("127.0.0.1")[:2], "--ssh", "no-such-program"], [])
    out = process.communicate(timeout=300)[0]
    check(process.returncode == 127 and "on 127.0.0.1 could not be started" in out and "no-such-program" in out, out)
    for word in ("--bring_to", "--bring_mib"):
        process = ssh.start("errors", [*ssh.hosts("127.0.0.1"), word, "5"], [])
        out = process.communicate(timeout=300)[0]
        check(process.returncode == 2 and f"{word} belongs to --bring: give that too" in out, out)
    # All machines are down: the job ends, and says why.
    process = ssh.start("errors", ssh.hosts("down"), [])
    out = process.communicate(timeout=300)[0]
    check(process.returncode == 255 and "Connection refused" in out, f"down: exit code {process.returncode}\n{out}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-ssh-") as top:
        place = Place(args.ostro, pathlib.Path(top))
        ssh = Ssh(place)
        options = ["--trainer.num_train_steps", "80", "--trainer.checkpointer.keep", "[{every: 10}]"]
        expected = place.train("alone", options)
        check_errors(place, ssh)
        check_faults(place, ssh, options, expected)
        check_stopped(place, ssh, options, expected)
        check_orphans(place, ssh, options, expected)
        check_bring(place, options, expected)
    print("ostro launch ssh: the chain of ostro train with a machine that is down, a worker and a connection that are killed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
