// run_program: runs another program, such as a C compiler, to its end.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ostro/base/error.h"

namespace ostro {

// Runs words[0], found on PATH, without input. Returns what it wrote to standard output and standard error.
// Errors: it could not start, was killed, or ended with another status than 0; the message has the beginning
// of its output. Its status is not known, which is an error, where this process ignores SIGCHLD.
Result<std::string> run_program(const std::vector<std::string>& words);

// What a program is given, and how long it may take.
struct ProgramCall {
  std::vector<std::string> words;  // the program, found on PATH, and its arguments; no shell reads them
  std::string input;               // its standard input
  // When it has passed, the program and those that it started are killed. They are a process group of their
  // own, so that signals of a terminal do not reach them.
  std::optional<std::chrono::milliseconds> limit;
  // Asked about 100 times a second, in this thread; true: they are killed, too.
  std::function<bool()> stop = {};
  // Gets the status with which the program ended by itself; nothing where it did not, or that is not known.
  std::optional<int>* status = nullptr;
};
// The same for such a call. Errors: also that the limit has passed, and kBusy that `stop` wanted its end.
Result<std::string> run_program(const ProgramCall& call);

// The path of the program that this process runs, for those that it starts. Errors: kIo without /proc.
Result<std::string> own_path();

// The file that holds this code: the program, or in a process of Python the library of the module.
Result<std::string> code_path();

}  // namespace ostro
