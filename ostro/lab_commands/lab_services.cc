#include "ostro/lab_commands/lab_services.h"

#include "ostro/shell/shared/train_run.h"
#include "ostro/shell/words/version.h"

namespace ostro::cli {

lab::Services lab_services(const Context& context, const data::BuildSettings& build,
                           const std::vector<std::string>& argv) {
  return {.build = build,
          .train =
              [&](const train::TrainConfig& config, bool amend, std::optional<int64_t> workers) {
                return train_here(context.on(config.trainer.device), config, argv, {}, amend, workers);
              },
          .version = program_version()};
}

}  // namespace ostro::cli
