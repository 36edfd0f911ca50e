#include "rewritings.h"

#include <fmt/format.h>

#include "ostro/compile/passes/pass.h"
#include "ostro/ir/canonical_order.h"
#include "ostro/ir/verify.h"

namespace ostro::fuzz {
namespace {

Status legal(const Rewriting& r) {
  const Status s = ir::verify(r.program);
  return s.ok() ? s : invalid_argument(fmt::format("{}: {}", r.name, s.error().message()));
}

}  // namespace

Result<std::vector<Rewriting>> rewritings(const ir::Program& program) {
  std::vector<Rewriting> list{{"canonical order", program}};
  ir::canonical_order(list[0].program.body);
  RETURN_IF_ERROR(legal(list[0]));
  for (const char* remat : {"none", "all", "save:x"}) {
    runtime::CompileOptions options;
    options.remat = remat;
    list.push_back({fmt::format("all passes (remat {})", remat), program});
    const size_t all = list.size() - 1;
    for (const compile::PassInfo& pass : compile::pass_list()) {
      pass.run(list[all].program, options);
      list.push_back({fmt::format("pass {} (remat {})", pass.name, remat), program});
      pass.run(list.back().program, options);
      for (const Rewriting* r : {&list[all], &list.back()}) RETURN_IF_ERROR(legal(*r));
    }
  }
  return list;
}

}  // namespace ostro::fuzz
