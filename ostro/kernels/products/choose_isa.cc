#include "ostro/kernels/products/choose_isa.h"

#include <fmt/core.h>

#include <cstdlib>
#include <string>

#include "ostro/machine/machine.h"
#include "ostro/kernels/products/admission.h"

namespace ostro::cpu {

Isa best_isa() {
  static const bool amd = detect_machine().amd;
  for (Isa isa : {Isa::kAmx, Isa::kAvx512Bf16, Isa::kAvx512, Isa::kAvx2}) {
    if (isa == Isa::kAvx512Bf16 && !amd) continue;
    if (has_isa(isa) && bf16_admitted(isa)) return isa;
  }
  return Isa::kGeneric;
}

Result<Isa> choose_isa(std::string_view requested) {
  if (requested.empty()) return best_isa();
  std::string names;
  for (Isa isa : available_isas()) names += (names.empty() ? "" : ", ") + std::string(isa_name(isa));
  const std::optional<Isa> isa = parse_isa(requested);
  if (!isa) {
    return invalid_argument(fmt::format(
        "OSTRO_ISA is \"{}\", which is no instruction set; this machine has {}", requested, names));
  }
  if (!has_isa(*isa))
    return unsupported(fmt::format("OSTRO_ISA is {}, but this machine has only {}", requested, names));
  if (!bf16_admitted(*isa))
    return unsupported(
        fmt::format("OSTRO_ISA is {}, but this machine's {} does not compute the definition of "
                    "bf16 products (docs/spec/numerics.md, N7); unset OSTRO_ISA",
                    requested, requested));
  return *isa;
}

Result<Isa> choose_isa() {
  const char* requested = std::getenv("OSTRO_ISA");
  return choose_isa(requested == nullptr ? std::string_view() : std::string_view(requested));
}

}  // namespace ostro::cpu
