"""The program in a folder of its own, for tests that look at what it says and at its exit status; and `check` and `kill_all` for all tests."""
import os
import pathlib
import subprocess
import sys


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def kill_all(processes):
    """Kills those that run, and waits for their ends; None stands for one that was not started."""
    for process in processes:
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()


class Program:
    def __init__(self, ostro, folder):
        self.ostro, self.folder = str(pathlib.Path(ostro).resolve()), pathlib.Path(folder)

    def run(self, *words, code=0, **environment):
        done = subprocess.run([self.ostro, *words], cwd=self.folder, capture_output=True, text=True, check=False,
                              env={**os.environ, **environment})
        check(done.returncode == code, f"{' '.join(words)}: exit {done.returncode}, not {code}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr
