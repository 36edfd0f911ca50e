// Products of few rows, which read B where it lies (few/few_rows.h): which products are, and how they are
// handed on.
#include "ostro/products/few/few_rows.h"

#include "ostro/products/gemm_block.h"

namespace ostro::kernels {

Gemm::Few Gemm::plan_few_rows() const {
  const bool fits = !spec_.int8_b && m() >= 1 && m() <= few_kernel_->rows && k() >= 1 &&
                    n() >= few_kernel_->unit && spec_.batch.size() == 1;
  if (!fits) return Few::kNo;
  if (ascends(spec_.b_col)) return Few::kAcross;
  int64_t begin = 0;
  for (const int64_t end : spec_.segment_ends) {
    if (!ascends(std::span(spec_.b_row).subspan(begin, end - begin))) return Few::kNo;
    begin = end;
  }
  return Few::kAlong;
}

void Gemm::run_few_rows(machine::ThreadPool& pool, std::span<const GemmCall> calls, bool go_on) {
  if (calls.empty()) return;
  std::vector<FewProduct> products;
  for (const GemmCall& call : calls) {
    const Gemm& g = *call.gemm;
    const GemmSpec& s = g.spec_;
    const int64_t element = element_bytes(s.in);
    products.push_back({g.few_kernel_, s.in == GemmType::kF32, s.out == GemmType::kF32,
                        g.c_col_run_[0] >= g.n(), g.few_ == Few::kAcross, go_on, s.a_row, s.a_col, s.b_row,
                        s.b_col, s.c_row, s.c_col, s.segment_ends, s.tree_counts, g.kernel_->round_row,
                        static_cast<const std::byte*>(call.a) + s.batch[0].a * element,
                        static_cast<const std::byte*>(call.b.data) + s.batch[0].b * element,
                        static_cast<std::byte*>(call.c) + s.batch[0].c * element_bytes(s.out)});
  }
  run_few_products(pool, products);
}

}  // namespace ostro::kernels
