#include "ostro/cluster/watch/kept_output.h"

#include <fmt/format.h>

#include <ctime>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/utc_text.h"

namespace ostro::cluster {
namespace {

constexpr size_t kMostOfLine = 16 << 10;  // a longer one is cut into several

// The text without sequences that begin with escape, and without other control characters but tabs.
std::string plain(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      if (i + 1 < text.size() && text[i + 1] == '[') ++i;
      // Parameters end with a letter.
      while (i + 1 < text.size() && (text[i + 1] < '@' || text[i + 1] > '~')) ++i;
      ++i;
    } else if (static_cast<unsigned char>(text[i]) >= 0x20 || text[i] == '\t') {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

KeptOutput::KeptOutput(io::FileSystem& fs, std::string path, int64_t most)
    : path_(std::move(path)), file_(fs, path_, most) {}

void KeptOutput::add(int64_t pid, std::string_view bytes) {
  for (const char c : bytes) {
    if (c == '\n' || line_.size() >= kMostOfLine) line(pid);
    if (c == '\n') continue;
    // What follows is drawn over what was there, but a line may also end with "\r\n", as those of ssh do.
    if (c == '\r') {
      drawn_over_ = true;
      continue;
    }
    if (std::exchange(drawn_over_, false)) line_.clear();
    line_ += c;
  }
}

void KeptOutput::end(int64_t pid) { line(pid); }

void KeptOutput::line(int64_t pid) {
  const std::string text = plain(std::exchange(line_, ""));
  drawn_over_ = false;
  if (text.empty()) return;
  const Status kept = file_.append(fmt::format("{} {} {}\n", utc_text(std::time(nullptr)), pid, text));
  if (!kept.ok() && !std::exchange(failed_, true))
    log_warning(fmt::format("{}: what workers write is not kept: {}", path_, kept.error().message()));
  if (kept.ok()) failed_ = false;
}

}  // namespace ostro::cluster
