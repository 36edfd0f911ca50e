#include "ostro/convert/configured_model.h"

#include "ostro/audit/record/with_reference.h"
#include "ostro/train/programs/programs.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/train/step/other_tokenizer.h"

namespace ostro::convert {

Result<ConfiguredModel> open_configured(const Context& context, train::TrainConfig config,
                                        const std::string& checkpoint, const data::BuildSettings& settings,
                                        trained::Trust trust) {
  io::FileSystem& fs = context.fs;
  ConfiguredModel out;
  ASSIGN_OR_RETURN(out.engine, context.engine());
  ASSIGN_OR_RETURN(out.data, train::open_data(fs, config, settings));
  out.model = train::run_model(config, out.data.tokenizer->vocab_size());
  RETURN_IF_ERROR(train::check_vocabulary(out.model, out.data.tokenizer->vocab_size()));
  if (checkpoint == "init") {
    ASSIGN_OR_RETURN(out.beginning, BorrowedImport::take(context, config));
  }
  ASSIGN_OR_RETURN(out.parameters,
                   trained::load_or_init(fs, checkpoint, config, out.model, *out.engine, trust));
  train::warn_of_other_tokenizer(fs, "--checkpoint", out.parameters.path, *out.data.tokenizer,
                                 config.data.tokenizer_path());
  ASSIGN_OR_RETURN(out.data.stores, audit::with_reference(fs, config, out.parameters.path, out.data.stores));
  out.config = std::move(config);
  return out;
}

}  // namespace ostro::convert
