// Several products as one job of the thread pool (docs/spec/numerics.md N10: the products of experts).
#include <algorithm>

#include "ostro/products/gemm_block.h"

namespace ostro::kernels {
namespace {

// The most bytes of packed A in one block: what is packed stays in L2 while B passes by.
constexpr int64_t kBlockABytes = int64_t{3} << 19;
// Blocks for each thread, so that all finish at about the same time, and the fewest panels of B in one.
constexpr int64_t kPiecesAThread = 8;
constexpr int64_t kPiecePanels = 4;

}  // namespace

// Cuts every product into pieces for the threads: ranges of rows whose packed A stays in L2, and ranges of
// columns, so that each thread gets about kPiecesAThread pieces of equal work. A piece packs its own A and B,
// and prefetches the B of the piece that its thread is likely to take next. Products of few rows
// are done before, without packing.
void Gemm::run_all(machine::ThreadPool& pool, std::span<const GemmCall> calls) {
  struct Piece {
    const GemmCall* call;
    int64_t row_begin, row_end, panel_begin, panel_end;
  };
  const auto work = [](const Gemm& g) {
    return static_cast<double>(g.m_panels_) * static_cast<double>(g.n_panels_) *
           static_cast<double>(std::max<int64_t>(1, g.packed_k_));
  };
  double total = 0;
  int64_t c_bytes = 0;
  std::vector<GemmCall> few, few_int8, others;
  for (const GemmCall& call : calls) {
    const Few way = call.gemm->few_;
    if (way == Few::kInt8)
      (call.gemm->takes_few(call.b) ? few_int8 : others).push_back(call);
    else
      (way == Few::kNo ? others : few).push_back(call);
  }
  run_few_rows(pool, few, false);
  run_few_int8(pool, few_int8);
  for (const GemmCall& call : others) {
    OSTRO_CHECK(call.gemm->spec_.batch.size() == 1, "a product with a batch of {}",
                call.gemm->spec_.batch.size());
    total += work(*call.gemm);
    c_bytes += call.gemm->m() * call.gemm->n() * element_bytes(call.gemm->spec_.out);
  }
  const double share = total / static_cast<double>(pool.threads() * kPiecesAThread);
  std::vector<Piece> pieces;
  for (const GemmCall& call : others) {
    const Gemm& g = *call.gemm;
    if (g.m_panels_ == 0 || g.n_panels_ == 0) continue;
    const int64_t panel_bytes = std::max<int64_t>(1, g.packed_k_ * g.kernel_->a_bytes);
    const int64_t rows = ceil_div(g.m_panels_, std::max<int64_t>(1, kBlockABytes / panel_bytes));
    const auto wanted = static_cast<int64_t>(work(g) / share / static_cast<double>(rows) + 0.5);
    const int64_t columns =
        pool.threads() == 1
            ? 1
            : std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, g.n_panels_ / kPiecePanels));
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        pieces.push_back({&call, g.m_panels_ * row / rows, g.m_panels_ * (row + 1) / rows,
                          g.n_panels_ * column / columns, g.n_panels_ * (column + 1) / columns});
  }
  const auto b_of = [](const GemmCall& call) {
    const GemmSpec& spec = call.gemm->spec_;
    return GemmB(static_cast<const std::byte*>(call.b.data) + spec.batch[0].b * b_element_bytes(spec),
                 call.b.scales);
  };
  pool.run_tiles(static_cast<int64_t>(pieces.size()), [&](int64_t i) {
    const Piece& piece = pieces[static_cast<size_t>(i)];
    GemmBlock::Next next;
    const auto after = static_cast<size_t>(i + pool.threads());  // where all pieces take equally long
    if (after < pieces.size()) {
      const Piece& then = pieces[after];
      next = {then.call->gemm, b_of(*then.call), then.panel_begin, then.panel_end};
    }
    const GemmBlock::Place place = {.offsets = piece.call->gemm->spec_.batch[0],
                                    .row_panel_begin = piece.row_begin,
                                    .row_panel_end = piece.row_end,
                                    .panel_begin = piece.panel_begin,
                                    .panel_end = piece.panel_end,
                                    .c_bytes = c_bytes,
                                    .next = next.gemm != nullptr ? &next : nullptr};
    GemmBlock(*piece.call->gemm, place, piece.call->a, b_of(*piece.call), piece.call->c).run();
  });
}

}  // namespace ostro::kernels
