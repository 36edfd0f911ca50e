// raise_open_files: lets this process have as many open files and connections as the system allows it.
#pragma once

namespace ostro {

// The most that raise_open_files() asks for. Programs that this process starts get the same limit, and some
// of them look at every number below it.
inline constexpr long kMostOpenFiles = 65'536;

// Raises the soft limit of open files of this process to its hard limit, to kMostOpenFiles at most; never
// lowers it. Does nothing if the system does not let it. Any thread.
void raise_open_files();

}  // namespace ostro
