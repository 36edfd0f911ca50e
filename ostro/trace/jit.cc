#include "ostro/trace/jit.h"

#include "ostro/ir/rules/verify.h"
#include "ostro/trace/error.h"

namespace ostro::jit_internal {

std::shared_ptr<runtime::Executable> compile(const ir::Program& program,
                                             const runtime::CompileOptions& options) {
  if (Status s = ir::verify(program); !s.ok()) throw TraceError(s.error().message());
  auto executable = default_engine().compile(program, options);
  if (!executable.ok()) throw TraceError(executable.error().message());
  return std::move(executable).value();
}

std::vector<Array> run(runtime::Executable& executable, std::vector<runtime::Buffer> inputs) {
  auto results = executable.run(std::move(inputs));
  if (!results.ok()) throw TraceError(results.error().message());
  std::vector<Array> out;
  for (runtime::Buffer& b : *results) out.emplace_back(std::move(b));
  return out;
}

}  // namespace ostro::jit_internal
