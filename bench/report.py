"""What the benchmark modules share: a report that grows line by line, the machine, and small statistics."""
import contextlib, datetime, os, pathlib, platform, re, statistics, subprocess, sys, tempfile

from results import Results, table

HERE = pathlib.Path(__file__).resolve().parent


def spread(values, digits):
    """Median and range, "1.23 (1.10-1.40)"."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def cpu_name():
    """With the widest instructions that matter here: the name alone may stand for several machines."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    widest = next((w for w in ("amx_bf16", "avx512_bf16", "avx512f", "avx2") if f" {w} " in text), "neither AVX-512 nor AVX2")
    name = re.search(r"model name\s*: (.*)", text)[1]
    return f"{name} with {widest}"


def has_bf16():
    """Whether the processor has instructions for products of bf16."""
    return "bf16" in pathlib.Path("/proc/cpuinfo").read_text()


def has_vnni():
    """Whether the processor has the instructions for products of int8 of AVX-512."""
    return "avx512_vnni" in pathlib.Path("/proc/cpuinfo").read_text()


def mkl_shim(folder):
    """On AMD a library to preload, without which MKL chooses its slower kernels there; elsewhere None."""
    if "AuthenticAMD" not in pathlib.Path("/proc/cpuinfo").read_text():
        return None
    shim = pathlib.Path(folder) / "libmklintel.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, HERE / "peers/mkl_intel.c"], check=True)
    return shim


class Bench:
    """The report, and what every measurement needs: programs, environments, a scratch folder. `command` made it."""

    def __init__(self, benches, threads, quick, out, command):
        self.benches, self.threads, self.quick = pathlib.Path(benches).resolve(), threads, quick
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ostro_bench_"))
        self.lines, self.failed, self.goals = [], [], []
        self.results, self.command = Results(out, f"{cpu_name()}, {threads} threads"), command
        self.any_failed = False
        self.env = dict(os.environ, OSTRO_CACHE_DIR=str(self.folder / "kernels"))
        self.peer_env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=str(self.folder / "inductor"))
        self.shim_env = dict(self.peer_env)
        shim = mkl_shim(self.folder)
        if shim:
            self.shim_env["LD_PRELOAD"] = str(shim)

    @contextlib.contextmanager
    def section(self, title):
        """What is said inside becomes that section of the results, in place of an earlier one of the same title."""
        self.lines, self.failed, self.goals = [], [], []
        load = os.getloadavg()[0]
        print(f"## {title}", flush=True)
        yield
        self.any_failed |= bool(self.failed)
        made = f"{self.origin()}; load average before {load:.1f}, behind {os.getloadavg()[0]:.1f}."
        self.results.put(title, made, self.lines, self.goals, self.failed, self.quick)

    def say(self, line=""):
        self.lines.append(line)
        print(line, flush=True)

    def table(self, head, rows):
        for line in table(head, rows):
            self.say(line)

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

    def origin(self):
        commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, cwd=HERE,
                                check=False).stdout.strip()
        compiler = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
        return (f"{datetime.date.today()}, commit {commit}, `{self.command}`; Linux {platform.release()}, {compiler}, "
                f"Python {platform.python_version()}")
