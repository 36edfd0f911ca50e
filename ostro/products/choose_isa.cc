#include "ostro/products/choose_isa.h"

#include <fmt/core.h>

#include <cstdlib>
#include <string>

#include "ostro/machine/machine.h"
#include "ostro/products/admission.h"

namespace ostro::kernels {

machine::Isa best_isa() {
  static const bool amd = machine::detect_machine().amd;
  for (machine::Isa isa :
       {machine::Isa::kAmx, machine::Isa::kAvx512Bf16, machine::Isa::kAvx512, machine::Isa::kAvx2}) {
    if (isa == machine::Isa::kAvx512Bf16 && !amd) continue;
    if (machine::has_isa(isa) && bf16_admitted(isa)) return isa;
  }
  return machine::Isa::kGeneric;
}

Result<machine::Isa> choose_isa(std::string_view requested) {
  if (requested.empty()) return best_isa();
  std::string names;
  for (machine::Isa isa : machine::available_isas())
    names += (names.empty() ? "" : ", ") + std::string(machine::isa_name(isa));
  const std::optional<machine::Isa> isa = machine::parse_isa(requested);
  if (!isa) {
    return invalid_argument(fmt::format(
        "OSTRO_ISA is \"{}\", which is no instruction set; this machine has {}", requested, names));
  }
  if (!machine::has_isa(*isa))
    return unsupported(fmt::format("OSTRO_ISA is {}, but this machine has only {}", requested, names));
  if (!bf16_admitted(*isa))
    return unsupported(
        fmt::format("OSTRO_ISA is {}, but this machine's {} does not compute the definition of "
                    "bf16 products (docs/spec/numerics.md, N7); unset OSTRO_ISA",
                    requested, requested));
  return *isa;
}

Result<machine::Isa> choose_isa() {
  const char* requested = std::getenv("OSTRO_ISA");
  return choose_isa(requested == nullptr ? std::string_view() : std::string_view(requested));
}

}  // namespace ostro::kernels
