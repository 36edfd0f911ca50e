#include "ostro/trace/jit.h"

#include "ostro/ir/verify.h"
#include "ostro/trace/error.h"

namespace ostro::jit_internal {

std::shared_ptr<Compiled> compile(const ir::Program& program, const runtime::CompileOptions& options) {
  if (Status s = ir::verify(program); !s.ok()) throw TraceError(s.error().message());
  auto executable = default_engine().compile(program, options);
  if (!executable.ok()) throw TraceError(executable.error().message());
  auto compiled = std::make_shared<Compiled>();
  compiled->executable = std::move(executable).value();
  return compiled;
}

std::vector<Array> run(Compiled& compiled, std::vector<runtime::Buffer> inputs) {
  auto results = compiled.executable->run(std::move(inputs));
  if (!results.ok()) throw TraceError(results.error().message());
  std::vector<Array> out;
  for (runtime::Buffer& b : *results) out.emplace_back(std::move(b));
  return out;
}

}  // namespace ostro::jit_internal
