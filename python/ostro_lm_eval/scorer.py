"""A process `ostro score` that answers requests: one JSON object a line in, one a line out."""
import json
import os
import subprocess
import threading


class ScorerError(RuntimeError):
    """The program ended, or could not answer a request."""


class Scorer:
    """`ostro`: the program; `arguments`: further words for `ostro score`. Use as a context manager, or close()."""

    def __init__(self, checkpoint, ostro="ostro", arguments=()):
        command = [os.fspath(ostro), "score", "--checkpoint", os.fspath(checkpoint), *map(str, arguments)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # its errors are seen

    def ask(self, requests):
        """Yields the answer to each request, in order. All are sent at once, so that the program can batch them."""
        lines = [json.dumps(request) + "\n" for request in requests]
        sender = threading.Thread(target=self._send, args=(lines,), daemon=True)
        sender.start()
        for request in requests:
            line = self._process.stdout.readline()
            if not line:
                raise ScorerError(f"ostro score ended with exit code {self._process.wait()}")
            answer = json.loads(line)
            if "error" in answer:
                raise ScorerError(f"{answer['error']} (request {json.dumps(request)[:400]})")
            yield answer
        sender.join()

    def _send(self, lines):
        try:
            # One write of many lines: each that the program reads is answered as one batch.
            self._process.stdin.write("".join(lines).encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # ask() sees the end of the answers

    def close(self):
        if self._process.poll() is None:
            self._process.stdin.close()
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
