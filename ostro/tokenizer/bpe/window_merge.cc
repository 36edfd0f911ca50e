#include "ostro/tokenizer/bpe/window_merge.h"

#include <algorithm>
#include <bit>

#include "ostro/base/check.h"
#include "ostro/tokenizer/bpe/short_merge.h"

namespace ostro::tokenizer {
namespace {

constexpr size_t kGrowth =
    64;  // after a failure the window grows by this factor, so the failed ones cost little in comparison

// A row is treated as a run of one id from this length on: twice the length of the part that is really
// encoded.
constexpr size_t kRun = 8 * kShortRow;

}  // namespace

void WindowMerge::merge_window(const MergeTable& table, std::span<const uint32_t> window,
                               const MergeLong& merge_long) {
  window_.ids.clear();
  window_.starts.clear();
  if (window.size() > kShortRow) return merge_long(window, window_);
  uint32_t ids[kShortRow];
  for (uint64_t alive = merge_short(table, window, ids); alive != 0; alive &= alive - 1) {
    const auto place = static_cast<uint32_t>(std::countr_zero(alive));
    window_.ids.push_back(ids[place]);
    window_.starts.push_back(place);
  }
}

// Merges the next window of `length` ids. It begins a quarter of its length before the end of the finished
// part, and its tokens are joined to that part. Returns false if a longer window is needed; then nothing has
// changed.
bool WindowMerge::extend(const MergeTable& table, std::span<const uint32_t> row, size_t length,
                         const MergeLong& merge_long) {
  const size_t margin = length / 4;
  size_t kept = count_;
  while (kept > 0 && (kept == count_ || done_.starts[kept] + margin > end_)) --kept;
  const size_t begin = count_ == 0 ? 0 : done_.starts[kept], end = std::min(begin + length, row.size());
  if (end < row.size() && end < end_ + margin) return false;
  merge_window(table, row.subspan(begin, end - begin), merge_long);

  size_t from = 0;  // tokens of the window from this index on follow the kept ones
  if (begin > 0) {
    const auto done_start = [&](size_t i) { return i < count_ ? done_.starts[i] : end_; };
    const auto window_start = [&](size_t i) {
      return i < window_.starts.size() ? begin + window_.starts[i] : end;
    };
    for (;;) {
      if (kept == count_ || from == window_.starts.size()) return false;
      const size_t a = done_start(kept), b = window_start(from);
      if (a == b && done_start(kept + 1) == window_start(from + 1)) break;
      kept += a <= b;
      from += b <= a;
    }
  }
  const auto first = static_cast<std::ptrdiff_t>(from);
  std::copy(window_.ids.begin() + first, window_.ids.end(),
            done_.ids.begin() + static_cast<std::ptrdiff_t>(kept));
  for (size_t i = from; i < window_.starts.size(); ++i)
    done_.starts[kept + i - from] = static_cast<uint32_t>(begin + window_.starts[i]);
  count_ = kept + window_.ids.size() - from;
  end_ = end;
  return true;
}

// Appends the tokens of a row that repeats a single id. Returns false if the row is different, or if a part
// of it does not begin with the same token twice; then nothing has changed.
bool WindowMerge::merge_run(const MergeTable& table, std::span<const uint32_t> row,
                            const MergeLong& merge_long, std::vector<uint32_t>& out) {
  if (row.size() < 2 * kRun || std::ranges::any_of(row, [&](uint32_t id) { return id != row[0]; }))
    return false;
  // The length of the window's first token if the second one is the same, else 0.
  const auto period = [this]() -> size_t {
    if (window_.ids.size() < 3 || window_.ids[0] != window_.ids[1]) return 0;
    return window_.starts[2] == 2 * window_.starts[1] ? window_.starts[1] : 0;
  };
  for (size_t length = kRun; 2 * length <= row.size(); length *= kGrowth) {
    merge_window(table, row.first(length), merge_long);
    const size_t step = period();
    if (step == 0) continue;
    const size_t rest = (row.size() - length) % step;
    merge_window(table, row.first(length + rest), merge_long);
    if (period() != step) continue;
    out.insert(out.end(), (row.size() - length - rest) / step, window_.ids[0]);
    out.insert(out.end(), window_.ids.begin(), window_.ids.end());
    return true;
  }
  return false;
}

// Joins windows of kShortRow ids from left to right. Where a window cannot be joined to the finished part, it
// is made kGrowth times longer; the next one is short again.
void WindowMerge::run(const MergeTable& table, std::span<const uint32_t> row, const MergeLong& merge_long,
                      std::vector<uint32_t>& out) {
  OSTRO_CHECK(row.size() < 0xFFFFFFFF / 3, "a piece of {} symbols is too long for BPE", row.size());
  if (merge_run(table, row, merge_long, out)) return;
  done_.ids.resize(std::max(done_.ids.size(), row.size()));
  done_.starts.resize(done_.ids.size());
  count_ = end_ = 0;
  while (end_ < row.size()) {
    for (size_t length = kShortRow; !extend(table, row, length, merge_long);) length *= kGrowth;
  }
  out.insert(out.end(), done_.ids.begin(), done_.ids.begin() + static_cast<std::ptrdiff_t>(count_));
}

}  // namespace ostro::tokenizer
