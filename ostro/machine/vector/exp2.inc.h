// exp2_below: E(x, y) = 2^((x - y) * kappa) of docs/spec/numerics.md, N9, on one vector.
#pragma once

namespace ostro::machine {

// For (x - y) * kappa <= 0 or NaN, which is where attention and cross-entropy evaluate it (y is a maximum);
// lanes outside that domain get arbitrary values, which the caller masks out.
template <class V>
inline V exp2_below(V x, V y, V kappa) {
  const V t = (x - y) * kappa;
  const V n = V::rint(t);
  const V f = t - n;
  V p = V::fma(V::set1(0x1.5bd97cp-10f), f, V::set1(0x1.3ce8b2p-7f));
  p = V::fma(p, f, V::set1(0x1.c6b6dap-5f));
  p = V::fma(p, f, V::set1(0x1.ebf9c2p-3f));
  p = V::fma(p, f, V::set1(0x1.62e42ap-1f));
  p = V::fma(p, f, V::set1(1.0f));
  // In the domain n >= -126 and the product is normal, so one exact scaling equals the text's two steps.
  return V::zero_where_less(t, V::set1(-126.0f), V::scale_by_power(p, n));
}

}  // namespace ostro::machine
