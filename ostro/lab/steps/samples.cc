// The step sample.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/config/codec.h"
#include "ostro/experiment/journal/line_chain.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/kinds.h"
#include "ostro/tokenizer/model/text_ends.h"
#include "ostro/trained/sample_model.h"

namespace ostro::lab {
namespace {

// How texts go on: as the step says, up to what the tokenizer ends texts with.
Result<infer::SampleOptions> options_of_samples(const Work& work, const tokenizer::Tokenizer& tokenizer) {
  infer::SampleOptions out;
  out.max_new_tokens = std::stoll(text_of(work.step, "tokens"));
  out.seed = static_cast<uint64_t>(std::stoll(text_of(work.step, "seed")));
  if (const config::Node* temperature = work.step.parameters.find("temperature"); temperature != nullptr)
    RETURN_IF_ERROR(config::read_value(*temperature, "temperature", &out.temperature));
  out.tokens = tokenizer.vocab_size();
  ASSIGN_OR_RETURN(const tokenizer::TextEnds ends, tokenizer::text_ends(tokenizer));
  out.stops.assign(ends.stops.begin(), ends.stops.end());
  return out;
}

}  // namespace

Result<std::string> make_samples(const Work& work, const std::string& folder) {
  ASSIGN_OR_RETURN(const Context context, context_of_run(work));
  ASSIGN_OR_RETURN(const KeptState state, state_at(work));
  ASSIGN_OR_RETURN(const auto engine, context.engine());
  ASSIGN_OR_RETURN(const trained::SampleModel model,
                   trained::load_resident(context, state.folder, "", trained::Trust::kChain, {}));
  ASSIGN_OR_RETURN(const infer::SampleOptions options, options_of_samples(work, *model.tokenizer));
  const std::vector<std::string> prompts = texts_of(work.step, "prompts");
  std::vector<std::vector<int32_t>> ids;
  int64_t longest = 0;
  for (const std::string& prompt : prompts) {
    ASSIGN_OR_RETURN(std::vector<int32_t> one, tokenizer::prompt_ids(*model.tokenizer, prompt));
    if (std::ssize(one) >= model.context)
      return invalid_argument(
          fmt::format("prompts: number {} has {} tokens, and the model's context is {}; use a shorter text",
                      ids.size() + 1, one.size(), model.context));
    longest = std::max<int64_t>(longest, std::ssize(one));
    ids.push_back(std::move(one));
  }
  const int64_t room =
      std::max<int64_t>(2, longest + std::min(model.context - longest, options.max_new_tokens));
  ASSIGN_OR_RETURN(const auto made, model.generate(*engine, ids, options, room,
                                                   [&](int32_t) { return !work.context.stop(); }));
  if (work.context.stop()) return io_error("stopped by a signal");
  nlohmann::json list = {{"step", state.step}, {"state", state.name}, {"samples", nlohmann::json::array()}};
  std::string texts;
  for (size_t i = 0; i < made.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string text,
                     model.tokenizer->decode(std::vector<uint32_t>(made[i].begin(), made[i].end()), true));
    list["samples"].push_back(
        {{"prompt", prompts[i]}, {"tokens", made[i].size()}, {"sha256", sha256_hex(text)}});
    texts += line_text({{"prompt", prompts[i]}, {"text", text}, {"ids", made[i]}}) + "\n";
  }
  io::FileSystem& fs = work.context.fs;
  RETURN_IF_ERROR(io::write_file_atomically(fs, io::join_path(folder, kTextsFile), texts));
  const std::string text = line_text(list) + "\n";
  RETURN_IF_ERROR(io::write_file_atomically(fs, io::join_path(folder, kSamplesFile), text));
  return sha256_hex(text + texts);
}

}  // namespace ostro::lab
