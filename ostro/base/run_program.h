// run_program: runs another program, such as a C compiler, to its end.
#pragma once

#include <string>
#include <vector>

#include "ostro/base/error.h"

namespace ostro {

// Runs words[0], found on PATH, without input. Returns what it wrote to standard output and standard error.
// Errors: it could not start, was killed, or ended with another status than 0; the message has the beginning
// of its output.
Result<std::string> run_program(const std::vector<std::string>& words);

// The path of the program that this process runs, for those that it starts. Errors: kIo without /proc.
Result<std::string> own_path();

// The file that holds this code: the program, or in a process of Python the library of the module.
Result<std::string> code_path();

}  // namespace ostro
