// combine_stripes: the last step of a striped sum (docs/spec/numerics.md, N4).
#pragma once

namespace ostro::machine {

// 64 lanes -> one value; changes the lanes.
template <class V>
inline float combine_stripes(float* lanes) {
  for (int i = 0; i < 16; ++i) lanes[i] = (lanes[i] + lanes[16 + i]) + (lanes[32 + i] + lanes[48 + i]);
  for (int step = 8; step > 0; step /= 2)
    for (int i = 0; i < step; ++i) lanes[i] = lanes[i] + lanes[i + step];
  return lanes[0];
}

}  // namespace ostro::machine
