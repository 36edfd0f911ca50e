// Element `at` of a second operand, which may be stored as i8 with scales (N1).

DEVICE float operand_b(const DotArgs& a, bool narrow, i64 at, i64 scale) {
  if (a.b_type != TYPE_I8) return load_float(a.b, a.b_type, at);
  const float x = (float)AT(const i8, a.b)[at] * load_float(a.scales, a.scale_type, scale);
  return narrow ? round_bf16(x) : x;
}
