"""A training program that does a step when it is told to (common.py, train_bench.cc), so that two of them take turns
step by step in one run: whatever else the machine does, both sides of a pair see nearly the same of it."""
import json, subprocess, time


class Stepper:
    """Starts `command` and its first step; `step()` does one more. `finish()` ends it and gives its last line."""

    def __init__(self, command, env):
        self.command = [str(word) for word in command]
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=env)
        self.losses = []
        self.first = self._line()

    def _line(self):
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"{' '.join(self.command)}: exit {self.process.wait()}\n"
                                   f"{self.process.stderr.read()[-3000:]}")
            if line.startswith("{"):
                answer = json.loads(line)
                if "loss" in answer:
                    self.losses.append(answer["loss"])
                return answer

    def step(self):
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        return self._line()

    def finish(self):
        self.process.stdin.close()
        last = self._line()
        self.process.wait()
        return last


def pairs(a, b, count):
    """`count` pairs of steps in alternating order: two lists of the steps' lines."""
    first, second = [], []
    for i in range(count):
        turns = ((a, first), (b, second))
        for stepper, lines in turns if i % 2 == 0 else turns[::-1]:
            # The side before may keep its threads spinning for a moment.
            time.sleep(0.02)
            lines.append(stepper.step())
    return first, second
