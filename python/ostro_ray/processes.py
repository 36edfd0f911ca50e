"""Child processes that die with their parent."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)  # loaded here: between fork and exec nothing should be looked for


def dies_with(parent):
    """For Popen's preexec_fn: the child is killed when the thread that starts it ends, and so when the process
    `parent` does, however that ends."""
    def in_child():
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it had ended before
            os._exit(1)
    return in_child
