#include "ostro/run/fork/missing_state.h"

#include <fmt/format.h>

#include <optional>

#include "ostro/chain/clock_text.h"
#include "ostro/chain/record.h"
#include "ostro/io/files/path.h"

namespace ostro::run {
namespace {

// "3 steps, about 12 s (run.json)".
std::string steps_text(io::FileSystem& fs, const std::string& run, int64_t steps) {
  const auto record = chain::read_record(fs, io::join_path(run, chain::kRecordFile));
  const double seconds = record.ok() ? chain::seconds_a_step(*record) : 0;
  return fmt::format("{} step{}{}", steps, steps == 1 ? "" : "s",
                     seconds > 0 ? fmt::format(", about {} (run.json)",
                                               chain::duration_text(seconds * static_cast<double>(steps)))
                                 : "");
}

}  // namespace

Error missing_state(io::FileSystem& fs, const std::string& run, const chain::Chain& chain, int64_t step,
                    const std::string& asked) {
  std::optional<int64_t> below, above;
  for (const chain::ChainLink& link : chain.links)
    if (const auto* entry = std::get_if<chain::CheckpointEntry>(&link.entry)) {
      if (entry->step < step) below = entry->step;
      if (entry->step > step && !above) above = entry->step;
    }
  std::string text = fmt::format("{} {}: the chain of {}, which ends at step {}, names no state of this step",
                                 asked, step, run, chain.last_step());
  if (below || above)
    text += fmt::format(
        "; the nearest are those of step{} {}", below && above ? "s" : "",
        below && above ? fmt::format("{} and {}", *below, *above) : std::to_string(below ? *below : *above));
  else
    text += ", since the run has no permanent checkpoint";
  if (step <= chain.genesis().step()) return invalid_argument(text);
  const std::string keep = fmt::format("trainer.checkpointer.keep '[{{every: {}}}]'", step);
  if (below)
    return invalid_argument(fmt::format("{}. A fork at step {} with {} has it after {}", text, *below, keep,
                                        steps_text(fs, run, step - *below)));
  return invalid_argument(fmt::format("{}. A run from its beginning on with {} has it after {}", text, keep,
                                      steps_text(fs, run, step - chain.genesis().step())));
}

}  // namespace ostro::run
