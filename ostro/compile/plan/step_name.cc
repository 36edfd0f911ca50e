// How the steps of a plan are called.
#include <fmt/format.h>

#include <algorithm>

#include "ostro/compile/plan/plan.h"

namespace ostro::compile {
namespace {

constexpr size_t kNamedOps = 5;

// Without the marks of rematerialisation regions.
std::string model_path(const std::string& scope) {
  std::string path;
  for (size_t begin = 0; begin < scope.size();) {
    const size_t end = std::min(scope.find('/', begin), scope.size());
    const std::string_view segment = std::string_view(scope).substr(begin, end - begin);
    if (!segment.starts_with("ckpt:")) path += fmt::format("{}{}", path.empty() ? "" : "/", segment);
    begin = end + 1;
  }
  return path;
}

// The longest path that all steps with one lie under.
std::string common_path(const Plan& plan) {
  std::string common;
  bool first = true;
  for (const Step& step : plan.steps) {
    const std::string path = model_path(step.scope);
    if (path.empty()) continue;
    if (first) common = path;
    first = false;
    while (path != common && !path.starts_with(common + "/")) {
      const size_t cut = common.rfind('/');
      if (cut == std::string::npos) return "";
      common.resize(cut);
    }
  }
  return common;
}

// The different ops in their order, casts only when there is nothing else.
std::string kinds_text(const std::vector<FusedOp>& ops) {
  std::vector<ir::OpKind> kinds;
  for (const FusedOp& op : ops)
    if (op.kind != ir::OpKind::cast && std::find(kinds.begin(), kinds.end(), op.kind) == kinds.end())
      kinds.push_back(op.kind);
  if (kinds.empty()) return ir::op_name(ir::OpKind::cast);
  std::string text;
  for (size_t i = 0; i < kinds.size() && i < kNamedOps; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : "+", ir::op_name(kinds[i]));
  if (kinds.size() > kNamedOps) text += fmt::format("+{} more", kinds.size() - kNamedOps);
  return text;
}

}  // namespace

const char* kind_name(StepKind kind) {
  switch (kind) {
    case StepKind::kCopy: return "copy";
    case StepKind::kOp: return "op";
    case StepKind::kKernel: return "kernel";
    case StepKind::kLoop: return "loop";
    case StepKind::kBranch: return "branch";
    case StepKind::kTiles: return "tiles";
  }
  return "?";
}

std::string ops_text(const std::vector<FusedOp>& ops) {
  std::string text;
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string path = model_path(ops[i].scope);
    const bool fresh = i == 0 || path != model_path(ops[i - 1].scope);
    if (i > 0) text += fresh ? "; " : ", ";
    if (fresh && !path.empty()) text += path + ": ";
    text += ir::op_name(ops[i].kind);
  }
  return text;
}

std::string step_name(const Step& step) {
  std::string path = model_path(step.scope), what;
  switch (step.kind) {
    case StepKind::kCopy: what = "copy"; break;
    case StepKind::kKernel:
      what = kinds_text(step.ops);
      for (size_t i = step.ops.size(); path.empty() && i-- > 0;) path = model_path(step.ops[i].scope);
      break;
    case StepKind::kLoop:
      what = step.attrs.i64("reverse", 0) != 0 ? "loop, reversed" : "loop";
      if (path.empty()) path = common_path(step.regions[0]);
      break;
    case StepKind::kBranch: what = "branch"; break;
    case StepKind::kTiles: what = "tiles of tokens"; break;
    case StepKind::kOp: what = ir::op_name(step.op); break;
  }
  for (const Step& epilogue : step.epilogues) what += fmt::format("+{}", ir::op_name(epilogue.op));
  return path.empty() ? what : path + " " + what;
}

}  // namespace ostro::compile
