// The gradient of cross-entropy (N11), by parts of rows.

// A block has a part of a row; each thread takes four elements. The gradient may overwrite the logits.
KERNEL(cross_entropy_grad_parts, CrossEntropyArgs) {
  const i64 parts = (a.vocab + 4 * THREADS - 1) / (4 * THREADS), row = BLOCK_X / parts;
  const i64 first = BLOCK_X % parts * (4 * THREADS) + THREAD, target = AT(const i32, a.targets)[row] - integer_of(a.origin);
  const float w = AT(const float, a.w)[row], m = AT(const float, a.m)[row], r = AT(const float, a.r)[row];
  float slope = w, x[4];
  if (a.z != 0) slope = w + ((2.0f * a.z) * w) * AT(const float, a.lse)[row];
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const i64 i = first + e * THREADS;
    x[e] = AT(const float, a.logits)[row * a.vocab + (i < a.vocab ? i : 0)];
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const i64 i = first + e * THREADS;
    if (i >= a.vocab) return;
    const float p = exp2_block(x[e], m, 0x1.715476p+0f) * r;
    float y = p * slope;
    if (target == i) y = y - w;
    store_float(a.to, a.to_type, row * a.to_row + i, y);
  }
}
