// tiny: the shape of a small Grok-1, for tests.
#pragma once

#include "ostro/grok/layout/shape.h"

namespace ostro::grok {

inline GrokShape tiny(Dtype matrices = Dtype::kInt8) {
  GrokShape shape;
  shape.vocab = 32;
  shape.embed = 16;
  shape.layers = 3;
  shape.query_heads = 4;
  shape.kv_heads = 2;
  shape.head_dim = 8;
  shape.mlp = 24;
  shape.experts = 4;
  shape.matrices = matrices;
  return shape;
}

}  // namespace ostro::grok
