// read_in_f32: marks a parameter that a model reads in f32 whatever the compute dtype is. A pure function.
#pragma once

#include "ostro/trace/array.h"

namespace ostro::nn {

inline Array read_in_f32(const Array& parameter) {
  return parameter.use_dtype() ? parameter.tagged(DType::f32) : parameter;
}

}  // namespace ostro::nn
