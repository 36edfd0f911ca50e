#include "ostro/convert/import/import_model.h"

#include <fmt/core.h>

#include "ostro/convert/import/import_hf.h"
#include "ostro/convert/import/import_peft.h"

namespace ostro::convert {
namespace {

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
