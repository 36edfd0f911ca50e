// Machine, available_memory: the resources of the machine that `ostro init` runs on. Training itself never
// asks for them.
#pragma once

#include "ostro/base/machine.h"

namespace ostro::init {

struct Machine {
  int cores = 1;
  AvailableMemory memory;
  double peak_flops = 0;  // FLOP/s of a large matrix product on all cores, as measured
};

}  // namespace ostro::init
