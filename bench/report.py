"""What the benchmark modules share: a report that grows line by line, the machine, and small statistics."""
import datetime, os, pathlib, platform, re, statistics, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent


def spread(values, digits):
    """Median and range, "1.23 (1.10-1.40)"."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def cpu_name():
    return re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())[1]


def mkl_shim(folder):
    """On AMD a library to preload, without which MKL chooses its slower kernels there; elsewhere None."""
    if "AuthenticAMD" not in pathlib.Path("/proc/cpuinfo").read_text():
        return None
    shim = pathlib.Path(folder) / "libmklintel.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, HERE / "peers/mkl_intel.c"], check=True)
    return shim


class Bench:
    """The report, and what every measurement needs: programs, environments, a scratch folder."""

    def __init__(self, benches, threads, quick):
        self.benches, self.threads, self.quick = pathlib.Path(benches).resolve(), threads, quick
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ostro_bench_"))
        self.lines, self.failed, self.goals = [], [], []
        self.env = dict(os.environ, OSTRO_CACHE_DIR=str(self.folder / "kernels"))
        self.peer_env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=str(self.folder / "inductor"))
        self.shim_env = dict(self.peer_env)
        shim = mkl_shim(self.folder)
        if shim:
            self.shim_env["LD_PRELOAD"] = str(shim)

    def say(self, line=""):
        self.lines.append(line)
        print(line, flush=True)

    def table(self, head, rows):
        for row in [head, ["---"] * len(head), *rows]:
            self.say("| " + " | ".join(map(str, row)) + " |")
        self.say()

    def goal(self, case, goal, seen, held, note=""):
        """A row of the table of goals; `held` is a bool, or None where it could not be measured here."""
        self.goals.append([case, goal, seen, {True: "yes", False: "no", None: "not run"}[held], note])

    def start_file(self, size, steps=40):
        """The weights and batches of a size, more than any case takes; made once."""
        path = self.folder / f"{size}.safetensors"
        if not path.exists():
            subprocess.run([sys.executable, HERE / "peers/start_file.py", "--size", size, "--steps", str(steps), "--out",
                            path], check=True)
        return path

    def tool(self, title, command, env=None):
        """A program's output as it is."""
        self.say(f"### {title}")
        self.say()
        self.say("```")
        for line in subprocess.run([str(w) for w in command], capture_output=True, text=True, check=True,
                                   cwd=self.folder, env=env or self.env).stdout.splitlines():
            self.say(line)
        self.say("```")
        self.say()

    def head(self):
        commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, cwd=HERE,
                                check=False).stdout.strip()
        compiler = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
        return (f"{datetime.date.today()}, commit {commit}, {cpu_name()}, {self.threads} threads, Linux "
                f"{platform.release()}, {compiler}, Python {platform.python_version()}; load average before: "
                f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
