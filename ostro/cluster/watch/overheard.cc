#include "ostro/cluster/watch/overheard.h"

#include <unistd.h>

#include <utility>

namespace ostro::cluster {
namespace {

constexpr size_t kMostLastWords = 600;  // bytes

}  // namespace

Overheard::Overheard(Overheard&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), words_(std::move(other.words_)) {}

Overheard& Overheard::operator=(Overheard&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(words_, other.words_);
  return *this;
}

Overheard::~Overheard() {
  if (fd_ >= 0) ::close(fd_);
}

void Overheard::read(const std::function<void(std::string_view)>& also) {
  char bytes[64 << 10];  // what a pipe holds, so that lines of several workers are not mixed
  // One that writes all the time must not keep this process from everything else.
  constexpr int kMostReads = 16;
  for (int i = 0; fd_ >= 0 && i < kMostReads; ++i) {
    const ssize_t n = ::read(fd_, bytes, sizeof bytes);
    if (n <= 0) return;
    // If it cannot be passed on, it is still kept.
    (void)!::write(STDERR_FILENO, bytes, static_cast<size_t>(n));
    if (also) also({bytes, static_cast<size_t>(n)});
    words_.append(bytes, static_cast<size_t>(n));
    if (words_.size() > kMostLastWords) words_.erase(0, words_.size() - kMostLastWords);
  }
}

std::string Overheard::last_words() const {
  if (fd_ < 0) return "what it said is above";
  std::string line;
  for (const char c : words_) {
    const bool space = c == ' ' || c == '\n' || c == '\r';
    if (!space)
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  }
  if (!line.empty() && line.back() == ' ') line.pop_back();
  return line.empty() ? "it said nothing" : "its last words: " + line;
}

}  // namespace ostro::cluster
