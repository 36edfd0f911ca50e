// shell, Folder: run the program in tests of the command line as a user does, in a folder of the test. Not
// thread-safe.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

namespace ostro::cli {

// The exit status of a command line, -1 when a signal ended it, and what it wrote to standard output.
struct Outcome {
  int code;
  std::string out;
};

// Runs a shell command line in which $OSTRO is the program, and waits for its end. Standard error goes to
// that of the test.
inline Outcome shell(const std::string& line) {
  FILE* pipe = popen(("OSTRO=" OSTRO_BINARY "; " + line).c_str(), "r");
  REQUIRE(pipe);
  std::string out;
  std::array<char, 4096> buffer;
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) out.append(buffer.data(), n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out};
}

// An empty folder for this process, which is removed with its content by the destructor.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("ostro_cli_test_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace ostro::cli
