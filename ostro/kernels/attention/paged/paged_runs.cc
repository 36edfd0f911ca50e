#include "ostro/kernels/attention/paged/paged_runs.h"

#include <algorithm>

#include "ostro/ir/program/attention_limits.h"

namespace ostro::kernels {
namespace {

using ir::kPageSlots;

// The first page of which a row at this position sees a key; the last one is position / 128.
int64_t first_page(const PagedAttention& a, int64_t position) {
  return a.window > 0 && position >= a.window ? (position - a.window + 1) / kPageSlots : 0;
}

// Appends the row to the run if it goes on in the same sequence. A page enters with the first row that
// reaches it; a later row that sees it must name the same one.
bool append(const PagedAttention& a, PagedRun& run, int64_t row) {
  const int64_t position = a.position[row];
  if (position != run.position + run.rows) return false;
  const int32_t* table = a.table + row * a.entries;
  const auto held = run.first_page + static_cast<int64_t>(run.pages.size());
  for (int64_t p = std::max(run.first_page, first_page(a, position)); p < held; ++p)
    if (table[p] != run.pages[static_cast<size_t>(p - run.first_page)]) return false;
  for (int64_t p = held; p <= position / kPageSlots; ++p) run.pages.push_back(table[p]);
  ++run.rows;
  return true;
}

PagedRun run_from(const PagedAttention& a, int64_t row) {
  PagedRun run;
  run.first = row;
  run.position = a.position[row];
  run.first_page = first_page(a, run.position);
  append(a, run, row);
  return run;
}

}  // namespace

std::vector<PagedRun> paged_runs(const PagedAttention& a) {
  std::vector<PagedRun> runs;
  for (int64_t r = 0; r < a.rows; ++r) {
    if (a.position[r] < 0) continue;
    if (!runs.empty() && runs.back().first + runs.back().rows == r && append(a, runs.back(), r)) continue;
    runs.push_back(run_from(a, r));
  }
  return runs;
}

PagedRun part_of_run(const PagedAttention& a, const PagedRun& run, int64_t begin, int64_t end) {
  PagedRun part = run_from(a, run.first + begin);
  for (int64_t r = begin + 1; r < end; ++r) append(a, part, run.first + r);
  return part;
}

}  // namespace ostro::kernels
