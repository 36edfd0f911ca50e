#include "ostro/data/store/store_text.h"

#include <fmt/format.h>

#include "ostro/data/store/store_stats.h"

namespace ostro::data {

std::string place_text(const std::string& cache_dir, const StoreLedger& ledger, const std::string& files) {
  const size_t parts = ledger.parts.size();
  if (ledger.levanter_cache.empty())
    return fmt::format("{}: {}{}\n", cache_dir, files,
                       parts == 0 ? "" : fmt::format(", the rows in {} stores, used in place", parts));
  const std::string& name = ledger.levanter_tokenizer;
  return fmt::format("{}: a Levanter cache{}{}, used in place\n", ledger.levanter_cache,
                     parts == 0 ? "" : fmt::format(" of {} shards", parts),
                     name.empty() ? "" : fmt::format(" with the ids of {}", name));
}

std::string counts_text(std::span<const FileLedger> files) {
  const FileCounts counts = file_counts(files);
  std::string out;
  if (counts.empty > 0) out += fmt::format("skipped     {} empty documents\n", counts.empty);
  if (counts.no_loss > 0)
    out += fmt::format("skipped     {} documents whose loss weights are all 0\n", counts.no_loss);
  if (counts.skipped > 0)
    out += fmt::format("skipped     {} malformed rows (data.on_bad_row: skip)\n", counts.skipped);
  for (const auto& [reason, rows] : counts.left_out)
    out += fmt::format("left out    {} rows: {} (rows)\n", rows, reason);
  if (counts.repaired > 0)
    out += fmt::format("repaired    {} documents with malformed UTF-8 (read as U+FFFD)\n", counts.repaired);
  return out;
}

}  // namespace ostro::data
