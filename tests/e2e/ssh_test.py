#!/usr/bin/env python3
"""Tests `ostro launch ssh`: a program in the place of ssh runs the workers on this machine, at several addresses of the loopback.

The chain is that of `ostro train` when a worker is killed, a machine is not reached and a connection breaks off; a stopped worker is killed, a machine that fails left out; the secret is in no
program's arguments; workers end when their launcher is killed; and what is wrong in the list of hosts is one clear error.

    ssh_test.py --ostro PROGRAM
"""

import argparse
import os
import pathlib
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


def check_orphans(place, ssh, options):
    """Workers whose launcher was killed end."""
    process = ssh.start("orphans", ssh.hosts("127.0.0.1", "127.0.0.2"), options)
    wait_for(lambda: steps_of(place, "orphans") > 3)
    process.kill()
    wait_for(lambda: not workers_of("orphans"))
    process.communicate()


def check_errors(place, ssh):
    for lines, says in ((["127.0.0.1", "127.0.0.1"], "hosts.txt:2: 127.0.0.1 stands in line 1 already"),
                        (["a gpus=2"], "hosts.txt:1: gpus=2 is neither slots=N nor devices=LIST"),
                        (["a devices=gpu"], "gpu"), ([], "hosts.txt: has no host")):
        process = ssh.start("errors", ssh.hosts(*lines), [])
        out = process.communicate(timeout=60)[0]
        check(process.returncode == 2 and says in out and out.count("error: ") == 1, f"{lines}: exit code {process.returncode}\n{out}")
    process = ssh.start("errors", [*ssh.hosts("127.0.0.1"), "--min_workers", "2"], [])
    out = process.communicate(timeout=60)[0]
    check(process.returncode == 2 and "--min_workers: 2 is not a number from 1 to the 1 workers of" in out, out)
    process = ssh.start("errors", [*ssh.hosts("127.0.0.1")[:2], "--ssh", "no-such-program"], [])
    out = process.communicate(timeout=60)[0]
    check(process.returncode == 127 and "on 127.0.0.1 could not be started" in out and "no-such-program" in out, out)
    # All machines are down: the job ends, and says why.
    process = ssh.start("errors", ssh.hosts("down"), [])
    out = process.communicate(timeout=60)[0]
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
        check_orphans(place, ssh, options)
    print("ostro launch ssh: the chain of ostro train with a machine that is down, a worker and a connection that are killed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
