// Sandbox: runs a program that sees only declared files: bubblewrap (the program bwrap) where it works, else
// a folder of links. Both have the same paths: files and folders below the current folder, "out" to write to.
// Private to the sub-room.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"

namespace ostro::lab {

struct SandboxedRun {
  std::vector<std::string> words;            // the program, found on the fixed PATH, and its words
  std::map<std::string, std::string> shown;  // path below the current folder -> what is there, read only
  std::string out;                           // the folder that is "out"
  std::string scratch;                       // a folder for the links where there is no sandbox
};

// Whether bubblewrap works here; the error says why not. It is tried once in a process.
Status sandbox_works();

// Runs the program to its end: without network, with a fixed environment (PATH, HOME=/tmp, LANG=C.UTF-8,
// TZ=UTC), a /tmp that goes away, and the system's programs and libraries (/usr, /etc/alternatives). Nothing
// else is there, and nothing but "out" and /tmp can be written. Without bubblewrap network and other files
// are there, too; files that are written beside "out" are an error. Errors: how the program ended, with the
// beginning of what it said.
Status run_sandboxed(io::FileSystem& fs, const SandboxedRun& run);

}  // namespace ostro::lab
