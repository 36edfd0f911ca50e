// ostro sample
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/cli/shared/engine_choice.h"
#include "ostro/cli/shared/standard_streams.h"
#include "ostro/eval/loaded_model.h"
#include "ostro/infer/generator.h"
#include "ostro/io/s3/routing_file_system.h"

namespace ostro::cli {
namespace {

struct Request {
  std::string checkpoint, prompt, tokenizer;
  infer::SampleOptions options;
  bool json = false, unchecked = false;
};

// The prompt's tokens; an empty prompt is a document's beginning, which in training follows an end of
// document.
Result<std::vector<int32_t>> prompt_ids(const tokenizer::Tokenizer& tokenizer, const std::string& prompt) {
  const std::vector<uint32_t> ids = tokenizer.encode(prompt);
  if (!ids.empty()) return std::vector<int32_t>(ids.begin(), ids.end());
  if (!tokenizer.eos_id())
    return invalid_argument("--prompt is empty and the tokenizer has no end-of-document token to begin with");
  return std::vector<int32_t>{static_cast<int32_t>(*tokenizer.eos_id())};
}

Status sample(const Request& request, const train::ModelChoices& models) {
  ASSIGN_OR_RETURN(const auto engine, make_engine());
  ASSIGN_OR_RETURN(eval::LoadedModel model,
                   eval::load_model(io::default_file_system(), request.checkpoint, request.tokenizer, models,
                                    eval::trust(request.unchecked)));
  const tokenizer::Tokenizer& tokenizer = *model.tokenizer;
  ASSIGN_OR_RETURN(const std::vector<int32_t> prompt, prompt_ids(tokenizer, request.prompt));
  const int64_t context = model.config.model_options().seq_len();
  const auto length = static_cast<int64_t>(prompt.size());
  if (length >= context)
    return invalid_argument(
        fmt::format("--prompt has {} tokens; the model's context is {}", length, context));
  const int64_t room = std::min(context, length + request.options.max_new_tokens);
  ASSIGN_OR_RETURN(const auto generator,
                   infer::Generator::create(model.functions, std::move(model.parameters.values), *engine,
                                            std::max<int64_t>(room, 2)));
  infer::SampleOptions options = request.options;
  options.tokens = tokenizer.vocab_size();
  options.eos = tokenizer.eos_id() ? static_cast<int64_t>(*tokenizer.eos_id()) : -1;

  // What a token adds to the text can depend on those before it (a space at the beginning is dropped by some
  // tokenizers), so the whole is decoded each time and what is new is printed.
  std::vector<uint32_t> so_far(prompt.begin(), prompt.end());
  ASSIGN_OR_RETURN(const std::string prompt_text,
                   tokenizer.decode_bytes(so_far, /*skip_special_tokens=*/true));
  size_t printed = prompt_text.size();
  Status written;
  const auto print = [&](int32_t token) {
    so_far.push_back(static_cast<uint32_t>(token));
    const auto text = tokenizer.decode_bytes(so_far, /*skip_special_tokens=*/true);
    written = text.ok() ? write_stdout(std::string_view(*text).substr(std::min(printed, text->size())))
                        : Status(text.error());
    if (text.ok()) printed = text->size();
    return written.ok() && !stdout_closed();
  };
  if (!request.json) RETURN_IF_ERROR(write_stdout(request.prompt));
  ASSIGN_OR_RETURN(
      const std::vector<int32_t> made,
      generator->generate(prompt, options, request.json ? std::function<bool(int32_t)>() : print));
  RETURN_IF_ERROR(written);
  if (stdout_closed()) return {};
  const bool ended = !made.empty() && made.back() == options.eos;
  if (!ended && static_cast<int64_t>(made.size()) < options.max_new_tokens)
    fmt::print(stderr, "{}(stopped: the model's context of {} tokens is full)\n", request.json ? "" : "\n",
               context);
  if (!request.json) return write_stdout("\n");
  ASSIGN_OR_RETURN(const std::string text,
                   tokenizer.decode(std::vector<uint32_t>(made.begin(), made.end()), true));
  const nlohmann::ordered_json out = {
      {"prompt", request.prompt}, {"prompt_ids", prompt}, {"ids", made}, {"text", text}};
  // An argument need not be UTF-8.
  return write_stdout(out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace

int sample_command(Args args) {
  Request request;
  int64_t seed = 0;
  args.summary(
      "Continues a text, until an end of document or the number of tokens. The same seed gives the same "
      "text.");
  args.option("--checkpoint", &request.checkpoint, "K", eval::kWhereHelp, Args::kRequired);
  args.option("--prompt", &request.prompt, "S", "the text to continue; empty: a new document",
              Args::kRequired);
  args.option("--max_new_tokens", &request.options.max_new_tokens, "N", "tokens to add at most",
              Args::kRequired);
  args.option("--temperature", &request.options.temperature, "t",
              "0: always the most likely token; 1: as the model's probabilities");
  args.option("--seed", &seed, "s", "of the random choices");
  args.option("--tokenizer", &request.tokenizer, "T",
              "tokenizer.json, when the checkpoint is not in its run");
  args.flag("--unchecked", &request.unchecked, eval::kUncheckedHelp);
  args.flag("--json", &request.json, "print one JSON object with token ids, at the end");
  if (const auto code = args.parse()) return *code;
  if (request.options.max_new_tokens < 0)
    return report_error(
        invalid_argument(fmt::format("--max_new_tokens {}: use 0 or more", request.options.max_new_tokens)));
  if (!(request.options.temperature >= 0))
    return report_error(
        invalid_argument(fmt::format("--temperature {}: use 0 or more", request.options.temperature)));
  request.options.seed = static_cast<uint64_t>(seed);
  const Status done = sample(request, args.models());
  return done.ok() ? kExitOk : report_error(done.error());
}

}  // namespace ostro::cli
