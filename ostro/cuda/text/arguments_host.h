// args: the arguments of kernels as the host fills them (arguments.h).
#pragma once

namespace ostro::cuda::args {

using i64 = long long;
using u64 = unsigned long long;

#include "ostro/cuda/text/arguments.h"

}  // namespace ostro::cuda::args
