// The step eval.
#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/chain/canonical.h"
#include "ostro/convert/evaluate_configured.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/kinds.h"

namespace ostro::lab {

Result<std::string> make_evaluation(const Work& work, const std::string& folder) {
  const Step& training = work.input("of");
  const std::string& run = work.made_by(training).folder;
  ASSIGN_OR_RETURN(train::TrainConfig config, training_config(work.of(training), run));
  config.trainer.max_eval_batches.reset();  // all held-out texts: the limit is in no fingerprint
  trained::take_stored_matrices(work.context.fs, run, config);
  ASSIGN_OR_RETURN(const convert::ConfiguredModel model,
                   convert::open_configured(work.context.on(config.trainer.device), config, run,
                                            work.services.build, trained::Trust::kChain));
  ASSIGN_OR_RETURN(const convert::HeldOutEvaluation result, convert::evaluate_configured(model));
  nlohmann::json out = {{"step", result.step},
                        {"state", result.name},
                        {"loss", chain::hex_float(result.loss.loss)},
                        {"tokens", static_cast<int64_t>(result.loss.tokens)},
                        {"bits_per_byte", nullptr}};
  if (result.loss.bits_per_byte) out["bits_per_byte"] = chain::hex_float(*result.loss.bits_per_byte);
  for (const train::HeldOutPart& part : result.loss.parts) {
    out["parts"].push_back({{"component", part.component},
                            {"loss", chain::hex_float(part.loss)},
                            {"tokens", static_cast<int64_t>(part.tokens)},
                            {"bits_per_byte", nullptr}});
    if (part.bits_per_byte) out["parts"].back()["bits_per_byte"] = chain::hex_float(*part.bits_per_byte);
  }
  const std::string text = out.dump() + "\n";
  RETURN_IF_ERROR(io::write_file_atomically(work.context.fs, io::join_path(folder, "evaluation.json"), text));
  return sha256_hex(text);
}

}  // namespace ostro::lab
