#include "ostro/run/loop/restore_together.h"

#include <fmt/format.h>

#include "ostro/base/log.h"
#include "ostro/chain/canonical.h"

namespace ostro::run {

Result<Resumption> restore_together(
    train::SpreadState& state, io::FileSystem& fs, Resumption from,
    const std::function<Result<Resumption>(std::optional<int64_t> before)>& plan) {
  std::string first;  // what is wrong with the newest
  const std::string config = train::canonical_text(from.config);
  while (from.state.step > 0) {
    const int64_t step = from.state.step;
    ASSIGN_OR_RETURN(const train::CellsRead read, state.restore(fs, from.checkpoint, step, !from.named));
    std::string how = "damaged", why = read.unfit;
    if (why.empty() && !from.named)
      if (const Status fits = from.check_prints(read.prints); !fits.ok())
        how = "refused", why = fits.error().message();
    if (why.empty()) return from;
    const std::string warning =
        fmt::format("checkpoint {} is {} and is passed over: {}", from.checkpoint, how, why);
    log_warning(warning);
    if (first.empty()) first = warning;
    const std::string path = from.checkpoint;
    ASSIGN_OR_RETURN(from, plan(step));
    if (from.state.step > 0 && train::canonical_text(from.config) != config)
      return corrupt(
          fmt::format("{}; the one before it, {}, is from before an amend; move {} away and start "
                      "the same command again",
                      warning, from.checkpoint, path));
  }
  if (first.empty()) return from;
  return corrupt(
      fmt::format("none of the checkpoints can be used; the newest: {}. Restore one from a copy, or "
                  "move the folder away to begin again from the first step",
                  first));
}

}  // namespace ostro::run
