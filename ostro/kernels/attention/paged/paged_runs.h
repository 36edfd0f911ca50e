// PagedRun, paged_runs: rows of one step that follow each other in one sequence, and the pages they see.
#pragma once

#include <vector>

#include "ostro/kernels/attention/paged/paged.h"

namespace ostro::kernels {

// Rows [first, first + rows) at positions `position`, `position` + 1, ...; page first_page + i of the
// sequence is page pages[i] of the pools. The pages are those of which some row sees a key.
struct PagedRun {
  int64_t first = 0, rows = 0;
  int64_t position = 0;
  int64_t first_page = 0;
  std::vector<int32_t> pages;
};

// The runs of a step, in order of rows and as long as they can be. Rows of padding are in none.
std::vector<PagedRun> paged_runs(const PagedAttention& args);

// A part of a run: rows [begin, end) of it.
PagedRun part_of_run(const PagedAttention& args, const PagedRun& run, int64_t begin, int64_t end);

}  // namespace ostro::kernels
