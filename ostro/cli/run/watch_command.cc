// ostro watch
#include <fmt/format.h>

#include "ostro/cli/main/commands.h"
#include "ostro/cli/run/watch_server.h"
#include "ostro/http/server.h"
#include "ostro/io/files/path.h"
#include "ostro/lab_commands/lab_watch.h"
#include "ostro/run/notice/signals.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/shared/waits.h"
#include "ostro/shell/shared/watch_screen.h"
#include "ostro/shell/shared/watch_view.h"

namespace ostro::cli {
namespace {

// Until the run ends, or a signal comes.
Status watch_here(const Context& context, const std::string& path, bool ascii) {
  return watch_until_end(ascii, [&](const page::Terminal& terminal, int rows) -> Result<Picture> {
    ASSIGN_OR_RETURN(const run::RunStatus status, run::read_status(context, path));
    const page::History history = history_for(context.fs, path, terminal);
    return Picture{watch_screen(status, history, terminal, rows), watch_line(status, history),
                   may_go_on(status), status.step};
  });
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
      "Shows a run, or a lab, while it goes on: state, speed, losses; of a lab all steps and what runs. "
      "Reads "
      "files only,\nso nothing is disturbed. In a terminal until it ends or Ctrl-C; with --listen in "
      "browsers "
      "until Ctrl-C.");
  args.positional("RUN", &path, "run directory, or the plan of a lab (a file)");
  args.option(
      "--listen", &listen, "HOST:PORT",
      "serve the page there, as 127.0.0.1:8080 (port 0: one that is free), and print its address; of a run "
      "/facts.json is what ostro status --json prints, /metrics is for Prometheus. Other machines need the "
      "token in the printed "
      "address; it is sent without encryption");
  args.flag("--ascii", &ascii, "use no character beyond ASCII, as where the locale has no UTF-8");
  if (const auto code = args.parse()) return *code;
  const auto info = args.context().fs.stat(path);
  if (info.ok() && !info->is_directory) return exit_after(watch_lab(args.context(), path, listen, ascii));
  if (const auto lab = args.context().fs.exists(io::join_path(path, "journal.jsonl")); lab.ok() && *lab)
    return report_error(invalid_argument(fmt::format(
        "{}: is the folder of a lab; name its plan, which lies beside it: ostro watch PLAN.yaml", path)));
  return exit_after(listen.empty() ? watch_here(args.context(), path, ascii)
                                   : serve(args.context(), path, listen));
}

}  // namespace ostro::cli
