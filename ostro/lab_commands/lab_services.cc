#include "ostro/lab_commands/lab_services.h"

#include "ostro/shell/shared/train_run.h"
#include "ostro/shell/words/version.h"

namespace ostro::cli {

lab::Services lab_services(const Context& context, const data::BuildSettings& build,
                           const std::vector<std::string>& argv, std::optional<int64_t> workers) {
  return {.build = build,
          .train =
              [&context, &argv, workers](const train::TrainConfig& config, bool amend,
                                         std::optional<int64_t> planned, std::optional<int64_t> until) {
                return train_here(context.on(config.trainer.device), config, argv, {}, amend,
                                  workers ? workers : planned, {}, until);
              },
          .version = program_version()};
}

}  // namespace ostro::cli
