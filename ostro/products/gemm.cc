#include "ostro/products/gemm.h"

#include <unistd.h>

#include <algorithm>
#include <bit>

#include "ostro/products/few/few_kernel.h"
#include "ostro/products/gemm_block.h"
#include "ostro/products/kernels/int8_kernel.h"
#include "ostro/products/tc16/tc16_admission.h"
#include "ostro/products/tile/gemm_kernel.h"

namespace ostro::kernels {
namespace {

// Share of a core's L2 (1 MiB on Zen 5, 2 MiB on Sapphire Rapids) for a packed block of A.
constexpr int64_t kSharedABytes = 3 << 18;
// Threads do not run equally fast. So the work is cut into this many row blocks per thread, of at least
// kBlockPanels panels: then threads wait for each other only briefly at the end of a product.
constexpr int64_t kBlocksAThread = 8;
constexpr int64_t kBlockPanels = 8;
// Row blocks of a product of which half is computed: with n of them, (n + 1) / 2n of C is.
constexpr int64_t kHalfBlocks = 8;
// For a leaf of at most kWholeSpan k, one row of tiles is finished after the other. For a longer leaf the
// outer loop goes over blocks of k, and all tiles of a group are finished only with the last block.
constexpr int64_t kWholeSpan = 768;
constexpr int64_t kGroup = 32;  // N7: blocks of k end between groups

// The most scratch memory for packing B during a product; a larger B is packed in chunks.
constexpr int64_t kChunkBytes = int64_t{64} << 20;

// The largest packed A that all threads share while B is packed group by group.
constexpr int64_t kWideBytes = int64_t{8} << 20;
// The least number of panels of B in one thread's range, where there are enough.
constexpr int64_t kWidePanels = 8;

// Panels packed by one task, and the k that packing takes from each at a time (a multiple of 32) where the
// kernel has no packer for all of them together.
constexpr int64_t kPanelsATask = 16;
constexpr int64_t kAcross = 32;
constexpr int64_t kLine = 64;  // bytes of a cache line

thread_local Scratch packed_scratch;  // the operand that is packed at once

const GemmKernel& choose_kernel(const GemmSpec& spec, machine::Isa isa) {
  OSTRO_CHECK(machine::has_isa(isa), "this machine cannot run {}", machine::isa_name(isa));
  const bool f32 = spec.in == GemmType::kF32;
  OSTRO_CHECK(!spec.tc16 || !f32, "the rule of tensor cores multiplies bf16");
  if (spec.tc16) return tc16_kernel(isa);
  switch (isa) {
    case machine::Isa::kGeneric: return f32 ? gemm_f32_generic() : gemm_bf16_generic();
    case machine::Isa::kAvx2: return f32 ? gemm_f32_avx2() : gemm_bf16_avx2();
    case machine::Isa::kAvx512: return f32 ? gemm_f32_avx512() : gemm_bf16_avx512();
    case machine::Isa::kAvx512Bf16: return f32 ? gemm_f32_avx512() : gemm_bf16_avx512bf16();
    case machine::Isa::kAmx: return f32 ? gemm_f32_avx512() : gemm_bf16_amx();
  }
  OSTRO_CHECK(false, "unknown instruction set {}", static_cast<int>(isa));
}

const Int8Kernel& choose_int8_kernel(machine::Isa isa) {
  if (isa == machine::Isa::kGeneric) return int8_generic();
  return isa == machine::Isa::kAvx2 ? int8_avx2() : int8_avx512();
}

// VDPBF16PS is slow on processors with AMX, so these have tiles for panels, and else take the emulation.
const FewKernel& choose_few_kernel(GemmType type, machine::Isa isa) {
  const bool f32 = type == GemmType::kF32;
  if (isa == machine::Isa::kGeneric) return f32 ? few_f32_generic() : few_bf16_generic();
  if (isa == machine::Isa::kAvx2) return f32 ? few_f32_avx2() : few_bf16_avx2();
  if (isa == machine::Isa::kAvx512Bf16 && !f32) return few_bf16_avx512bf16();
  if (isa == machine::Isa::kAmx && !f32) return few_bf16_amx();
  return f32 ? few_f32_avx512() : few_bf16_avx512();
}

int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Size of one core's L2. Only the way the work is cut depends on it; no bit does.
int64_t l2_bytes() {
  static const int64_t bytes = [] {
    const long reported = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return reported > 0 ? std::clamp<int64_t>(reported, 1 << 18, 4 << 20) : int64_t{1} << 20;
  }();
  return bytes;
}

// runs[i]: how many of offsets[i], offsets[i + 1], ... ascend by one.
std::vector<int32_t> find_runs(const std::vector<int64_t>& offsets) {
  std::vector<int32_t> runs(offsets.size(), 1);
  for (size_t i = offsets.size(); i-- > 1;)
    if (offsets[i] == offsets[i - 1] + 1) runs[i - 1] = std::min(runs[i], INT32_MAX - 1) + 1;
  return runs;
}

}  // namespace

// Packing takes whole panels of its own from contiguous columns; those of the generic code are wider.
int64_t panel_columns(GemmType in, machine::Isa isa) {
  return isa == machine::Isa::kGeneric ? 0 : choose_few_kernel(in, isa).unit;
}

Gemm::Gemm(GemmSpec spec, machine::Isa isa)
    : spec_(std::move(spec)),
      kernel_(&choose_kernel(spec_, isa)),
      m_panels_(ceil_div(m(), kernel_->mr)),
      n_panels_(ceil_div(n(), kernel_->nr)) {
  OSTRO_CHECK(spec_.b_row.size() == spec_.a_col.size(), "A has {} columns, B {} rows", spec_.a_col.size(),
              spec_.b_row.size());
  OSTRO_CHECK(spec_.c_row.size() == spec_.a_row.size() && spec_.c_col.size() == spec_.b_col.size(),
              "C is {} x {}, A has {} rows and B {} columns", spec_.c_row.size(), spec_.c_col.size(), m(),
              n());
  OSTRO_CHECK(!spec_.int8_b || (spec_.batch.size() == 1 && spec_.s_row.size() == spec_.b_row.size() &&
                                spec_.s_col.size() == spec_.b_col.size()),
              "an int8 B of {} x {} in a batch of {}, with scales for {} x {}", spec_.b_row.size(),
              spec_.b_col.size(), spec_.batch.size(), spec_.s_row.size(), spec_.s_col.size());
  a_row_run_ = find_runs(spec_.a_row);
  a_col_run_ = find_runs(spec_.a_col);
  b_row_run_ = find_runs(spec_.b_row);
  b_col_run_ = find_runs(spec_.b_col);
  c_col_run_ = find_runs(spec_.c_col);
  plan_contraction();
  plan_trees();
  plan_batch();
  plan_chunks();
  plan_rows();
  const int64_t a_bytes = m_panels_ * packed_k_ * kernel_->a_bytes;
  symmetric_ = !spec_.int8_b && plan_symmetry();
  if (spec_.int8_b) int8_kernel_ = &choose_int8_kernel(isa);
  few_kernel_ = &choose_few_kernel(spec_.in, isa);
  if (!spec_.tc16) few_ = plan_few_int8() ? Few::kInt8 : plan_few_rows();
  wide_ = spec_.batch.size() == 1 && m() > 0 && n() > m() && a_bytes <= kWideBytes;
}

// Cuts k, leaf by leaf, into blocks of at most kc steps, and counts where each begins in a packed panel. All
// blocks of a leaf but its last are multiples of 32 long, so none cuts a group of N7. Then decides how many
// panels of B are used together: as many as fit, with the longest span, into half of L2.
void Gemm::plan_contraction() {
  if (spec_.segment_ends.empty()) spec_.segment_ends = {k()};
  OSTRO_CHECK(spec_.segment_ends.back() == k(), "leaves end at {}, k is {}", spec_.segment_ends.back(), k());
  int64_t begin = 0;
  segment_spans_.push_back(0);
  for (int64_t end : spec_.segment_ends) {
    OSTRO_CHECK(end >= begin, "leaf ends must ascend: {} after {}", end, begin);
    // Blocks of nearly equal length, none a short rest.
    const int64_t pieces = std::max<int64_t>(1, ceil_div(end - begin, kernel_->kc));
    const int64_t length = round_up(ceil_div(end - begin, pieces), kGroup);
    const int64_t first_block = static_cast<int64_t>(blocks_.size());
    for (int64_t at = begin; at < end; at += length) {
      const int64_t count = std::min<int64_t>(length, end - at);
      const int64_t packed = round_up(count, kernel_->k_unit);
      blocks_.push_back({at, count, packed_k_, packed, at == begin});
      packed_k_ += packed;
    }
    plan_spans(first_block);
    begin = end;
  }
  group_panels_ = std::max<int64_t>(1, l2_bytes() / 2 / (longest_span_ * kernel_->read_bytes()));
}

// Joins the blocks of one leaf, from first_block to the last, to spans: all of them to one when the leaf is
// short (kWholeSpan), else each is a span of its own.
void Gemm::plan_spans(int64_t first_block) {
  const int64_t blocks = static_cast<int64_t>(blocks_.size()) - first_block;
  if (blocks == 0) return segment_spans_.push_back(static_cast<int64_t>(spans_.size()));
  const int64_t length = blocks_.back().begin + blocks_.back().count - blocks_[first_block].begin;
  const int64_t together = length <= kWholeSpan ? blocks : 1;
  for (int64_t at = first_block; at < first_block + blocks; at += together) {
    const int64_t end = std::min(first_block + blocks, at + together);
    const KBlock &first = blocks_[at], &last = blocks_[end - 1];
    for (int64_t i = at; i < end; ++i) blocks_[i].span = static_cast<int64_t>(spans_.size());
    spans_.push_back({at, end, first.begin, last.begin + last.count - first.begin, first.packed_begin,
                      last.packed_begin + last.packed_count - first.packed_begin});
    longest_span_ = std::max(longest_span_, spans_.back().packed_count);
  }
  segment_spans_.push_back(static_cast<int64_t>(spans_.size()));
}

// Checks the trees against the leaves, and counts the partials that are alive at once: one, and one more for
// each step of depth of the nested trees.
void Gemm::plan_trees() {
  const int64_t segments = static_cast<int64_t>(spec_.segment_ends.size());
  if (spec_.tree_counts.empty()) spec_.tree_counts = {segments};
  int64_t product = 1;
  for (int64_t count : spec_.tree_counts) {
    OSTRO_CHECK(count >= 1, "a tree over {} leaves", count);
    product *= count;
    tree_slots_ += std::bit_width(static_cast<uint64_t>(count - 1));  // ceil(log2(count))
  }
  OSTRO_CHECK(product == segments, "trees over {} leaves for {} segments", product, segments);
}

// Whether A can be read in place: every block of k is contiguous, and the rows of each panel have one stride.
void Gemm::plan_rows() {
  rows_a_ = kernel_->multiply_rows != nullptr;
  for (const KBlock& block : blocks_) rows_a_ = rows_a_ && a_col_run_[block.begin] >= block.count;
  for (int64_t i = 0; rows_a_ && i + 2 < m(); ++i)
    if (i % kernel_->mr + 2 < kernel_->mr)
      rows_a_ = spec_.a_row[i + 1] - spec_.a_row[i] == spec_.a_row[i + 2] - spec_.a_row[i + 1];
}

// Groups the entries of the batch by their B, so that a B that several of them share is packed once.
void Gemm::plan_batch() {
  std::vector<std::vector<int64_t>> entries;
  for (size_t i = 0; i < spec_.batch.size(); ++i) {
    const int64_t offset = spec_.batch[i].b;
    auto at = std::find(b_offsets_.rbegin(), b_offsets_.rend(), offset);
    if (at == b_offsets_.rend()) {
      b_offsets_.push_back(offset);
      entries.emplace_back();
      at = b_offsets_.rbegin();
    }
    entries[b_offsets_.rend() - at - 1].push_back(static_cast<int64_t>(i));
  }
  entry_begin_.push_back(0);
  for (const auto& list : entries) {
    entries_.insert(entries_.end(), list.begin(), list.end());
    entry_begin_.push_back(static_cast<int64_t>(entries_.size()));
  }
}

// Cuts the packing of B into chunks of about kChunkBytes: whole matrices while one fits, else ranges of the
// panels of one matrix.
void Gemm::plan_chunks() {
  const int64_t distinct = static_cast<int64_t>(b_offsets_.size());
  const int64_t panel_bytes = std::max<int64_t>(1, packed_k_ * kernel_->b_bytes);
  const int64_t panels = std::max<int64_t>(1, kChunkBytes / panel_bytes);
  if (panels >= n_panels_) {
    const int64_t together = std::max<int64_t>(1, panels / std::max<int64_t>(1, n_panels_));
    for (int64_t b = 0; b < distinct; b += together)
      chunks_.push_back({b, std::min(distinct, b + together), 0, n_panels_});
    return;
  }
  for (int64_t b = 0; b < distinct; ++b)
    for (int64_t p = 0; p < n_panels_; p += panels)
      chunks_.push_back({b, b + 1, p, std::min(n_panels_, p + panels)});
}

void Gemm::pack_panels(const Operand& operand, const KBlock& block, int64_t begin, int64_t end,
                       std::byte* out, int64_t panel_stride) const {
  if (operand.scales != nullptr) return pack_int8(operand, block, begin, end, out, panel_stride);
  const int64_t entries = static_cast<int64_t>(operand.w_offsets.size());
  // When w is contiguous: pack a few k of all panels, then the next k, so that long stretches of memory are
  // read in order. Otherwise pack panel by panel.
  const int64_t first = begin * operand.width;
  const bool across = end - begin > 1 && operand.w_run[first] >= operand.width;
  if (across && operand.kernel_across != nullptr) {
    const int64_t whole = std::min<int64_t>(end - begin, operand.w_run[first] / operand.width);
    operand.kernel_across({.base = operand.base,
                           .w_offsets = operand.w_offsets.data() + first,
                           .width = operand.width,
                           .w_contiguous = true,
                           .k_offsets = operand.k_offsets.data() + block.begin,
                           .k_run = operand.k_run.data() + block.begin,
                           .count = block.count},
                          whole, panel_stride, out);
    begin += whole;
    out += whole * panel_stride;
  }
  const int64_t step = across ? kAcross : block.count;
  for (int64_t k = 0; k < block.count; k += step) {
    // Many rows are read in turn, which no hardware prefetcher follows.
    const int64_t then = across ? std::min(block.count, k + 2 * step) : 0;
    const int64_t panel_bytes = operand.width * operand.element;
    const int64_t panels_a_line = std::max<int64_t>(1, kLine / panel_bytes);
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t w = panel * operand.width;
      const int width = static_cast<int>(std::min<int64_t>(operand.width, entries - w));
      for (int64_t row = k + step; row < then && (panel - begin) % panels_a_line == 0; ++row) {
        const auto* from = static_cast<const std::byte*>(operand.base) +
                           (operand.w_offsets[w] + operand.k_offsets[block.begin + row]) * operand.element;
        for (int64_t at = 0; at < panel_bytes; at += kLine) __builtin_prefetch(from + at, 0, 3);
      }
      operand.kernel_pack({.base = operand.base,
                           .w_offsets = operand.w_offsets.data() + w,
                           .width = width,
                           .w_contiguous = operand.w_run[w] >= width,
                           .k_offsets = operand.k_offsets.data() + block.begin + k,
                           .k_run = operand.k_run.data() + block.begin + k,
                           .count = std::min(step, block.count - k)},
                          out + (panel - begin) * panel_stride + k * operand.k_bytes);
    }
  }
}

Gemm::Operand Gemm::a_operand(const void* a) const {
  return {.kernel_pack = kernel_->pack_a,
          .kernel_across = kernel_->pack_a_across,
          .base = a,
          .w_offsets = spec_.a_row,
          .w_run = a_row_run_,
          .k_offsets = spec_.a_col,
          .k_run = a_col_run_,
          .element = element_bytes(spec_.in),
          .width = kernel_->mr,
          .k_bytes = kernel_->a_bytes};
}

Gemm::Operand Gemm::b_operand(GemmB b) const {
  return {.kernel_pack = kernel_->pack_b,
          .kernel_across = kernel_->pack_b_across,
          .base = b.data,
          .w_offsets = spec_.b_col,
          .w_run = b_col_run_,
          .k_offsets = spec_.b_row,
          .k_run = b_row_run_,
          .element = b_element_bytes(spec_),
          .width = kernel_->nr,
          .k_bytes = kernel_->b_bytes,
          .scales = b.scales};
}

void Gemm::pack(machine::ThreadPool& pool, const Operand& operand, std::span<const int64_t> offsets,
                int64_t begin, int64_t end, std::byte* out) const {
  const int64_t panels = end - begin;
  const int64_t blocks = static_cast<int64_t>(blocks_.size());
  const int64_t parts = ceil_div(panels, kPanelsATask);
  pool.run_tiles(static_cast<int64_t>(offsets.size()) * parts * blocks, [&](int64_t tile) {
    const KBlock& block = blocks_[tile % blocks];
    const Span& span = spans_[block.span];
    const int64_t which = tile / blocks / parts, part = tile / blocks % parts;
    const int64_t from = panels * part / parts, to = panels * (part + 1) / parts;
    Operand matrix = operand;
    matrix.base = static_cast<const std::byte*>(operand.base) + offsets[which] * operand.element;
    const int64_t at = panels * (which * packed_k_ + span.packed_begin) + from * span.packed_count +
                       block.packed_begin - span.packed_begin;
    pack_panels(matrix, block, begin + from, begin + to, out + at * operand.k_bytes,
                span.packed_count * operand.k_bytes);
  });
}

void Gemm::pack_chunk(machine::ThreadPool& pool, GemmB b, const Chunk& chunk, std::byte* out) const {
  pack(pool, b_operand(b), std::span(b_offsets_).subspan(chunk.b_begin, chunk.b_end - chunk.b_begin),
       chunk.panel_begin, chunk.panel_end, out);
}

void Gemm::multiply_chunk(machine::ThreadPool& pool, const void* a, const Chunk& chunk,
                          const std::byte* packed, void* c, bool go_on, bool half) const {
  const int64_t panels = chunk.panel_end - chunk.panel_begin;
  const int64_t first_entry = entry_begin_[chunk.b_begin];
  const int64_t products = entry_begin_[chunk.b_end] - first_entry;
  if (products == 0 || panels == 0 || m_panels_ == 0) return;
  // Row blocks of nearly equal height, in a multiple of the threads where there are enough rows; then as many
  // column ranges as it takes to give every thread something to do.
  const int64_t threads = pool.threads();
  const int64_t panel_bytes = std::max<int64_t>(1, packed_k_ * kernel_->a_bytes);
  const int64_t block_panels = std::max<int64_t>(kernel_->mc / kernel_->mr, kSharedABytes / panel_bytes);
  int64_t row_blocks = ceil_div(m_panels_, block_panels);
  if (threads > 1)
    row_blocks = std::max(row_blocks,
                          std::min(ceil_div(threads * kBlocksAThread, products), m_panels_ / kBlockPanels));
  if (row_blocks > 1 && products == 1) row_blocks = std::min(m_panels_, round_up(row_blocks, threads));
  if (half) row_blocks = std::max(row_blocks, std::min(m_panels_, kHalfBlocks));
  const int64_t wanted = threads == 1 ? 1 : 2 * threads;
  const int64_t column_ranges =
      row_blocks * products >= wanted ? 1 : std::min(panels, ceil_div(wanted, row_blocks * products));
  pool.run_tiles(products * row_blocks * column_ranges, [&](int64_t tile) {
    const int64_t range = tile % column_ranges;
    const int64_t row = tile / column_ranges % row_blocks;
    const int64_t entry = entries_[first_entry + tile / column_ranges / row_blocks];
    const int64_t b = std::upper_bound(entry_begin_.begin(), entry_begin_.end(),
                                       first_entry + tile / column_ranges / row_blocks) -
                      entry_begin_.begin() - 1;
    const int64_t first_row = m_panels_ * row / row_blocks * kernel_->mr;
    const int64_t diagonal = half ? first_row / kernel_->nr - chunk.panel_begin : 0;
    const int64_t begin = std::max(panels * range / column_ranges, diagonal),
                  end = panels * (range + 1) / column_ranges;
    const GemmBlock::Place place = {
        .offsets = spec_.batch[entry],
        .row_panel_begin = m_panels_ * row / row_blocks,
        .row_panel_end = m_panels_ * (row + 1) / row_blocks,
        .panel_begin = chunk.panel_begin + begin,
        .panel_end = chunk.panel_begin + end,
        .packed_b = packed + (b - chunk.b_begin) * panels * packed_k_ * kernel_->b_bytes,
        .packed_begin = chunk.panel_begin,
        .packed_panels = panels,
        .go_on = go_on};
    if (begin < end) GemmBlock(*this, place, a, nullptr, c).run();
  });
}

void Gemm::pack_b(machine::ThreadPool& pool, GemmB b, PackedB& out) const {
  const Chunk all = {0, static_cast<int64_t>(b_offsets_.size()), 0, n_panels_};
  out.bytes_ = all.b_end * n_panels_ * packed_k_ * kernel_->b_bytes;
  if (out.bytes_ > out.capacity_) {
    out.data_ = allocate_aligned(static_cast<size_t>(out.bytes_));
    out.capacity_ = out.bytes_;
  }
  out.kernel_ = kernel_;
  out.segment_ends_ = spec_.segment_ends;
  pack_chunk(pool, b, all, out.data_.get());
}

void Gemm::run_wide(machine::ThreadPool& pool, const void* a, GemmB b, void* c, bool go_on) const {
  std::byte* packed_a = nullptr;
  if (!rows_a_) {
    packed_a = packed_scratch.get(m_panels_ * packed_k_ * kernel_->a_bytes);
    pack(pool, a_operand(a), {&spec_.batch[0].a, 1}, 0, m_panels_, packed_a);
  }
  const GemmB base(static_cast<const std::byte*>(b.data) + spec_.batch[0].b * b_element_bytes(spec_),
                   b.scales);
  const int64_t threads = pool.threads();
  // Every range reads all of A, so no range should be narrow.
  const int64_t each = std::clamp<int64_t>(n_panels_ / (threads * kWidePanels), 1, 4);
  const int64_t ranges = threads == 1 ? 1 : std::min(n_panels_, threads * each);
  pool.run_tiles(ranges, [&](int64_t range) {
    const GemmBlock::Place place = {.offsets = spec_.batch[0],
                                    .row_panel_begin = 0,
                                    .row_panel_end = m_panels_,
                                    .panel_begin = n_panels_ * range / ranges,
                                    .panel_end = n_panels_ * (range + 1) / ranges,
                                    .packed_a = packed_a,
                                    .go_on = go_on};
    GemmBlock(*this, place, a, base, c).run();
  });
}

// Three ways. With few rows of A, B is read where it lies (run_few_rows, run_few_int8). When C is wider than
// high and A is small, A is packed for all threads, and each thread packs its own panels of B (run_wide).
// Otherwise all threads pack a chunk of B, and then share the blocks of rows that are multiplied with it.
void Gemm::run(machine::ThreadPool& pool, const void* a, GemmB b, void* c, bool go_on) const {
  OSTRO_CHECK(!go_on || (spec_.out == GemmType::kF32 && spec_.segment_ends.size() == 1),
              "a product of {} leaves that goes on from its result", spec_.segment_ends.size());
  OSTRO_CHECK(spec_.int8_b == (b.scales != nullptr), "an int8 B has scales, and no other has");
  const GemmCall call{this, a, b, c};
  if (few_ == Few::kInt8 && !go_on && takes_few(b)) return run_few_int8(pool, {&call, 1});
  if (few_ != Few::kNo && few_ != Few::kInt8) return run_few_rows(pool, {&call, 1}, go_on);
  if (wide_) return run_wide(pool, a, b, c, go_on);
  const bool half = symmetric_ && a == b.data && !go_on;
  for (const Chunk& chunk : chunks_) {
    const int64_t panels = (chunk.b_end - chunk.b_begin) * (chunk.panel_end - chunk.panel_begin);
    std::byte* packed = packed_scratch.get(panels * packed_k_ * kernel_->b_bytes);
    pack_chunk(pool, b, chunk, packed);
    multiply_chunk(pool, a, chunk, packed, c, go_on, half);
  }
  if (half) mirror(pool, c);
}

void Gemm::run(machine::ThreadPool& pool, const void* a, const PackedB& b, void* c) const {
  const Chunk all = {0, static_cast<int64_t>(b_offsets_.size()), 0, n_panels_};
  OSTRO_CHECK(b.segment_ends_ == spec_.segment_ends,
              "B was packed for a product of {} leaves, or other ones than these {}", b.segment_ends_.size(),
              spec_.segment_ends.size());
  OSTRO_CHECK(b.kernel_ == kernel_ && b.bytes_ == all.b_end * n_panels_ * packed_k_ * kernel_->b_bytes,
              "B was packed for another product or instruction set ({} bytes)", b.bytes_);
  multiply_chunk(pool, a, all, b.data_.get(), c, false);
}

}  // namespace ostro::kernels
