"""The coordinator's process, which decides who is in the run."""

import asyncio
import json
import os
import signal
import tempfile

from ostro_ray.output import say
from ostro_ray.processes import dies_with

_MOST_UNREAD = 1 << 20  # bytes of what workers write


class Coordinator:
    """Starts `ostro coordinator` on this node, again when it is killed, and follows what it says.

    `spec` has the configuration's text: the file may be edited while the run goes on. The process has a session of its
    own: signals of the terminal reach the launcher alone, which passes the wish to stop on, once, by standard input."""

    def __init__(self, program, address, port, spec, words, secret):
        self._folder = tempfile.TemporaryDirectory(prefix="ostro-")
        path = spec.get("config_at")  # in an object store
        if path is None:
            path = os.path.join(self._folder.name, "config.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(spec["config"])
        self._command = [program, "coordinator", "--bind", address, "--stop_by_stdin", "--stderr_by_stdin", "--config", path, *words]
        self._environment = os.environ | {"OSTRO_JOB_SECRET": secret}
        self._host, self._port = address, port
        self._process, self._stopping, self.ending = None, False, False
        self.began = False  # an epoch has begun
        self.address = None  # HOST:PORT, once it listens
        self.ranks = {}  # (host, pid) -> rank, in the epoch that goes on
        self.refused = set()  # of (host, pid)
        self.silent = set()  # the same: workers that do not answer, and are not in the run any more
        self.listening = asyncio.Event()

    async def run(self):
        """Until it ends by itself: its exit status."""
        while True:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, "--port", str(self._port), stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE, env=self._environment, start_new_session=True,
                preexec_fn=dies_with(os.getpid()))
            if self._stopping:
                self._tell_stop()
            async for line in self._process.stdout:
                self._follow(json.loads(line))
            code = await self._process.wait()
            if code >= 0 or self.ending:
                return code
            # On the port that the workers know; its journal keeps the epochs' numbers rising.
            say(f"the coordinator was killed by signal {-code}; another takes its place")

    def _follow(self, event):
        if event["event"] == "listening":
            self._port = event["port"]
            host = f"[{self._host}]" if ":" in self._host else self._host
            self.address = f"{host}:{self._port}"
            self.listening.set()
        elif event["event"] == "epoch":
            self.began = True
            self.ranks = {(m["host"], m["pid"]): m["rank"] for m in event["members"]}
        elif event["event"] == "refused":
            self.refused.add((event["host"], event["pid"]))
        elif event["event"] == "silent":
            self.silent.add((event["host"], event["pid"]))

    def stop(self):
        """Has it ask the workers to save and to end; also one that takes its place."""
        if not self._stopping:
            self._stopping = True
            self._tell_stop()

    def _tell_stop(self):
        if self._process is not None and self._process.returncode is None:
            self._process.stdin.write(b"stop\n")

    def keep(self, worker, lines):
        """Has it keep what a worker, (host, pid), has written to standard error. While it is gone, or does not read, that is lost."""
        self._write("".join(f"said {worker[0]} {worker[1]} {line}\n" for line in lines))

    def gone(self, worker):
        """Tells it that the worker writes no more."""
        self._write(f"gone {worker[0]} {worker[1]}\n")

    def _write(self, text):
        if self._process is None or self._process.returncode is not None or self._process.stdin.is_closing():
            return
        if self._process.stdin.transport.get_write_buffer_size() < _MOST_UNREAD:
            self._process.stdin.write(text.encode("utf-8", "replace"))

    def end(self):
        """Has run() return."""
        self.ending = True
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
