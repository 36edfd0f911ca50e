#include "ostro/engines/engines.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "ostro/cpu/engine/engine.h"
#include "ostro/interp/engine/engine.h"

namespace ostro::engines {

Result<Wish> wish_from_environment() {
  const char* variable = std::getenv("OSTRO_EXECUTOR");
  const std::string_view name = variable == nullptr ? "" : variable;
  if (name.empty() || name == "compiled") return Wish{.kind = Wish::Kind::kCompiled};
  if (name == "interpreter") return Wish{.kind = Wish::Kind::kInterpreter};
  return invalid_argument(
      fmt::format("OSTRO_EXECUTOR is \"{}\"; use compiled (the default) or interpreter", name));
}

Result<std::unique_ptr<runtime::Engine>> make(const Wish& wish) {
  if (wish.kind == Wish::Kind::kInterpreter) return interp::make_interpreter();
  return cpu::make_cpu_engine({.generated_code = wish.generated_code});
}

}  // namespace ostro::engines
