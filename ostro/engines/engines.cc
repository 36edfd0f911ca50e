#include "ostro/engines/engines.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "ostro/cpu/engine/engine.h"
#include "ostro/cuda/emulated/emulated_device.h"
#include "ostro/cuda/engine/cuda_engine.h"
#include "ostro/interp/engine/engine.h"

namespace ostro::engines {

Result<Wish> wish_from_environment() {
  const char* variable = std::getenv("OSTRO_EXECUTOR");
  const std::string_view name = variable == nullptr ? "" : variable;
  if (name.empty() || name == "compiled") return Wish{.kind = Wish::Kind::kCompiled};
  if (name == "interpreter") return Wish{.kind = Wish::Kind::kInterpreter};
  if (name == "cuda_emulated") return Wish{.kind = Wish::Kind::kCudaEmulated};
  return invalid_argument(fmt::format(
      "OSTRO_EXECUTOR is \"{}\"; use compiled (the default), interpreter or cuda_emulated", name));
}

Result<std::unique_ptr<runtime::Engine>> make(const Wish& wish) {
  if (wish.kind == Wish::Kind::kInterpreter) return interp::make_interpreter();
  if (wish.kind == Wish::Kind::kCudaEmulated) {
    ASSIGN_OR_RETURN(cuda::Device* const device, cuda::emulated_device());
    return cuda::make_device_engine(*device);
  }
  return cpu::make_cpu_engine({.generated_code = wish.generated_code});
}

}  // namespace ostro::engines
