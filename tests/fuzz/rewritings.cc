#include "rewritings.h"

#include <algorithm>

#include <fmt/format.h>

#include "ostro/compile/passes/pass.h"
#include "ostro/ir/rules/verify.h"
#include "ostro/ir/text/canonical_order.h"
#include "ostro/ir/text/text.h"

namespace ostro::fuzz {
namespace {

constexpr std::string_view kAllPasses = "all passes";

Status legal(const Rewriting& r) {
  const Status s = ir::verify(r.program);
  return s.ok() ? s : invalid_argument(fmt::format("{}: {}", r.name, s.error().message()));
}

}  // namespace

Result<std::vector<Rewriting>> rewritings(const ir::Program& program) {
  std::vector<Rewriting> list{{"canonical order", program}};
  ir::canonical_order(list[0].program.body);
  RETURN_IF_ERROR(legal(list[0]));
  for (const std::string policy : kRematPolicies) {
    runtime::CompileOptions options;
    options.remat = policy;
    list.push_back({fmt::format("{} (remat {})", kAllPasses, policy), program});
    const size_t all = list.size() - 1;
    for (const compile::PassInfo& pass : compile::pass_list()) {
      pass.run(list[all].program, options);
      list.push_back({fmt::format("pass {} (remat {})", pass.name, policy), program});
      pass.run(list.back().program, options);
      for (const Rewriting* r : {&list[all], &list.back()}) RETURN_IF_ERROR(legal(*r));
    }
  }
  return list;
}

std::vector<std::string> lone_policies(const std::vector<Rewriting>& rewritings) {
  std::vector<std::string> texts;
  for (const Rewriting& r : rewritings)
    if (r.name.starts_with(kAllPasses)) texts.push_back(ir::print(r.program));
  std::vector<std::string> lone;
  for (size_t i = 0; i < texts.size(); ++i)
    if (std::count(texts.begin(), texts.end(), texts[i]) == 1) lone.emplace_back(kRematPolicies[i]);
  return lone;
}

}  // namespace ostro::fuzz
