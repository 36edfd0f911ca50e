#include "ostro/experiment/plan/products.h"

#include <fmt/format.h>

#include "ostro/experiment/plan/declared.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {
namespace {

using config::Node;

// A plan may come from a stranger: what it has written stays below its folder.
bool is_inside(const std::string& folder) {
  return !folder.empty() && folder[0] != '/' && io::path_scheme(folder).empty() &&
         ("/" + folder + "/").find("/../") == std::string::npos;
}

Result<std::string> read_folder(const Node& map, const char* key) {
  const Node* out = map.find("out");
  if (out == nullptr) return std::string();
  const std::string folder = out->kind == Node::Kind::kString ? io::clean_path(out->text) : "";
  if (is_inside(folder) && folder != ".") return folder;
  return plan_error(*out, fmt::format("{}.out: expected a folder below that of the plan, which the report or "
                                      "the pages have for themselves",
                                      key));
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
  if (const Node* report = root.find("report"); report != nullptr) {
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
  if (site == nullptr) return {};
  if (site->kind != Node::Kind::kMap)
    return plan_error(*site, "site: expected a map, as {out: site}; {} is for a folder beside the outputs");
  RETURN_IF_ERROR(check_keys(*site, "site: ", {"out"}));
  ASSIGN_OR_RETURN(plan.makes.site, read_folder(*site, "site"));
  if (plan.makes.report && plan.report_folder() == plan.site_folder())
    return plan_error(*site, "site.out: is the folder of the report; give the pages one of their own");
  return {};
}

}  // namespace ostro::lab
