// What a process writes to standard error: passed on as it comes, with its end kept.
#pragma once

#include <string>

namespace ostro::cluster {

// The reading end of a pipe, which does not block. Owns it. Not thread-safe.
class Overheard {
 public:
  Overheard() = default;  // of a process that writes where this one does
  explicit Overheard(int fd) : fd_(fd) {}
  Overheard(Overheard&& other) noexcept;
  Overheard& operator=(Overheard&& other) noexcept;
  ~Overheard();

  // Passes on what is there.
  void read();
  // "its last words: ...", the last of what it wrote, in one line; or that it wrote nothing, or wrote
  // elsewhere.
  std::string last_words() const;

 private:
  int fd_ = -1;
  std::string words_;  // the last of them
};

}  // namespace ostro::cluster
