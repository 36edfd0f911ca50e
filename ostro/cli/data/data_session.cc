#include "ostro/cli/data/data_session.h"

#include "ostro/shell/shared/progress.h"

namespace ostro::cli {

int with_data_session(const Args& args, const std::string& component,
                      const std::function<Status(const prepare::Session&)>& work,
                      prepare::MissingTokenizer missing) {
  BuildProgressLine line;
  const auto done = [&]() -> Status {
    ASSIGN_OR_RETURN(const train::TrainConfig config, args.load_config());
    ASSIGN_OR_RETURN(const data::BuildSettings settings, build_settings(line));
    ASSIGN_OR_RETURN(const prepare::Session session,
                     prepare::open_session(args.context().fs, config.data, config.model_options().seq_len(),
                                           component, missing, settings));
    return work(session);
  }();
  return exit_after(done);
}

}  // namespace ostro::cli
