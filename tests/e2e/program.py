"""The program in a folder of its own, for tests that look at what it says and at its exit status."""
import os
import pathlib
import subprocess
import sys


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


class Program:
    def __init__(self, ostro, folder):
        self.ostro, self.folder = str(pathlib.Path(ostro).resolve()), pathlib.Path(folder)

    def run(self, *words, code=0, **environment):
        done = subprocess.run([self.ostro, *words], cwd=self.folder, capture_output=True, text=True, check=False,
                              env={**os.environ, **environment})
        check(done.returncode == code, f"{' '.join(words)}: exit {done.returncode}, not {code}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr
