// ostro watch
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <optional>

#include "ostro/cli/main/commands.h"
#include "ostro/cli/run/watch_server.h"
#include "ostro/http/server.h"
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

page::History history_of(io::FileSystem& fs, const std::string& path, int columns) {
  const auto chain = chain::read_chain(fs, io::join_path(path, chain::kChainFile));
  if (!chain.ok()) return {};  // a run that waits for its workers has none yet
  const auto bins = 2 * static_cast<size_t>(std::max(columns, 40));
  auto history = page::read_history(fs, path, *chain, bins);
  return history.ok() ? std::move(*history) : page::chain_history(*chain, bins);
}

// Until the run ends, or a signal comes. The last picture stays on the screen.
Status watch_here(const Context& context, const std::string& path, bool ascii) {
  const run::StopSignals signals;
  Waits waits;
  const bool is_terminal = ::isatty(STDOUT_FILENO) != 0;
  Pace pace(is_terminal ? std::chrono::milliseconds(1000) : std::chrono::milliseconds(10'000));
  std::string last;
  int64_t told = -1;
  {
    std::optional<OtherScreen> screen;
    while (!signals.stop_requested() && !stdout_closed()) {
      const auto begin = Pace::Clock::now();
      ASSIGN_OR_RETURN(const run::RunStatus status, run::read_status(context, path));
      const page::Terminal terminal = stdout_terminal(ascii);
      const page::History history = history_of(context.fs, path, terminal.columns);
      last = is_terminal ? watch_screen(status, history, terminal, rows_of_stdout())
                         : watch_line(status, history);
      if (!may_go_on(status)) break;
      if (is_terminal) {
        if (!screen) screen.emplace();
        RETURN_IF_ERROR(screen->draw(last));
      } else if (status.step != told) {
        told = status.step;
        RETURN_IF_ERROR(write_stdout(last));
      }
      pace.drawn(begin, Pace::Clock::now());
      waits.for_time(pace.left(Pace::Clock::now()));
    }
  }
  return is_terminal || !signals.stop_requested() ? write_stdout(last) : Status();
}

// Until a signal comes.
Status serve(const Context& context, const std::string& path, const std::string& listen) {
  ASSIGN_OR_RETURN(const http::Address address, http::parse_address(listen));
  if (const auto there = run::read_status(context, path); !there.ok()) return there.error();
  std::string token;
  if (!address.is_loopback()) {
    token = http::new_token();
  }
  const run::StopSignals signals;
  Waits waits;
  WatchServer pages(context, path, token);
  ASSIGN_OR_RETURN(const auto server, http::Server::start(address, [&](const http::Request& request) {
                     return pages.answer(request);
                   }));
  RETURN_IF_ERROR(write_stdout(fmt::format("http://{}/{}\n", host_and_port(address.host, server->port()),
                                           token.empty() ? "" : "?token=" + token)));
  while (!signals.stop_requested()) waits.for_signal();
  return {};
}

}  // namespace

int watch_command(Args args) {
  std::string path, listen;
  bool ascii = false;
  args.summary(
      "Shows a run while it goes on: state, speed, losses. Reads files only, so the run is not disturbed.\n"
      "In a terminal until the run ends or Ctrl-C; with --listen in browsers until Ctrl-C.");
  args.positional("RUN", &path, "run directory");
  args.option(
      "--listen", &listen, "HOST:PORT",
      "serve the run's page there, as 127.0.0.1:8080 (port 0: one that is free), and print its address; "
      "/facts.json is what ostro status --json prints, /metrics is for Prometheus. Other machines need the "
      "token in the printed "
      "address; it is sent without encryption");
  args.flag("--ascii", &ascii, "use no character beyond ASCII, as where the locale has no UTF-8");
  if (const auto code = args.parse()) return *code;
  return exit_after(listen.empty() ? watch_here(args.context(), path, ascii)
                                   : serve(args.context(), path, listen));
}

}  // namespace ostro::cli
