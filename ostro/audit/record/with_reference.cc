#include "ostro/audit/record/with_reference.h"

#include <fmt/format.h>

#include "ostro/audit/record/witness.h"
#include "ostro/train/step/reference.h"

namespace ostro::audit {

Result<std::shared_ptr<const batches::DataSet>> with_reference(
    io::FileSystem& fs, const train::TrainConfig& config, const std::string& checkpoint,
    std::shared_ptr<const batches::DataSet> stores) {
  if (train::dpo_objective(config.objective) == nullptr) return stores;
  ASSIGN_OR_RETURN(const auto run, run_of_checkpoint(fs, checkpoint));
  if (!run)
    return invalid_argument(
        fmt::format("{} is in no run, and pairs are compared with what a run's first weights give to them; "
                    "name a run of objective dpo, or a checkpoint in its directory",
                    checkpoint));
  ASSIGN_OR_RETURN(auto out, train::with_reference_of(fs, *run, std::move(stores)));
  if (out->parts()[0].scores[0] == nullptr)
    return invalid_argument(fmt::format(
        "{} was not trained on pairs, so it has no reference for them; name a run of objective dpo", *run));
  return out;
}

}  // namespace ostro::audit
