// Attention forward (numerics.md N9, N21): per row, key blocks of 128 with a running maximum m, sum l and
// accumulators acc.
#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"
#include "ostro/interp/ops/attention_rows.h"
#include "ostro/numerics/functions.h"

namespace ostro::interp {

Result<Buffers> run_attention(const Call& call) {
  const AttentionRows rows(call, 3);
  std::vector<float> out(rows.q.size()), maxima, reciprocals;
  for (size_t row = 0; row < rows.q_at.size(); ++row) {
    float m = rows.start_max(row);
    float l = rows.has_sink() ? 1.0f : 0.0f;
    std::vector<float> acc(static_cast<size_t>(rows.head_dim), 0.0f);
    for (int64_t block = 0; block < rows.keys; block += kKeyBlock) {
      const int64_t n = std::min(kKeyBlock, rows.keys - block);
      std::vector<float> s(static_cast<size_t>(n)), p(s.size());
      float m_new = m;
      for (int64_t j = 0; j < n; ++j) {
        if (!rows.sees(row, block + j)) continue;
        s[j] = rows.score(row, block + j);
        m_new = numerics::max_f32(m_new, s[j]);
      }
      const float c = numerics::exp2_block(m, m_new, rows.kappa);
      l = l * c;
      for (float& a : acc) a = a * c;
      for (int64_t j = 0; j < n; ++j) {
        p[j] = rows.sees(row, block + j) ? numerics::exp2_block(s[j], m_new, rows.kappa) : 0.0f;
        l = l + p[j];
        p[j] = rows.factor(p[j]);
      }
      if (rows.sliced) {
        std::vector<const numerics::SlicedRow*> values;
        for (int64_t j = block; j < block + n; ++j)
          values.push_back(rows.sees(row, j) ? &rows.v_slices[rows.key_index(row, j)] : nullptr);
        numerics::add_rows(numerics::LeftOperand::kRows, p, values, acc);
      } else {
        const float* v_block = rows.v.data() + rows.k_at[row] + block * rows.key_stride;
        for (int64_t d = 0; d < rows.head_dim; ++d)
          acc[d] = rows.contract(
              n, [&](int64_t j) { return p[j]; }, [&](int64_t j) { return v_block[j * rows.key_stride + d]; },
              acc[d]);
      }
      m = m_new;
    }
    const float r = l == 0.0f ? 0.0f : 1.0f / l;  // a row without keys gives +0
    for (int64_t d = 0; d < rows.head_dim; ++d) out[rows.q_at[row] + d] = (acc[d] + 0.0f) * r;
    maxima.push_back(m + 0.0f);  // -0 becomes +0: both zeros give the same saved value
    reciprocals.push_back(r);
  }
  return Buffers{make_buffer(call.out[0], out), make_buffer(call.out[1], maxima),
                 make_buffer(call.out[2], reciprocals)};
}

}  // namespace ostro::interp
