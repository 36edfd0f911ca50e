#include "ostro/serve/model/programs.h"

#include "ostro/convert/import/made_model.h"
#include "ostro/convert/import/peft_model.h"
#include "ostro/infer/decode_program.h"
#include "ostro/io/files/path.h"
#include "ostro/train/programs/programs.h"
#include "ostro/trained/opened_model.h"

namespace ostro::serve {
namespace {

Result<ServedProgram> described_program(const train::TrainConfig& config,
                                        const models::ModelFunctions& functions) {
  const int64_t context = config.model_options().seq_len();
  ASSIGN_OR_RETURN(std::string forward,
                   infer::forward_hash(functions, context, train::inference_leaf_table(config)));
  return ServedProgram{std::move(forward), context};
}

}  // namespace

Result<std::vector<ServedProgram>> programs_of(const Context& context, const std::string& checkpoint,
                                               const std::vector<NamedAdapter>& adapters,
                                               const AdapterOptions& options) {
  const auto described = [&](const std::string& where) {
    return trained::describe_model(context.fs, where, context.models, options.trust, options.tokenizer,
                                   options.use);
  };
  std::vector<ServedProgram> out;
  ASSIGN_OR_RETURN(const trained::DescribedModel base, described(checkpoint));
  ASSIGN_OR_RETURN(out.emplace_back(), described_program(base.model.config, base.model.functions));
  for (const NamedAdapter& one : adapters) {
    ASSIGN_OR_RETURN(const bool is_peft, context.fs.exists(io::join_path(one.path, "adapter_config.json")));
    if (is_peft) {
      ASSIGN_OR_RETURN(const hf::LoraFiles files, hf::open_lora(context.fs, one.path));
      ASSIGN_OR_RETURN(const convert::PeftModel with,
                       convert::described_peft(files, base.model, convert::made_config(base.model, one.path),
                                               train::ModelUse::kEvaluation));
      ASSIGN_OR_RETURN(out.emplace_back(), described_program(with.config, with.functions));
    } else {
      ASSIGN_OR_RETURN(const trained::DescribedModel with, described(one.path));
      ASSIGN_OR_RETURN(out.emplace_back(), described_program(with.model.config, with.model.functions));
    }
  }
  return out;
}

}  // namespace ostro::serve
