// Overheard: passes on the standard error of a process as it comes, and keeps the end of it.
#pragma once

#include <string>

namespace ostro::cluster {

// The reading end of a pipe, which does not block. Owns it. Not thread-safe.
class Overheard {
 public:
  Overheard() = default;  // of a process that shares this one's standard error
  explicit Overheard(int fd) : fd_(fd) {}
  Overheard(Overheard&& other) noexcept;
  Overheard& operator=(Overheard&& other) noexcept;
  ~Overheard();

  // Passes on the bytes that are there, to this process's standard error.
  void read();
  // The end of what the process wrote, in one line, for a message; or a remark that it wrote nothing, or
  // wrote directly to this process's standard error.
  std::string last_words() const;

 private:
  int fd_ = -1;
  std::string words_;  // the last of them
};

}  // namespace ostro::cluster
