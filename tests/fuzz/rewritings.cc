#include "rewritings.h"

#include <fmt/format.h>

#include "ostro/compile/passes/pass.h"
#include "ostro/ir/verify.h"

namespace ostro::fuzz {

Result<std::vector<Rewriting>> rewritings(const ir::Program& program) {
  std::vector<Rewriting> list;
  for (const char* remat : {"none", "all", "save:x"}) {
    runtime::CompileOptions options;
    options.remat = remat;
    list.push_back({fmt::format("all passes (remat {})", remat), program});
    const size_t all = list.size() - 1;
    for (const compile::PassInfo& pass : compile::pass_list()) {
      pass.run(list[all].program, options);
      list.push_back({fmt::format("pass {} (remat {})", pass.name, remat), program});
      pass.run(list.back().program, options);
      for (const Rewriting* r : {&list[all], &list.back()})
        if (const Status legal = ir::verify(r->program); !legal.ok())
          return invalid_argument(
              fmt::format("{} after pass {}: {}", r->name, pass.name, legal.error().message()));
    }
  }
  return list;
}

}  // namespace ostro::fuzz
