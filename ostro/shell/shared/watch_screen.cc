#include "ostro/shell/shared/watch_screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "ostro/chain/chain.h"
#include "ostro/io/files/path.h"
#include "ostro/run/notice/signals.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/shared/waits.h"
#include "ostro/shell/shared/watch_view.h"

namespace ostro::cli {
namespace {

int rows_of_stdout() {
  constexpr int kUsual = 24;
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : kUsual;
}

// The other screen of a terminal, where drawing leaves the reader's earlier output alone.
class OtherScreen {
 public:
  OtherScreen() { (void)write_stdout("\x1b[?1049h\x1b[?25l"); }
  ~OtherScreen() { (void)write_stdout("\x1b[?25h\x1b[?1049l"); }
  OtherScreen(const OtherScreen&) = delete;
  OtherScreen& operator=(const OtherScreen&) = delete;

  // Line after line over the old ones: a screen that was erased first would flicker.
  Status draw(const std::string& text) {
    std::string out = "\x1b[H";
    for (const char c : text) out += c == '\n' ? std::string("\x1b[K\n") : std::string(1, c);
    return write_stdout(out + "\x1b[J");
  }
};

}  // namespace

Status watch_until_end(bool ascii,
                       const std::function<Result<Picture>(const page::Terminal& terminal, int rows)>& look) {
  const run::StopSignals signals;
  Waits waits;
  const bool is_terminal = ::isatty(STDOUT_FILENO) != 0;
  Pace pace(is_terminal ? std::chrono::milliseconds(1000) : std::chrono::milliseconds(10'000));
  Picture last;
  std::optional<int64_t> told;
  {
    std::optional<OtherScreen> screen;
    while (!signals.stop_requested() && !stdout_closed()) {
      const auto begin = Pace::Clock::now();
      ASSIGN_OR_RETURN(last, look(stdout_terminal(ascii), rows_of_stdout()));
      if (!last.goes_on) break;
      if (is_terminal) {
        if (!screen) screen.emplace();
        RETURN_IF_ERROR(screen->draw(last.screen));
      } else if (told != last.progress) {
        told = last.progress;
        RETURN_IF_ERROR(write_stdout(last.line));
      }
      pace.drawn(begin, Pace::Clock::now());
      waits.for_time(pace.left(Pace::Clock::now()));
    }
  }
  if (!is_terminal && signals.stop_requested()) return {};
  return write_stdout(is_terminal ? last.screen : last.line);
}

page::History history_for(io::FileSystem& fs, const std::string& run_directory,
                          const page::Terminal& terminal) {
  return page::history_of(fs, run_directory, 2 * static_cast<size_t>(std::max(terminal.columns, 40)));
}

}  // namespace ostro::cli
