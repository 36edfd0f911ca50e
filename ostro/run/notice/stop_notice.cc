#include "ostro/run/notice/stop_notice.h"

#include <unistd.h>

#include <atomic>
#include <string_view>

namespace ostro::run {
namespace {

constexpr int64_t kNone = -1;

// Read by handlers of signals, which get no argument.
std::atomic<int64_t> steps_done{kNone}, step_saved{kNone};
static_assert(std::atomic<int64_t>::is_always_lock_free);

// A text in memory of its own: a handler may not allocate.
class Line {
 public:
  Line& operator<<(std::string_view text) {
    for (const char c : text)
      if (size_ < sizeof text_) text_[size_++] = c;
    return *this;
  }
  Line& operator<<(int64_t number) {
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = static_cast<char>('0' + number % 10);
    while ((number /= 10) > 0 && at > 0);
    return *this << std::string_view(digits + at, sizeof digits - at);
  }
  void write() const { (void)!::write(STDERR_FILENO, text_, size_); }

 private:
  char text_[200];
  size_t size_ = 0;
};

}  // namespace

void note_progress(int64_t done, std::optional<int64_t> saved) {
  step_saved.store(saved.value_or(kNone), std::memory_order_relaxed);
  steps_done.store(done, std::memory_order_relaxed);
}

void forget_progress() { steps_done.store(kNone, std::memory_order_relaxed); }

void write_stop_notice(int to_kill) {
  const int64_t done = steps_done.load(std::memory_order_relaxed),
                saved = step_saved.load(std::memory_order_relaxed);
  if (done == kNone) return;
  Line line;
  if (::isatty(STDERR_FILENO) != 0) line << "\r\x1b[K";  // over the progress line and the terminal's "^C"
  if (to_kill > 0)
    line << "stopping after this step; " << (to_kill == 1 ? "once" : "twice") << " more to kill\n";
  else if (saved == kNone)
    line << "killed; no step is saved: the same command begins anew\n";
  else
    line << "killed; step " << saved << " is saved: the same command does "
         << (done > saved ? done - saved : 0) << " steps again\n";
  line.write();
}

}  // namespace ostro::run
