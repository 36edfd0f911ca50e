#include "ostro/cli/shared/engine_choice.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "ostro/cpu/engine/engine.h"
#include "ostro/interp/engine/engine.h"

namespace ostro::cli {

namespace {

Result<std::unique_ptr<runtime::Engine>> engine_with(const cpu::CpuOptions& compiled) {
  const char* variable = std::getenv("OSTRO_EXECUTOR");
  const std::string_view name = variable == nullptr ? "" : variable;
  if (name.empty() || name == "compiled") return cpu::make_cpu_engine(compiled);
  if (name == "interpreter") return interp::make_interpreter();
  return invalid_argument(
      fmt::format("OSTRO_EXECUTOR is \"{}\"; use compiled (the default) or interpreter", name));
}

}  // namespace

Result<std::unique_ptr<runtime::Engine>> make_engine() { return engine_with({}); }

Result<std::unique_ptr<runtime::Engine>> make_engine_for_a_moment() {
  return engine_with({.generated_code = false});
}

}  // namespace ostro::cli
