#include "ostro/eval/text_model_of.h"

#include "ostro/train/programs/programs.h"
#include "ostro/trained/opened_model.h"

namespace ostro::eval {

Result<TextModel> text_model(io::FileSystem& fs, trained::LoadedModel loaded, runtime::Engine& engine,
                             int64_t batch_tokens) {
  TextModelOptions options;
  ASSIGN_OR_RETURN(options.chat, ChatPrompts::load(fs, loaded.tokenizer_path, *loaded.tokenizer));
  options.context = loaded.config.model_options().seq_len();
  options.batch_tokens = batch_tokens;
  options.other_mp = loaded.other_mp;
  options.leaves = train::inference_leaf_table(loaded.config);
  options.layers = trained::layers_of(loaded);
  return TextModel(std::move(loaded.functions), std::move(loaded.parameters.values), engine,
                   std::move(loaded.tokenizer), std::move(options));
}

}  // namespace ostro::eval
