#include "ostro/cuda/text/write_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/compile/text/expressions.h"
#include "ostro/cuda/text/nest_writer.h"

namespace ostro::cuda {

using compile::Nest;
using compile::NestKind;
using compile::register_type;

namespace {

// Blocks are made smaller before they are fewer than this.
constexpr int64_t kBlocksWanted = 512;
// Rows up to this length are numbered with 32 bits, the elements of a block behind them included.
constexpr int64_t kShortRow = int64_t{1} << 30;

int64_t blocks_of(int64_t n, int64_t each) { return (n + each - 1) / each; }

}  // namespace

int elements_of_thread(const Nest& nest) {
  int64_t bytes = 0;
  for (size_t k = 0; k < nest.accesses.size(); ++k)
    if (!nest.accesses[k].store && (nest.inner_stride(k) != 0))
      bytes += ir::dtype_size(nest.accesses[k].dtype);
  return bytes == 0 || bytes > 8 ? 1 : bytes > 4 ? 2 : 4;
}

// The element number `at` of the block, as row and j. In the loop over loads it is bounded: those behind the
// last element read that one.
std::string NestWriter::flat_place(bool bounded) const {
  const int64_t n = std::max<int64_t>(1, nest_.row_size());
  std::string text = "    const int at = THREAD + e * THREADS;\n";
  const std::string here = bounded ? "(at < left ? at : left - 1)" : "at";
  if (nest_.outer.empty()) return text + fmt::format("    const i64 j = first + {};\n    (void)j;\n", here);
  const char* type = n <= kShortRow ? "u32" : "i64";
  return text +
         fmt::format(
             "    const {0} place = j0 + {1};\n    const i64 row = row0 + place / {2};\n    const {0} j "
             "= place % {2};\n    (void)j;\n",
             type, here, n);
}

std::string NestWriter::flat() {
  std::string text;
  for (const int32_t i : nest_.passes[0].ops) compute(i, text);
  for (const int32_t i : nest_.passes[0].stores) text += store(i, stored_index(i));
  if (nest_.outer.empty())
    return "  const i64 j = global_thread();\n  if (j >= a.extent) return;\n" + pointers('q') + text;
  const int64_t n = nest_.row_size();
  return fmt::format(
             "  const i64 t = global_thread();\n  if (t >= a.extent * {0}ll) return;\n  const i64 row = t "
             "/ {0}ll, j = t % {0}ll;\n",
             n) +
         pointers('q') + text;
}

std::string NestWriter::flat_side_by_side() {
  const int each = elements_of_thread(nest_);
  const int64_t n = std::max<int64_t>(1, nest_.row_size());
  std::string text = fmt::format("  const i64 first = BLOCK_X * THREADS * {0};\n", each);
  const std::string total = nest_.outer.empty() ? "a.extent" : fmt::format("a.extent * {}ll", n);
  text += fmt::format("  const int left = {0} - first < {1} ? (int)({0} - first) : {1};\n", total,
                      kFlatThreads * each);
  if (!nest_.outer.empty())
    text += fmt::format("  const i64 row0 = first / {0}ll;\n  const {1} j0 = first % {0}ll;\n", n,
                        n <= kShortRow ? "u32" : "i64");
  const std::string loop = fmt::format("#pragma unroll\n  for (int e = 0; e < {}; ++e) {{\n", each);
  // All loads of a thread come before its stores, so that they are on their way at the same time.
  std::string arrays, body = loop + flat_place(true) + pointers('q');
  for (size_t k = 0; k < nest_.accesses.size(); ++k) {
    if (nest_.accesses[k].store) continue;
    arrays += fmt::format("  {} x{}[{}];\n", register_type(nest_.accesses[k].dtype), k, each);
    body += fmt::format("    x{}[e] = {};\n", k, load(k));
    loads_[k] = fmt::format("x{}[e]", k);
  }
  text += arrays + body + "  }\n" + loop + flat_place(false) + "    if (at >= left) break;\n" + pointers('q');
  for (const int32_t i : nest_.passes[0].ops) compute(i, text);
  for (const int32_t i : nest_.passes[0].stores) text += store(i, stored_index(i));
  return text + "  }\n";
}

std::string write_nests(std::span<const Nest> nests, bool fast) {
  std::string text;
  for (size_t i = 0; i < nests.size(); ++i) text += NestWriter(nests[i], fmt::format("k{}", i), fast).write();
  return text;
}

NestLaunch launch_of(const Nest& nest, int64_t extent, bool fast) {
  const int64_t n = nest.row_size();
  if (nest.kind == NestKind::kRows) return {.blocks = extent, .threads = 64, .extent = extent};
  if (nest.kind == NestKind::kSerial) {
    const int64_t rows = extent / ((n + nest.tile - 1) / nest.tile), outputs = rows * n;
    if (is_staged(nest, fast))
      return {.blocks = blocks_of(outputs, kStagedOutputs), .threads = 32 + kStagedMakers, .extent = rows};
    const int threads = fast && outputs < 256 * kBlocksWanted ? 64 : 256;
    return {.blocks = blocks_of(outputs, threads), .threads = threads, .extent = rows};
  }
  const int64_t elements = nest.outer.empty() ? extent : extent * n;
  const int each = fast ? elements_of_thread(nest) : 1;
  int threads = kFlatThreads;
  while (fast && threads > 64 && blocks_of(elements, threads * each) < kBlocksWanted) threads /= 2;
  return {.blocks = blocks_of(elements, threads * each), .threads = threads, .extent = extent};
}

}  // namespace ostro::cuda
