#include "ostro/experiment/plan/products.h"

#include <fmt/format.h>

#include "ostro/experiment/plan/declared.h"
#include "ostro/io/files/below.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {
namespace {

using config::Node;

// A plan may come from a stranger: what it has written stays below its folder.
Result<std::string> read_folder(const Node& map, const char* key) {
  const Node* out = map.find("out");
  if (out == nullptr) return std::string();
  const std::string folder = out->kind == Node::Kind::kString ? io::clean_path(out->text) : "";
  if (io::stays_below(folder)) return folder;
  return plan_error(*out, fmt::format("{}.out: expected a folder below that of the plan, which the report or "
                                      "the pages have for themselves",
                                      key));
}

bool overlap(const std::string& a, const std::string& b) {
  return a == b || a.starts_with(b + "/") || b.starts_with(a + "/");
}

// The folder of a source's files, and what is named itself. Not the folder of the plan or one above: all is
// below that.
std::vector<std::string> source_places(const Plan& plan, const std::string& files) {
  const std::string path = io::absolute_path(io::join_path(plan.folder, files));
  const size_t wild = io::has_wildcard(path) ? path.find_first_of("*?[") : std::string::npos;
  std::vector<std::string> out;
  if (wild == std::string::npos) out.push_back(path);
  std::string folder =
      wild == std::string::npos ? io::parent_path(path) : path.substr(0, path.rfind('/', wild));
  const std::string own = io::absolute_path(plan.folder.empty() ? "." : plan.folder) + "/";
  if (!own.starts_with(folder + "/")) out.push_back(std::move(folder));
  return out;
}

// What is rewritten on every run must not meet what the lab keeps or reads.
Status check_apart(const Node& map, const char* key, const std::string& folder, const Plan& plan) {
  const Node* out = map.find("out");
  if (out == nullptr) return {};
  const std::string place = io::absolute_path(folder);
  for (const char* ending : {".lab", ".sanity.lab"}) {
    const std::string lab = io::absolute_path(io::join_path(plan.folder, plan.name + ending));
    if (overlap(place, lab) && place != lab + "/report" && place != lab + "/site")
      return plan_error(*out,
                        fmt::format("{}.out: {} meets {}{}, the folder of the lab, which has journal and "
                                    "outputs; name a folder beside it",
                                    key, out->text, plan.name, ending));
  }
  for (const Step& step : plan.steps) {
    if (step.kind->name != "source") continue;
    for (const Node& files : step.parameters.find("files")->items)
      for (const std::string& read : source_places(plan, files.text))
        if (overlap(place, read))
          return plan_error(*out,
                            fmt::format("{}.out: {} meets the files of the source {} ({}); name a folder "
                                        "beside them",
                                        key, out->text, step.name, files.text));
  }
  return {};
}

}  // namespace

std::string Plan::report_folder() const {
  if (sanity || !makes.report || makes.report->empty()) return io::join_path(directory(), "report");
  return io::join_path(folder, *makes.report);
}

std::string Plan::site_folder() const {
  if (sanity || !makes.site || makes.site->empty()) return io::join_path(directory(), "site");
  return io::join_path(folder, *makes.site);
}

Status read_products(const Node& root, Plan& plan) {
  const Node* report = root.find("report");
  if (report != nullptr) {
    const bool is_map = report->kind == Node::Kind::kMap;
    if (is_map) {
      RETURN_IF_ERROR(check_keys(*report, "report: ", {"paper", "out"}));
      ASSIGN_OR_RETURN(plan.makes.report, read_folder(*report, "report"));
    }
    const Node* paper = is_map ? report->find("paper") : report;
    if (paper != nullptr && (paper->kind != Node::Kind::kString || paper->text.empty()))
      return plan_error(*paper, "report: expected a file, or a map, as {paper: report.typ, out: report}");
    if (paper != nullptr) plan.report = paper->text;
  }
  const Node* site = root.find("site");
  if (report != nullptr) RETURN_IF_ERROR(check_apart(*report, "report", plan.report_folder(), plan));
  if (site == nullptr) return {};
  if (site->kind != Node::Kind::kMap)
    return plan_error(*site, "site: expected a map, as {out: site}; {} is for a folder beside the outputs");
  RETURN_IF_ERROR(check_keys(*site, "site: ", {"out"}));
  ASSIGN_OR_RETURN(plan.makes.site, read_folder(*site, "site"));
  RETURN_IF_ERROR(check_apart(*site, "site", plan.site_folder(), plan));
  const std::string pages = io::absolute_path(plan.site_folder()),
                    text = io::absolute_path(plan.report_folder());
  if (pages == text)
    return plan_error(*site, "site.out: is the folder of the report; give the pages one of their own");
  if (overlap(pages, text))
    return plan_error(*site,
                      fmt::format("site.out: {} and the folder of the report, {}, lie in each other; give "
                                  "the pages one of their own",
                                  plan.site_folder(), plan.report_folder()));
  return {};
}

}  // namespace ostro::lab
