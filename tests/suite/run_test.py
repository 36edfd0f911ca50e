#!/usr/bin/env python3
"""Runs one test for ctest: gives it the seed, measures what it costs and leaves a line about it.

  run_test.py --name NAME --budget SECONDS --timeout SECONDS --results DIR -- COMMAND...

The timeout is for an idle machine: the processes of the test together may use so many seconds of CPU time on every core. A
test that does nothing for as long by the clock is ended as well. The budget is CPU time on two cores of a common server processor, all processes of the test together. It is a size to
design for: a test that takes twice as much is named at the end of scripts/test.sh and fails nothing. Leaves
DIR/NAME.json: what, command, result, detail (the last line of its output that begins with "result: "), seed, size, cpu,
wall, budget, commit, date, machine.
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import seed  # noqa: E402


SKIPPED = 77  # what a test ends with that lacks something and says so
ENDED = 124  # the status of a test whose time was up


def machine():
    """The processor's name with the widest instructions that kernels use, and the number of cores."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    widest = next((w for w in ("amx_bf16", "avx512_bf16", "avx512f", "avx2") if f" {w} " in text), "no avx2")
    name = re.search(r"model name\s*: (.*)", text)
    return f"{name[1] if name else 'unknown'}, {widest}, {os.cpu_count()} cores"


def processes(session):
    """(pid, the fields of its stat that follow its name) of each process of a session."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if int(fields[3]) == session:
            yield int(stat.parent.name), fields


def cpu_seconds(session):
    """CPU time of the processes of a session, and of those that they waited for."""
    return sum(int(ticks) for _, fields in processes(session) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def signal_all(session, number):
    """Sends a signal to all processes of a session: what a test starts may have process groups of its own, as workers do."""
    for pid, _ in processes(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


class Limit:
    """Whether a test has used its CPU time, or hangs. It may use what all cores of an idle machine give in `timeout` seconds.
    A busy machine makes it longer by the clock, and does not end it: a test hangs when it used less than a fifth of a second
    of CPU time in `timeout` seconds by the clock."""

    def __init__(self, timeout, cores, now):
        self.timeout, self.most = timeout, timeout * cores
        self.used, self.moved_at = 0.0, now

    def reached(self, used, now):
        """What is reached, in words; None while the test may go on."""
        if used > self.most:
            return f"{used:.0f} s of CPU time, of {self.most} s"
        if used > self.used + 0.2:
            self.used, self.moved_at = used, now
        if now - self.moved_at > self.timeout:
            return f"{self.timeout} s without work"
        return None


def run(words, timeout):
    """(exit status, the detail it printed); what it prints goes through. Ends all it started when its limit is reached."""
    detail = ""
    # A session of its own: a test that hangs is ended with the programs it runs.
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as process:
        limit = Limit(timeout, os.cpu_count(), time.monotonic())

        def end(why):
            # First politely, so that what it started elsewhere is cleaned up; five seconds later for good.
            number = ways.pop(0) if len(ways) > 1 else ways[0]
            print(f"run_test: {number.name} after {why}", flush=True)
            signal.setitimer(signal.ITIMER_REAL, 5)
            signal_all(process.pid, number)

        def tick(_signal, _frame):
            why = "the first signal" if len(ways) == 1 else limit.reached(cpu_seconds(process.pid), time.monotonic())
            if why:
                end(why)
            else:
                signal.setitimer(signal.ITIMER_REAL, min(1, timeout / 4))

        ways = [signal.SIGTERM, signal.SIGKILL]
        signal.signal(signal.SIGALRM, tick)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _frame: end(signal.Signals(number).name))
        signal.setitimer(signal.ITIMER_REAL, min(1, timeout / 4))
        for line in process.stdout:
            sys.stdout.buffer.write(line)
            if line.startswith(b"result: "):
                detail = line[len(b"result: "):].decode(errors="replace").strip()
        process.wait()
        signal.setitimer(signal.ITIMER_REAL, 0)
    # What ends at a signal with success was not done.
    return (process.returncode if len(ways) > 1 else ENDED), detail


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", required=True)
    parser.add_argument("--budget", required=True, type=float)
    parser.add_argument("--timeout", required=True, type=int)
    parser.add_argument("--results", required=True, type=pathlib.Path)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()

    number, size = seed.seed(), seed.size()
    os.environ["OSTRO_TEST_SEED"], os.environ["OSTRO_TEST_SIZE"] = str(number), size
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"  # no test asks the machine that it runs on for its role
    print(f"{options.name}: seed {number}, size {size}; again: OSTRO_TEST_SEED={number} OSTRO_TEST_SIZE={size} "
          f"{' '.join(options.command)}", flush=True)
    begin = time.monotonic()
    status, detail = run(options.command, options.timeout)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu, wall = usage.ru_utime + usage.ru_stime, time.monotonic() - begin
    print(f"{options.name}: {cpu:.1f} s of CPU time, {wall:.1f} s by the clock, budget {options.budget:g} s", flush=True)

    options.results.mkdir(parents=True, exist_ok=True)
    line = dict(what=options.name, command=f"OSTRO_TEST_NAMES=^{options.name}$ scripts/test.sh",
                result={0: "pass", SKIPPED: "not run"}.get(status, f"FAIL, status {status}"), detail=detail, seed=number, size=size,
                cpu=round(cpu, 1), wall=round(wall, 1), budget=options.budget, commit=seed.commit() or "unknown",
                date=datetime.date.today().isoformat(), machine=machine())
    path = options.results / f"{options.name}.json"
    part = path.with_suffix(".part")
    part.write_text(json.dumps(line) + "\n", encoding="utf-8")
    os.replace(part, path)
    return status if status in (0, SKIPPED) else 1


if __name__ == "__main__":
    sys.exit(main())
