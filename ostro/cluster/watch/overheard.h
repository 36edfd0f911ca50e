// Overheard: passes on the standard error of a process as it comes, and keeps its last 600 bytes for
// messages. There are no errors: bytes that cannot be passed on are still kept.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace ostro::cluster {

// The reading end of a pipe, which does not block. Owns it. Not thread-safe.
class Overheard {
 public:
  Overheard() = default;  // for a process that writes to the standard error of this one; nothing to read
  explicit Overheard(int fd) : fd_(fd) {}
  Overheard(Overheard&& other) noexcept;
  Overheard& operator=(Overheard&& other) noexcept;
  ~Overheard();

  // Passes on the bytes that have come since the last call, to the standard error of this process and to
  // `also`, which may be empty. Returns at once.
  void read(const std::function<void(std::string_view)>& also);
  // The end of what the process wrote, in one line, for a message; or a remark that it wrote nothing, or
  // wrote directly to this process's standard error.
  std::string last_words() const;

 private:
  int fd_ = -1;
  std::string words_;  // the last bytes that it wrote
};

}  // namespace ostro::cluster
