// The exponential of cross-entropy (N11), and the gradient of a logit.

DEVICE float exponential(float x, float m) { return exp2_block(x, m, 0x1.715476p+0f); }

// What the gradients of a row have in common.
struct LossRow {
  i64 row, target;
  float w, m, r, slope;
};
DEVICE LossRow loss_row(const CrossEntropyArgs& a, i64 row) {
  LossRow of = {row, AT(const i32, a.targets)[row] - integer_of(a.origin), AT(const float, a.w)[row], AT(const float, a.m)[row],
                AT(const float, a.r)[row], 0.0f};
  of.slope = of.w;
  if (a.z != 0) of.slope = of.w + ((2.0f * a.z) * of.w) * AT(const float, a.lse)[row];
  return of;
}
// Stores the gradient of logit i of the row, which is x.
DEVICE void store_gradient(const CrossEntropyArgs& a, const LossRow& of, i64 i, float x) {
  const float p = exponential(x, of.m) * of.r;
  float y = p * of.slope;
  if (of.target == i) y = y - of.w;
  store_float(a.to, a.to_type, of.row * a.to_row + i, y);
}
