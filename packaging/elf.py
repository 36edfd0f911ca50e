"""What programs and libraries (ELF files) need: libraries, versions of the C library, and where they look for libraries."""
import pathlib
import re
import struct
import subprocess

# Of the C library and of gcc: every Linux with glibc has them, and they have to be those of the machine.
SYSTEM = {"ld-linux-x86-64.so.2", "libc.so.6", "libdl.so.2", "libgcc_s.so.1", "libm.so.6", "libpthread.so.0",
          "libresolv.so.2", "librt.so.1", "libutil.so.1"}


def run(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def needed(path):
    """Names of the libraries that the file itself asks for."""
    return re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", path))


def search_path(path):
    """The folders where it looks for them first (DT_RPATH or DT_RUNPATH), as they stand in the file."""
    return [folder for entry in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", run("readelf", "-d", path))
            for folder in entry.split(":")]


def libraries(path):
    """All libraries that the loader finds for the program here: name -> file. Exits when one is not found."""
    found = {}
    for line in run("ldd", path).splitlines():
        if "=>" not in line:
            continue
        name, where = (part.strip() for part in line.split("=>"))
        if "not found" in where:
            raise SystemExit(f"error: {path}: the library {name} is not found; run scripts/setup.sh, then build again")
        found[name] = pathlib.Path(where.split(" (")[0])
    return found


def defined(path):
    """Names of the functions that the file gives to others."""
    return set(re.findall(r" DF \.text\s+\S+\s+(?:\S+\s+)?(\S+)$", run("objdump", "-T", path), re.MULTILINE))


def too_new(path, limit, library="GLIBC"):
    """Symbols of the C library (or of GLIBCXX, libstdc++) that came after version `limit`, "2.34": name -> version."""
    def number(version):
        return [int(part) for part in version.split(".")]

    symbols = re.findall(rf"\*UND\*.*\({library}_(\d[\d.]*)\)\s+(\S+)", run("objdump", "-T", path))
    return {name: version for version, name in symbols if number(version) > number(limit)}


def ask_for_older(path, newer, older):
    """Lets the file ask for the version `older` of a library wherever it asks for `newer` (an entry of .gnu.version_r), so
    that it starts without that. It has to ask for the older one already. Functions of the newer version are then taken
    from whatever program or library has them."""
    data = bytearray(path.read_bytes())
    sections_at, = struct.unpack_from("<Q", data, 40)
    entry_size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, sections_at + i * entry_size) for i in range(count)]
    kind_verneed = 0x6ffffffe
    found = {}  # version -> place of its entry: hash, flags, index, name, next
    for section in (section for section in sections if section[1] == kind_verneed):
        names, at = sections[section[6]][4], section[4]
        for _ in range(section[7]):
            _, entries, _, first, following = struct.unpack_from("<HHIII", data, at)
            entry = at + first
            for _ in range(entries):
                name, further = struct.unpack_from("<II", data, entry + 8)
                found[data[names + name:data.index(0, names + name)].decode()] = entry
                entry += further
            at += following
    for place, size in ((0, 4), (8, 4)):
        data[found[newer] + place:found[newer] + place + size] = data[found[older] + place:found[older] + place + size]
    path.write_bytes(data)
