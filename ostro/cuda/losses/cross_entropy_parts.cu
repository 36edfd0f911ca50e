#include "losses/gradient.cuh"
// The gradient of cross-entropy (N11), by parts of rows.

// A block has a part of a row; each thread takes four elements. The gradient may overwrite the logits.
KERNEL(cross_entropy_grad_parts, CrossEntropyArgs) {
  const i64 parts = (a.vocab + 4 * THREADS - 1) / (4 * THREADS), row = BLOCK_X / parts;
  const i64 first = BLOCK_X % parts * (4 * THREADS) + THREAD;
  const LossRow of = loss_row(a, row);
  float x[4];
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const i64 i = first + e * THREADS;
    x[e] = AT(const float, a.logits)[row * a.vocab + (i < a.vocab ? i : 0)];
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const i64 i = first + e * THREADS;
    if (i >= a.vocab) return;
    store_gradient(a, of, i, x[e]);
  }
}
