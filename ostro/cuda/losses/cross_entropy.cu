#include "losses/gradient.cuh"
// Cross-entropy over rows of logits (N11): one block of 64 threads a row.

DEVICE float row_sum_of_exponentials(const CrossEntropyArgs& a, const float* x, float m) {
  float leaf[MOST_LEAVES];
  i64 begin = 0;
  for (i64 s = 0; s < a.leaves; ++s) {
    const i64 end = AT(const i64, a.leaf_ends)[s];
    float lane = 0;
    for (i64 i = begin + THREAD; i < end; i += 64) lane = lane + exponential(x[i], m);
    leaf[s] = row_sum32(lane);
    begin = end;
  }
  const i64 count = a.leaves;
  return join_leaves(leaf, count, 1, &count);
}

BLOCK_KERNEL(cross_entropy, CrossEntropyArgs) {
  const i64 row = BLOCK_X;
  const float* const x = AT(const float, a.logits) + row * a.vocab;
  float best = x[0];
  for (i64 i = THREAD; i < a.vocab; i += 64) best = max32(best, x[i]);
  const float m = row_max32(best) + 0.0f;
  const float l = row_sum_of_exponentials(a, x, m);
  if (THREAD != 0) return;
  const float lse = m + log32(l);
  const i64 target = AT(const i32, a.targets)[row] - integer_of(a.origin);
  const float logit = target >= 0 && target < a.vocab ? x[target] : 0.0f;
  float loss = lse - logit;
  if (a.z != 0) loss = loss + (a.z * lse) * lse;
  AT(float, a.loss)[row] = loss;
  AT(float, a.m)[row] = m;
  AT(float, a.r)[row] = 1.0f / l;
  AT(float, a.lse)[row] = lse;
}

BLOCK_KERNEL(cross_entropy_sum, CrossEntropyArgs) {
  const i64 row = BLOCK_X;
  const float l = row_sum_of_exponentials(a, AT(const float, a.logits) + row * a.vocab, AT(const float, a.m)[row]);
  if (THREAD == 0) AT(float, a.to)[row] = l;
}

// One thread an element. The gradient may overwrite the logits.
KERNEL(cross_entropy_grad, CrossEntropyArgs) {
  const i64 t = global_thread();
  if (t >= a.rows * a.vocab) return;
  const i64 row = t / a.vocab, i = t % a.vocab;
  store_gradient(a, loss_row(a, row), i, AT(const float, a.logits)[t]);
}

// A gradient in bf16 that lies where the logits do: a row's gradient in the first half of the row. A block has a row; it has read a
// stretch of logits, and all before it, when it writes the stretch's gradient, which ends before the next stretch.
BLOCK_KERNEL(cross_entropy_grad_over, CrossEntropyArgs) {
  const i64 row = BLOCK_X;
  const LossRow of = loss_row(a, row);
  for (i64 first = 0; first < a.vocab; first += 4 * THREADS) {
    float x[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const i64 i = first + THREAD + e * THREADS;
      x[e] = i < a.vocab ? AT(const float, a.logits)[row * a.vocab + i] : 0.0f;
    }
    BARRIER();
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const i64 i = first + THREAD + e * THREADS;
      if (i >= a.vocab) break;
      store_gradient(a, of, i, x[e]);
    }
  }
}
