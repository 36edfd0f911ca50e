// The machine of programs whose kernels for AVX-512, AVX512-BF16 and AMX run on emulated instructions: it has
// all of them. Generated code is compiled for x86-64-v3. kernels::burst_peak alone would still use the real
// ones.
#include "ostro/machine/machine.h"

namespace ostro::machine {

Machine detect_machine() {
  Machine m;
  for (bool& has : m.has) has = true;
  m.vnni256 = m.vnni512 = m.amx_int8 = true;
  return m;
}

const char* target_flags(Isa) { return "-march=x86-64-v3"; }

}  // namespace ostro::machine
