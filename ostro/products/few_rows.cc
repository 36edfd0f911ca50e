// Products of few rows, which read B where it lies (few/few_rows.h): which products are, and how they are
// handed on.
#include "ostro/products/few/few_rows.h"

#include "ostro/products/gemm_block.h"

namespace ostro::kernels {

FewOrder Gemm::order_of(Few few) {
  if (few == Few::kPanels) return FewOrder::kPanels;
  return few == Few::kAcross ? FewOrder::kAcross : FewOrder::kAlong;
}

Gemm::Few Gemm::plan_few_rows() const {
  const bool fits =
      !spec_.int8_b && m() >= 1 && k() >= 1 && n() >= few_kernel_->unit && spec_.batch.size() == 1;
  if (!fits) return Few::kNo;
  if (m() <= few_kernel_->panel_rows && lies_in_panels()) return Few::kPanels;
  if (m() > few_kernel_->rows) return Few::kNo;
  if (ascends(spec_.b_col)) return Few::kAcross;
  return steps_ascend(1) ? Few::kAlong : Few::kNo;
}

bool Gemm::steps_ascend(int64_t by) const {
  int64_t begin = 0;
  for (const int64_t end : spec_.segment_ends) {
    if (!ascends(std::span(spec_.b_row).subspan(begin, end - begin), by)) return false;
    begin = end;
  }
  return true;
}

// The strides between panels, and between leaves, may be any.
bool Gemm::lies_in_panels() const {
  const int64_t unit = few_kernel_->unit;
  if (n() % unit != 0) return false;
  for (int64_t i = 0; i < n(); i += unit)
    if (!ascends(std::span(spec_.b_col).subspan(i, unit))) return false;
  return steps_ascend(unit);
}

void Gemm::run_few_rows(machine::ThreadPool& pool, std::span<const GemmCall> calls, bool go_on) {
  if (calls.empty()) return;
  std::vector<FewProduct> products;
  for (const GemmCall& call : calls) {
    const Gemm& g = *call.gemm;
    const GemmSpec& s = g.spec_;
    const int64_t element = element_bytes(s.in);
    products.push_back({g.few_kernel_, s.in == GemmType::kF32, s.out == GemmType::kF32,
                        g.c_col_run_[0] >= g.n(), order_of(g.few_), go_on, s.a_row, s.a_col, s.b_row, s.b_col,
                        s.c_row, s.c_col, s.segment_ends, s.tree_counts, g.kernel_->round_row,
                        static_cast<const std::byte*>(call.a) + s.batch[0].a * element,
                        static_cast<const std::byte*>(call.b.data) + s.batch[0].b * element,
                        static_cast<std::byte*>(call.c) + s.batch[0].c * element_bytes(s.out)});
  }
  run_few_products(pool, products);
}

}  // namespace ostro::kernels
