#include "ostro/lab_commands/lab_serve.h"

#include <fmt/format.h>

#include <map>
#include <memory>

#include "ostro/lab/drive/live_lab.h"
#include "ostro/lab_commands/serve_pages.h"
#include "ostro/shell/shared/terminal.h"
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

// The site as it was made last, with what it was made of: a state refers to its plan.
struct MadeSite {
  lab::Plan plan;
  lab::LiveLab lab;
  site::Site site;
  std::map<std::string, std::string> asked = {};  // steps that browsers asked for, by the file's name
};

constexpr size_t kMostAsked = 64;  // of them; a step of a large batch takes seconds to read

// A file of data that the site does not have: one step of a run.
Result<std::optional<std::string>> asked_step(const Context& context, MadeSite& made, bool texts,
                                              const std::string& name) {
  if (const auto known = made.asked.find(name); known != made.asked.end())
    return std::optional(known->second);
  ASSIGN_OR_RETURN(std::optional<std::string> script,
                   site::batch_step_script(context, made.plan, made.lab.state, made.site, texts, name));
  if (made.asked.size() >= kMostAsked) made.asked.clear();
  if (script) made.asked[name] = *script;
  return script;
}

// Until a signal comes.
Status serve(const Context& context, const std::string& file, const std::string& listen,
             site::SiteRequest request) {
  if (const auto plan = lab::read_plan(context.fs, file); !plan.ok()) return plan.error();
  std::unique_ptr<MadeSite> last;
  const SiteServer::Make make = [&](const std::string& folder) -> Status {
    ASSIGN_OR_RETURN(lab::Plan plan, lab::read_plan(context.fs, file));
    auto next = std::make_unique<MadeSite>(MadeSite{std::move(plan), {}, {}, {}});
    ASSIGN_OR_RETURN(next->lab, lab::look_live(context, next->plan));
    request.live = &next->lab;
    ASSIGN_OR_RETURN(next->site, site::write_site(context, next->plan, next->lab.state, request, folder));
    last = std::move(next);
    return {};
  };
  return serve_pages(context, listen, make,
                     [&](const std::string& name) -> Result<std::optional<std::string>> {
                       if (!last) return std::optional<std::string>();
                       return asked_step(context, *last, request.texts, name);
                     });
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
      "as the lab goes on, say what runs, and have each step's batch when somebody asks for it. It only "
      "reads "
      "the lab.");
  add_options(args, file, request);
  args.option(
      "--listen", &listen, "HOST:PORT",
      "where (default 127.0.0.1 and a port that is free). Other machines need the token in the printed "
      "address; it is sent without encryption");
  if (const auto code = args.parse()) return *code;
  return exit_after(serve(args.context(), file, listen, request));
}

}  // namespace ostro::cli
