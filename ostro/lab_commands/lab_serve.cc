#include "ostro/lab_commands/lab_serve.h"

#include <fmt/format.h>

#include "ostro/http/server.h"
#include "ostro/lab/drive/driver.h"
#include "ostro/lab_commands/site_server.h"
#include "ostro/run/notice/signals.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/shared/waits.h"
#include "ostro/site/site.h"

namespace ostro::cli {
namespace {

// The options that both commands have.
void add_options(Args& args, std::string& file, site::SiteRequest& request) {
  args.positional("FILE", &file, "the plan");
  args.flag("--measured", &request.measured,
            "with sessions and seconds, which are other ones wherever the lab was done");
  args.option("--board", &request.boards, "DIR", "boards (ostro lab board) that have a page, too");
}

Status write_site(const Context& context, const std::string& file, const std::string& out,
                  const site::SiteRequest& request) {
  ASSIGN_OR_RETURN(const lab::Plan plan, lab::read_plan(context.fs, file));
  ASSIGN_OR_RETURN(const lab::LabState state, lab::look_at(context, plan));
  ASSIGN_OR_RETURN(const site::Site made, site::write_site(context, plan, state, request, out));
  return write_stdout(
      fmt::format("{}: {} files; {}/index.html is the first page\n", out, made.files, out) +
      (made.missing.empty() ? "" : fmt::format("the paper itself is not there: {}\n", made.missing)));
}

// Until a signal comes.
Status serve(const Context& context, const std::string& file, const std::string& listen,
             const site::SiteRequest& request) {
  ASSIGN_OR_RETURN(const http::Address address, http::parse_address(listen));
  if (const auto plan = lab::read_plan(context.fs, file); !plan.ok()) return plan.error();
  const run::StopSignals signals;
  Waits waits;
  const SiteServer::Make make = [&](const std::string& folder) -> Result<bool> {
    ASSIGN_OR_RETURN(const lab::Plan plan, lab::read_plan(context.fs, file));
    ASSIGN_OR_RETURN(const lab::LabState state, lab::look_at(context, plan));
    const auto made = site::write_site(context, plan, state, request, folder);
    if (!made.ok()) return made.error();
    return state.is_done();
  };
  ASSIGN_OR_RETURN(SiteServer pages,
                   SiteServer::create(context.fs, make, address.is_loopback() ? "" : http::new_token()));
  ASSIGN_OR_RETURN(const auto server, http::Server::start(address, [&](const http::Request& request) {
                     return pages.answer(request);
                   }));
  RETURN_IF_ERROR(write_stdout(
      fmt::format("http://{}{}\n", host_and_port(address.host, server->port()), pages.first_path())));
  while (!signals.stop_requested()) waits.for_signal();
  return {};
}

}  // namespace

int lab_site(Args args) {
  std::string file, out;
  site::SiteRequest request;
  args.summary(
      "Writes pages about a lab, finished or not: steps, runs beside each other, each run, two runs "
      "compared, "
      "data, and\n"
      "the report of a finished lab. They open from a folder and ask for nothing outside of it. A script "
      "beside them\n"
      "sorts, zooms, compares and checks hash chains; all texts and figures are there without it.");
  add_options(args, file, request);
  args.option("--out", &out, "DIR", "the folder to write", Args::kRequired);
  if (const auto code = args.parse()) return *code;
  return exit_after(write_site(args.context(), file, out, request));
}

int lab_serve(Args args) {
  std::string file, listen = "127.0.0.1:0";
  site::SiteRequest request;
  args.summary(
      "Serves the pages of a lab (ostro lab site) to browsers until Ctrl-C, and prints their address. They "
      "are made anew\n"
      "as the lab goes on. It only reads the lab.");
  add_options(args, file, request);
  args.option(
      "--listen", &listen, "HOST:PORT",
      "where (default 127.0.0.1 and a port that is free). Other machines need the token in the printed "
      "address; it is sent without encryption");
  if (const auto code = args.parse()) return *code;
  return exit_after(serve(args.context(), file, listen, request));
}

}  // namespace ostro::cli
