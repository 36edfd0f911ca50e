"""Loads the extension module, where this machine and this Python can."""
import pathlib
import sys

# As the program checks (ostro/cli/main/processor_check.cc), by the names of Linux.
_NEEDED = {"pni": "SSE3", "ssse3": "SSSE3", "cx16": "CMPXCHG16B", "sse4_1": "SSE4.1", "sse4_2": "SSE4.2", "popcnt": "POPCNT",
           "avx": "AVX", "avx2": "AVX2", "fma": "FMA", "f16c": "F16C", "movbe": "MOVBE", "bmi1": "BMI1", "bmi2": "BMI2",
           "abm": "LZCNT"}


def missing_instructions(cpuinfo: str) -> "str | None":
    """The first instruction set that the text of /proc/cpuinfo lacks."""
    for line in cpuinfo.splitlines():
        if line.startswith("flags"):
            has = set(line.partition(":")[2].split())
            return next((name for flag, name in _NEEDED.items() if flag not in has), None)
    return None


def _check_machine() -> None:
    if sys.version_info < (3, 11):
        raise ImportError(f"this is Python {sys.version_info[0]}.{sys.version_info[1]}; the functions of ostro need Python "
                          "3.11 or newer (the command `ostro` runs with any)")
    missing = missing_instructions(pathlib.Path("/proc/cpuinfo").read_text())
    if missing:
        raise ImportError(f"this processor lacks {missing}; Ostro needs an x86-64-v3 processor, which has AVX2 and FMA "
                          "(Intel since Haswell, AMD since Excavator). In a virtual machine, give it the host's processor.")


_check_machine()

from ostro import _native  # noqa: E402

Error = _native.Error


def version() -> str:
    """What `ostro --version` prints."""
    return _native.version()
