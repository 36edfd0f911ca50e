#include "ostro/machine/isa.h"

#include "ostro/machine/machine.h"

namespace ostro::machine {
namespace {

const Machine& machine() {
  static const Machine m = detect_machine();
  return m;
}

}  // namespace

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::kGeneric: return "generic";
    case Isa::kAvx2: return "avx2";
    case Isa::kAvx512: return "avx512";
    case Isa::kAvx512Bf16: return "avx512bf16";
    case Isa::kAmx: return "amx";
  }
  return "unknown";
}

std::optional<Isa> parse_isa(std::string_view name) {
  for (Isa isa : kAllIsas)
    if (name == isa_name(isa)) return isa;
  return std::nullopt;
}

bool has_isa(Isa isa) { return machine().has[static_cast<int>(isa)]; }

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (Isa isa : kAllIsas)
    if (has_isa(isa)) isas.push_back(isa);
  return isas;
}

}  // namespace ostro::machine
