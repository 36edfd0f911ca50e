"""The actor on a node: it runs one process, a worker or a step of a lab, and passes on what that prints. Ray carries this
class to the nodes by value (worker.py, step.py), so this package need not be installed there; it must not import it."""

import ctypes
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import threading
import time

_LONGEST_LINE = 2000  # characters
_LINES_A_SECOND = 100  # of one worker


class _Stream:
    """The lines of a pipe, but not more of them than a reader of a whole cluster's lines can use."""

    def __init__(self, name, pipe):
        self.name, self.pipe = name, pipe
        self.rest = b""
        self.second, self.lines, self.left_out, self.last = 0, 0, 0, None

    def _take(self, line):
        text = line.decode("utf-8", "replace").rstrip("\r")
        text = text if len(text) <= _LONGEST_LINE else text[:_LONGEST_LINE] + " ..."
        second = int(time.monotonic())
        out = []
        if second != self.second:
            out = self.flush()
            self.second, self.lines = second, 0
        self.lines += 1
        if self.lines > _LINES_A_SECOND:
            self.left_out += 1
            self.last = text
            return out
        return [*out, text]

    def flush(self):
        """What must be shown in place of the lines that were left out: how many there were, and the last."""
        if self.left_out == 0:
            return []
        out = ([f"({self.left_out - 1} lines left out)"] if self.left_out > 1 else []) + [self.last]
        self.left_out = 0
        return out

    def read(self):
        """The lines that have come; None at the end."""
        chunk = os.read(self.pipe.fileno(), 65536)
        if not chunk:
            return None
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        self.rest = self.rest[-4 * _LONGEST_LINE:]
        return [text for line in lines for text in self._take(line)]

    def end(self):
        return ([*self._take(self.rest)] if self.rest else []) + self.flush()


def _words(spec, address, folder):
    """The command of the process: a worker with its configuration in the folder, or what spec["command"] says."""
    if "command" in spec:
        return [spec["program"], *spec["command"]]
    config = spec.get("config_at")  # in an object store
    if config is None:
        config = os.path.join(folder, spec["config_name"])
        with open(config, "w", encoding="utf-8") as file:
            file.write(spec["config"])
    return [spec["program"], "worker", "--coordinator", spec["coordinator"], "--bind", address, "--config", config, *spec["words"]]


def _labels():
    """The labels of this node."""
    import ray
    this = ray.get_runtime_context().get_node_id()
    return next((node.get("Labels", {}) for node in ray.nodes() if node["NodeID"] == this), {})


class _Keys:
    """The credentials file of the process: it has no name in any folder, so it ends with this process, however that ends. `path` is where this user's
    processes open it. Whoever opens it meanwhile has the keys before or the new ones."""

    def __init__(self, text):
        self._lock = threading.Lock()  # renew comes on another thread than run
        self._number = self._file_of(text)
        self.path = f"/proc/{os.getpid()}/fd/{self._number}"

    def _file_of(self, text):
        in_memory = "/dev/shm"
        with tempfile.TemporaryFile(dir=in_memory if os.access(in_memory, os.W_OK) else None) as file:
            file.write(text.encode())
            file.flush()
            return os.dup(file.fileno())

    def renew(self, text):
        with self._lock:
            if self._number is None:
                return
            new = self._file_of(text)
            os.dup2(new, self._number, inheritable=False)
            os.close(new)

    def close(self):
        with self._lock:
            if self._number is not None:
                os.close(self._number)
                self._number = None


class Place:
    """One process's place in the cluster. Ray gives it to an actor, which is never restarted: a new process gets a new
    actor."""

    def __init__(self):
        self._process = None
        self._keys = None  # _Keys: its keys for an object store
        self._raylet = os.getppid()

    def _check_raylet(self):
        """Ends this process, and with it the worker, when the node's raylet is dead: Ray then takes the node for lost,
        and has the worker replaced. Ray's own check misses it where orphans get another parent than process 1."""
        if os.getppid() != self._raylet:
            if self._process is not None:
                self._process.kill()
            os._exit(1)

    def run(self, spec, variables, keys=None):
        """Runs the process, with these variables beside those of this one, and yields what happens: ("place", {...}), ("started", pid), ("stdout" or "stderr", lines),
        ("exit", code; negative: the signal), ("failed", text) when the program cannot be started, or ("unfit", text) when the node is not as asked. `keys`: the text of its credentials file for an object store, or
        None."""
        import ray
        address = ray.util.get_node_ip_address()
        yield ("place", {"address": address, "host": socket.gethostname(), "actor": os.getpid(),
                         "node": ray.get_runtime_context().get_node_id()})
        label, more = spec.get("slice_label"), []
        if label is not None:
            name = _labels().get(label)
            if not name:
                yield ("unfit", f"has no label {label} (--slice_label); `ray start --labels {label}=NAME` gives it one")
                return
            more = ["--slice", name]
        with tempfile.TemporaryDirectory(prefix="ostro-") as folder:
            try:
                if keys is not None:
                    self._keys = _Keys(keys)
                    variables = variables | {"AWS_SHARED_CREDENTIALS_FILE": self._keys.path}
                self._process = self._start(_words(spec, address, folder) + more, spec, variables)
            except OSError as error:
                yield ("failed", f"{spec['program']}: {error.strerror}")
                return
            yield ("started", self._process.pid)
            streams = [_Stream("stdout", self._process.stdout), _Stream("stderr", self._process.stderr)]
            with selectors.DefaultSelector() as selector:
                for stream in streams:
                    selector.register(stream.pipe, selectors.EVENT_READ, stream)
                while selector.get_map():
                    self._check_raylet()
                    for key, _ in selector.select(timeout=0.2):
                        lines = key.data.read()
                        if lines is None:
                            selector.unregister(key.fileobj)
                            lines = key.data.end()
                        if lines:
                            yield (key.data.name, lines)
            while self._process.poll() is None:  # it has closed its streams, and goes on
                self._check_raylet()
                time.sleep(0.01)
            if self._keys is not None:
                self._keys.close()
            yield ("exit", self._process.returncode)

    def _start(self, words, spec, variables):
        libc, parent = ctypes.CDLL(None), os.getpid()

        def dies_with_actor():
            libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
            if os.getppid() != parent:
                os._exit(1)
            try:
                os.setpriority(os.PRIO_PROCESS, 0, 0)  # Ray lowers that of its workers, which only root can undo
            except OSError:
                pass

        folder = spec["folder"] if os.path.isdir(spec["folder"]) else None
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                cwd=folder, env=os.environ | variables, preexec_fn=dies_with_actor,
                                start_new_session=True)

    def renew(self, keys):
        """Puts other keys into the file, which the process reads again when a server says that those it has have expired."""
        try:
            if self._keys is not None:
                self._keys.renew(keys)
        except OSError as error:  # memory or the disk is full: the process has the keys before
            print(f"keys were not renewed: {error}", flush=True)

    def signal(self, number):
        """Sends a signal to the process, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)
