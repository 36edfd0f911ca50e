#include "ostro/convert/import/import_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ostro/context/context.h"
#include "ostro/convert/import/import_hf.h"
#include "ostro/convert/import/made_model.h"
#include "ostro/convert/import/new_directory.h"
#include "ostro/convert/import/peft_model.h"
#include "ostro/hf/adapter.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::convert {
namespace {

struct PeftImport {
  std::string directory, checkpoint, out, tokenizer;  // tokenizer "": that of the checkpoint
};

// "q_proj, v_proj" of names of modules.
std::string last_words(const std::vector<std::string>& modules) {
  std::set<std::string> words;
  for (const std::string& module : modules) words.insert(module.substr(module.rfind('.') + 1));
  return fmt::format("{}", fmt::join(words, ", "));
}

// Makes the directory `out`: the model of the checkpoint with the adapter in `directory`, and a configuration
// to go on training it. Errors: those of open_lora and peft_model.
Result<std::string> import_peft(const Context& context, const PeftImport& request) {
  io::FileSystem& fs = context.fs;
  RETURN_IF_ERROR(check_is_new(fs, request.out));
  ASSIGN_OR_RETURN(const hf::LoraFiles files, hf::open_lora(fs, request.directory));
  ASSIGN_OR_RETURN(
      const trained::LoadedModel base,
      trained::load_model(fs, request.checkpoint, request.tokenizer, context.models, trained::Trust::kChain));
  ASSIGN_OR_RETURN(const PeftModel model, peft_model(files, base, made_config(base, request.out)));
  std::map<std::string, std::string> hashes;
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors"}) {
    ASSIGN_OR_RETURN(hashes[name], io::file_sha256(fs, io::join_path(request.directory, name)));
  }
  ASSIGN_OR_RETURN(const checkpoint::Saved saved,
                   write_made_model(fs, base,
                                    {"peft", hashes, request.checkpoint, request.out, model.config,
                                     model.functions.paths, model.values}));
  return fmt::format("{}: {} with the adapter {} (rank {}, alpha {}, {}), state {}{}\n",
                     io::clean_path(request.out), base.parameters.path, request.directory, files.rank(),
                     files.alpha(), last_words(files.modules), saved.name,
                     files.base_hash.empty() ? "; it does not say of which base it is" : "");
}

// Whether an option is given that only --from grok has.
bool has_grok_options(const GrokImport& request) {
  const GrokImport usual;
  return !request.config.empty() || !request.layers.empty() || request.dtype != usual.dtype ||
         request.rounding != usual.rounding;
}

Result<std::string> import_upcycled(const Context& context, const ImportRequest& request) {
  const GrokImport& other = request.grok;
  if (!request.from.empty() || !other.directory.empty() || has_grok_options(other))
    return invalid_argument(
        "--upcycle makes a mixture of --checkpoint; leave out DIR, --from, --config, --layers, --dtype and "
        "--rounding");
  Upcycle upcycled = request.upcycle;
  if (upcycled.checkpoint.empty())
    return invalid_argument("--upcycle: say of which dense model with --checkpoint K");
  upcycled.experts = *request.experts;
  upcycled.out = other.out;
  upcycled.tokenizer = other.tokenizer;
  return upcycle(context, upcycled);
}

}  // namespace

Result<std::string> import_model(const Context& context, const ImportRequest& request) {
  if (request.experts) return import_upcycled(context, request);
  const auto& [from, grok, experts, upcycled] = request;
  if (from != "peft" && !upcycled.checkpoint.empty())
    return invalid_argument("--checkpoint is for --upcycle N and --from peft; leave it out");
  if (upcycled.per_token != Upcycle().per_token || upcycled.seed != Upcycle().seed)
    return invalid_argument("--num_experts_per_tok and --seed are for --upcycle N; leave them out");
  if (from.empty())
    return invalid_argument("--from: say hf, peft or grok; or make a mixture with --upcycle N");
  if (grok.directory.empty()) return invalid_argument("DIR: say which directory to read");
  if (from == "grok") return import_grok(context, grok);
  if (from != "hf" && from != "peft")
    return invalid_argument(fmt::format("--from {}: use hf, peft or grok", from));
  if (has_grok_options(grok))
    return invalid_argument(
        "--config, --layers, --dtype and --rounding are for --from grok only; leave them out");
  if (from == "hf") return import_hf(context, {grok.directory, grok.out, grok.tokenizer});
  if (upcycled.checkpoint.empty())
    return invalid_argument("--from peft: say of which base the adapter is, with --checkpoint K");
  return import_peft(context, {grok.directory, upcycled.checkpoint, grok.out, grok.tokenizer});
}

}  // namespace ostro::convert
