#include "ostro/products/few/few_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ostro/machine/machine.h"
#include "ostro/products/few/scratch.h"

namespace ostro::kernels {
namespace {

// Columns of a strip, which is gone through kFewSteps steps at a time, and its most sums.
constexpr int64_t kFewStrip = 4096, kFewStripSums = 4096;
// The most rows of bf16 that go through a group of N7 in parts.
constexpr int64_t kFewRowsInParts = 2;
// Bytes of B between what is read and what is prefetched, at least. A Zen 4 has twice as many lines on their
// way to the second cache as to the first, so it prefetches into that one, further ahead. An Intel Xeon gets
// 5 to 15 % more of memory by prefetching into the first.
constexpr int64_t kBytesAheadFar = 24576, kBytesAheadNear = 16384;
// Ranges for each thread, where none becomes narrower than this. In narrow ranges of `across` the memory
// gives less, because each row of B is left after few lines: 0.57 of its rate at 256 columns of bf16, 0.79 at
// 1,024.
constexpr int64_t kRangesAThread = 2, kAcrossColumns = 1024, kAlongColumns = 64;

thread_local Scratch few_x_scratch;
thread_local Scratch few_sums_scratch;
thread_local Scratch few_rows_scratch;

int64_t up_to(int64_t a, int64_t unit) { return ceil_div(a, unit) * unit; }

// One call's part that all strips share: with A as FewSums wants it, leaf by leaf.
struct FewPrepared {
  const FewProduct& p;
  std::vector<int64_t> x_begin;  // where that of each leaf begins
  int64_t words = 0;             // of A
  int64_t slots = 1;             // partials of trees that are alive at once
  const uint32_t* x = nullptr;

  explicit FewPrepared(const FewProduct& product) : p(product) {
    int64_t begin = 0;
    for (const int64_t end : p.leaf_ends) {
      x_begin.push_back(words);
      words += steps_of_x(p.f32 ? end - begin : up_to(end - begin, kFewGroup)) * p.m();
      begin = end;
    }
    for (const int64_t count : p.tree_counts) slots += std::bit_width(static_cast<uint64_t>(count - 1));
  }

  int64_t element() const { return p.f32 ? 4 : 2; }
  FewLeft left() const { return p.order == FewOrder::kPanels ? p.kernel->panel_left : p.kernel->left; }
  // Words of A for so many steps of one row.
  int64_t steps_of_x(int64_t steps) const { return left() == FewLeft::kSteps ? steps : steps / 2; }
  int64_t leaf_begin(int64_t leaf) const { return leaf == 0 ? 0 : p.leaf_ends[leaf - 1]; }
  const std::byte* at(int64_t step, int64_t column) const {
    return static_cast<const std::byte*>(p.b) + (p.b_row[step] + p.b_col[column]) * element();
  }
  int64_t strip() const {
    const int64_t unit = p.kernel->unit;
    switch (p.order) {
      case FewOrder::kAcross: return std::max(unit, std::min(kFewStrip, kFewStripSums / p.m() / unit * unit));
      case FewOrder::kAlong: return unit;
      case FewOrder::kPanels: return kFewPanels * unit;
    }
    return unit;
  }
};

// The sums of neighbouring columns, at most FewPrepared::strip() of them.
class FewStrip {
 public:
  // `then`: the column that is gone on with, or -1.
  FewStrip(const FewPrepared& product, int64_t first, int64_t columns, int64_t then)
      : p_(product),
        first_(first),
        columns_(columns),
        then_(then),
        padded_(up_to(columns, product.p.kernel->unit)),
        stride_(padded_ + kFewLine / 4),
        slot_(product.p.m() * stride_),
        sums_(reinterpret_cast<float*>(few_sums_scratch.get(((product.slots + 2) * slot_ + padded_) * 4))),
        chains_(sums_ + product.slots * slot_) {}

  void run() {
    tree(0, 0, p_.p.tree_counts[0], 0);
    for (int64_t row = 0; row < p_.p.m(); ++row) store(row);
  }

 private:
  // N8, as GemmBlock::tree.
  void tree(size_t level, int64_t first, int64_t count, int64_t slot) {
    const std::span<const int64_t> counts = p_.p.tree_counts;
    float* to = sums_ + slot * slot_;
    if (count == 1) {
      if (level + 1 < counts.size())
        return tree(level + 1, first * counts[level + 1], counts[level + 1], slot);
      begin(to);
      switch (p_.p.order) {
        case FewOrder::kAcross: return across(first, to);
        case FewOrder::kAlong: return along(first, to);
        case FewOrder::kPanels: return panels(first, to);
      }
    }
    const auto left = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count - 1)));
    tree(level, first, left, slot);
    tree(level, first + left, count - left, slot + 1);
    for (int64_t i = 0; i < slot_; ++i) to[i] = to[i] + to[slot_ + i];
  }

  const uint8_t* order() const {
    switch (p_.p.order) {
      case FewOrder::kAcross: return p_.p.kernel->column_of;
      case FewOrder::kAlong: return nullptr;
      case FewOrder::kPanels: return p_.p.kernel->panel_column_of;
    }
    return nullptr;
  }
  int64_t place(int64_t position) const {
    const uint8_t* order = this->order();
    const int64_t unit = p_.p.kernel->unit;
    return order == nullptr ? position : position / unit * unit + order[position % unit];
  }

  // The sums before the first step: +0, or what C holds.
  void begin(float* sums) const {
    std::memset(sums, 0, static_cast<size_t>(slot_) * 4);
    if (!p_.p.go_on) return;
    const auto* c = static_cast<const float*>(p_.p.c);
    for (int64_t row = 0; row < p_.p.m(); ++row)
      for (int64_t i = 0; i < padded_; ++i)
        if (place(i) < columns_) sums[row * stride_ + i] = c[p_.p.c_row[row] + p_.p.c_col[first_ + place(i)]];
  }

  void store(int64_t row) {
    const float* from = sums_ + row * stride_;
    if (order() != nullptr) {
      float* ordered = chains_ + 2 * slot_;
      for (int64_t i = 0; i < padded_; ++i) ordered[place(i)] = from[i];
      from = ordered;
    }
    const int64_t to = p_.p.c_row[row];
    const int64_t* columns = p_.p.c_col.data() + first_;
    if (p_.p.out_f32) {
      auto* c = static_cast<float*>(p_.p.c) + to;
      if (p_.p.c_runs) std::memcpy(c + columns[0], from, static_cast<size_t>(columns_) * 4);
      for (int64_t i = 0; i < columns_ && !p_.p.c_runs; ++i) c[columns[i]] = from[i];
      return;
    }
    auto* c = static_cast<uint16_t*>(p_.p.c) + to;
    if (p_.p.c_runs) return p_.p.round_row(from, columns_, c + columns[0]);
    uint16_t rounded[kFewStrip];
    p_.p.round_row(from, columns_, rounded);
    for (int64_t i = 0; i < columns_; ++i) c[columns[i]] = rounded[i];
  }

  // B with contiguous columns. Rows of a strip narrower than a unit are read through a buffer; rows beyond a
  // leaf's end are zeros, as N7 wants.
  void across(int64_t leaf, float* sums) const {
    const int64_t begin = p_.leaf_begin(leaf), count = p_.p.leaf_ends[leaf] - begin;
    const int64_t bytes = padded_ * p_.element();
    const bool f32 = p_.p.f32, narrow = columns_ < padded_;
    // The fewest rows of bf16 go through a group in parts, which keeps the streams few. With more rows the
    // time goes into products, and their chains stay in registers.
    const int64_t block = f32 || p_.p.m() <= kFewRowsInParts ? kFewSteps : kFewGroup;
    static const bool near = !machine::detect_machine().amd;
    const int64_t ahead_by = ceil_div(near ? kBytesAheadNear : kBytesAheadFar, block * bytes) * block;
    const void *w[kFewGroup], *ahead[kFewGroup];
    auto* buffer = few_rows_scratch.get((block + 1) * bytes);
    std::memset(buffer, 0, static_cast<size_t>((block + 1) * bytes));
    FewSums s{p_.x + p_.x_begin[leaf], static_cast<int>(p_.p.m()), sums, stride_, chains_};
    const int64_t steps = f32 ? count : up_to(count, kFewGroup);
    for (int64_t k = 0; k < steps; k += block) {
      for (int64_t i = 0; i < block; ++i) {
        const bool exists = k + i < count;
        w[i] = exists ? p_.at(begin + k + i, first_) : buffer + block * bytes;
        if (narrow && exists)
          w[i] = std::memcpy(buffer + i * bytes, w[i], static_cast<size_t>(columns_ * p_.element()));
        ahead[i] = after(begin + k + ahead_by + i);
      }
      const auto in = static_cast<int>(f32 ? 0 : k % kFewGroup);
      p_.p.kernel->across({w, ahead, near, static_cast<int>(std::min(block, steps - k)), in, padded_}, s);
      if (f32 || in + block == kFewGroup)
        s.x = static_cast<const uint32_t*>(s.x) + p_.steps_of_x(f32 ? block : kFewGroup) * p_.p.m();
    }
  }

  // The row that is read after the last ones: this strip's row k, or one of the strip that follows.
  const std::byte* after(int64_t k) const {
    if (k < p_.p.k()) return p_.at(k, first_);
    return p_.at(std::min(k - p_.p.k(), p_.p.k() - 1), then_ < 0 ? first_ : then_);
  }

  // B with a contiguous contraction, one unit of columns. What does not fill a line of each column is read
  // through a buffer, with zeros behind it.
  void along(int64_t leaf, float* sums) const {
    const int64_t begin = p_.leaf_begin(leaf), count = p_.p.leaf_ends[leaf] - begin;
    if (count == 0) return;
    const int64_t per_line = kFewLine / p_.element(), chunks = count / per_line, rest = count % per_line;
    const auto leaves = static_cast<int64_t>(p_.p.leaf_ends.size());
    const bool last = leaf + 1 == leaves || p_.leaf_begin(leaf + 1) == p_.p.k();
    const int64_t unit = p_.p.kernel->unit;
    const void *w[kFewUnit], *ahead[kFewUnit];
    for (int64_t j = 0; j < unit; ++j) {
      const int64_t column = first_ + std::min(j, columns_ - 1);
      w[j] = p_.at(begin, column);
      ahead[j] = last ? p_.at(0, then_ < 0 ? column : std::min(then_ + j, p_.p.n() - 1))
                      : p_.at(p_.leaf_begin(leaf + 1), column);
    }
    FewSums s{p_.x + p_.x_begin[leaf], static_cast<int>(p_.p.m()), sums, stride_};
    if (chunks > 0) p_.p.kernel->along({w, ahead, chunks, static_cast<int>(per_line)}, s);
    if (rest == 0) return;
    alignas(64) std::byte lines[kFewUnit][kFewLine] = {};
    for (int64_t j = 0; j < unit; ++j) {
      const auto* from = static_cast<const std::byte*>(w[j]) + chunks * kFewLine;
      w[j] = std::memcpy(lines[j], from, static_cast<size_t>(rest * p_.element()));
    }
    s.x = static_cast<const uint32_t*>(s.x) + p_.steps_of_x(chunks * per_line) * p_.p.m();
    const bool f32 = p_.p.f32;
    p_.p.kernel->along({w, w, 1, static_cast<int>(f32 ? rest : per_line)}, s);
  }

  // B in panels. The steps of bf16 that do not fill a group are read through a buffer, with zeros behind
  // them.
  void panels(int64_t leaf, float* sums) const {
    const int64_t begin = p_.leaf_begin(leaf), count = p_.p.leaf_ends[leaf] - begin;
    if (count == 0) return;
    const int64_t unit = p_.p.kernel->unit, whole = p_.p.f32 ? count : count / kFewGroup * kFewGroup;
    const auto panels = static_cast<int>(columns_ / unit);
    const void* w[kFewPanels];
    for (int p = 0; p < panels; ++p) w[p] = p_.at(begin, first_ + p * unit);
    FewSums s{p_.x + p_.x_begin[leaf], static_cast<int>(p_.p.m()), sums, stride_};
    p_.p.kernel->panels({w, panels, whole}, s);
    if (whole == count) return;
    alignas(64) uint16_t rest[kFewPanels][kFewGroup * kFewUnit] = {};
    for (int p = 0; p < panels; ++p)
      w[p] = std::memcpy(rest[p], p_.at(begin + whole, first_ + p * unit),
                         static_cast<size_t>((count - whole) * unit * 2));
    s.x = static_cast<const uint32_t*>(s.x) + p_.steps_of_x(whole) * p_.p.m();
    p_.p.kernel->panels({w, panels, kFewGroup}, s);
  }

  const FewPrepared& p_;
  // Sums of a row, between rows, and of all rows: a stride that is no power of two, so that rows do not
  // compete for the same sets of a cache.
  const int64_t first_, columns_, then_, padded_, stride_, slot_;
  float *const sums_, *const chains_;
};

// A row of A in each form of FewLeft: into the place of the first of its `rows` rows. Steps behind the last
// are zeros already.
template <class T>
void read_steps(const T* from, std::span<const int64_t> offsets, int64_t rows, uint32_t* to) {
  constexpr int kShift = sizeof(T) == 2 ? 16 : 0;  // bf16 to f32
  for (size_t k = 0; k < offsets.size(); ++k)
    to[static_cast<int64_t>(k) * rows] = static_cast<uint32_t>(from[offsets[k]]) << kShift;
}

// Element 4q + i of a group: of the even chain for i = 0 (high half) and 2, else of the odd one.
void read_chains(const uint16_t* from, std::span<const int64_t> offsets, int64_t rows, uint32_t* to) {
  for (int64_t k = 0; k < static_cast<int64_t>(offsets.size()); ++k) {
    const int64_t group = k / kFewGroup, in = k % kFewGroup;
    const uint32_t value = from[offsets[k]];
    to[(group * kFewGroup / 2 + in % 2 * 8 + in / 4) * rows] |= in % 4 < 2 ? value << 16 : value;
  }
}

// `runs`: the offsets ascend by one.
void read_groups(const uint16_t* from, std::span<const int64_t> offsets, bool runs, int64_t rows,
                 uint16_t* to) {
  for (size_t k = 0; k < offsets.size(); k += kFewGroup, to += kFewGroup * rows) {
    const size_t steps = std::min<size_t>(kFewGroup, offsets.size() - k);
    if (runs) std::memcpy(to, from + offsets[k], steps * 2);
    for (size_t i = 0; i < steps && !runs; ++i) to[i] = from[offsets[k + i]];
  }
}

// A as FewSums wants it, leaf by leaf.
void read_x(const FewPrepared& prepared, uint32_t* x) {
  const FewProduct& p = prepared.p;
  const int64_t rows = p.m();
  const FewLeft left = prepared.left();
  for (size_t leaf = 0; leaf < p.leaf_ends.size(); ++leaf) {
    const int64_t begin = prepared.leaf_begin(static_cast<int64_t>(leaf));
    const std::span<const int64_t> offsets = p.a_col.subspan(begin, p.leaf_ends[leaf] - begin);
    const bool runs = left == FewLeft::kGroups && ascends(offsets);
    uint32_t* to = x + prepared.x_begin[leaf];
    for (int64_t row = 0; row < rows; ++row) {
      if (p.f32) {
        read_steps(static_cast<const uint32_t*>(p.a) + p.a_row[row], offsets, rows, to + row);
        continue;
      }
      const auto* from = static_cast<const uint16_t*>(p.a) + p.a_row[row];
      switch (left) {
        case FewLeft::kSteps: read_steps(from, offsets, rows, to + row); break;
        case FewLeft::kChains: read_chains(from, offsets, rows, to + row); break;
        case FewLeft::kGroups:
          read_groups(from, offsets, runs, rows, reinterpret_cast<uint16_t*>(to) + row * kFewGroup);
          break;
      }
    }
  }
}

}  // namespace

bool ascends(std::span<const int64_t> offsets, int64_t by) {
  for (size_t i = 1; i < offsets.size(); ++i)
    if (offsets[i] != offsets[i - 1] + by) return false;
  return true;
}

// Reads A of every product once; then cuts their columns into ranges, about kRangesAThread for each thread.
// Columns after the last whole unit are a strip of their own.
void run_few_products(machine::ThreadPool& pool, std::span<const FewProduct> products) {
  struct Range {
    const FewPrepared* prepared;
    int64_t begin, end;
  };
  std::vector<FewPrepared> all;
  std::vector<Range> ranges;
  int64_t words = 0;
  for (const FewProduct& p : products) words += all.emplace_back(p).words;
  auto* x = reinterpret_cast<uint32_t*>(few_x_scratch.get(words * 4));
  std::memset(x, 0, static_cast<size_t>(words) * 4);
  const int64_t threads = pool.threads();
  for (FewPrepared& prepared : all) {
    const FewProduct& p = prepared.p;
    read_x(prepared, x);
    prepared.x = x;
    x += prepared.words;
    const int64_t least = p.order == FewOrder::kAcross ? kAcrossColumns : kAlongColumns,
                  unit = p.kernel->unit;
    const int64_t units = ceil_div(p.n(), unit);
    const int64_t each = std::clamp<int64_t>(p.n() / (threads * least), 1, kRangesAThread);
    const int64_t count = threads == 1 ? 1 : std::min(units, threads * each);
    for (int64_t r = 0; r < count; ++r)
      ranges.push_back(
          {&prepared, units * r / count * unit, std::min(p.n(), units * (r + 1) / count * unit)});
  }
  pool.run_tiles(static_cast<int64_t>(ranges.size()), [&](int64_t i) {
    const Range& range = ranges[static_cast<size_t>(i)];
    const int64_t unit = range.prepared->p.kernel->unit, strip = range.prepared->strip();
    for (int64_t first = range.begin; first < range.end;) {
      // Strips of nearly equal width.
      const int64_t rest = range.end - first;
      int64_t columns = std::min(rest, up_to(ceil_div(rest, ceil_div(rest, strip)), unit));
      if (columns > unit) columns = columns / unit * unit;
      const int64_t then = first + columns;
      FewStrip(*range.prepared, first, columns, then < range.end ? then : -1).run();
      first = then;
    }
  });
}

}  // namespace ostro::kernels
