#include "ostro/eval/score/text_generator.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/eval/score/encoding.h"

namespace ostro::eval {
namespace {

Status check_request(const GenerationRequest& request, int64_t context) {
  if (request.max_tokens < 1 || request.max_tokens >= context)
    return invalid_argument(
        fmt::format("{} tokens are to be generated at most; the model's context is {}: use 1 to {}",
                    request.max_tokens, context, context - 1));
  if (!(request.temperature >= 0))
    return invalid_argument(fmt::format("temperature {}: use 0 or more", request.temperature));
  for (const std::string& stop : request.until)
    if (stop.empty()) return invalid_argument("a stop string is empty: every text would end at once");
  return {};
}

// The position at which the first stop string begins; npos if there is none.
size_t first_stop(const std::string& text, const std::vector<std::string>& until) {
  size_t at = std::string::npos;
  for (const std::string& stop : until) at = std::min(at, text.find(stop));
  return at;
}

}  // namespace

const char* stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kEndOfText:
      return "end_of_text";
    case StopReason::kStopString:
      return "stop_string";
    case StopReason::kLength:
      return "length";
  }
  return "";
}

// After each token the whole generated text is decoded and searched for a stop string: the text of a token
// depends on those before it, and a stop string may end inside a token.
Result<GeneratedText> generate_text(infer::Generator& generator, const tokenizer::Tokenizer& tokenizer,
                                    int64_t context, const GenerationRequest& request) {
  RETURN_IF_ERROR(check_request(request, context));
  const std::vector<uint32_t> ids = tokenizer.encode(request.prompt, {.add_special_tokens = true});
  std::vector<int32_t> prompt(ids.begin(), ids.end());
  if (prompt.empty()) {
    ASSIGN_OR_RETURN(const int32_t prefix, prefix_token(tokenizer));
    prompt.push_back(prefix);
  }
  const auto room = static_cast<size_t>(context - request.max_tokens);
  if (prompt.size() > room) prompt.erase(prompt.begin(), prompt.end() - static_cast<int64_t>(room));

  infer::SampleOptions options;
  options.max_new_tokens = request.max_tokens;
  options.temperature = request.temperature;
  options.seed = request.seed;
  options.tokens = tokenizer.vocab_size();
  options.eos = tokenizer.eos_id() ? static_cast<int64_t>(*tokenizer.eos_id()) : -1;
  std::vector<uint32_t> made;
  GeneratedText out;
  Status decoded;
  const auto goes_on = [&](int32_t token) {
    made.push_back(static_cast<uint32_t>(token));
    if (token == options.eos) out.reason = StopReason::kEndOfText;
    if (request.until.empty()) return true;
    const auto text = tokenizer.decode(made, /*skip_special_tokens=*/true);
    if (!text.ok()) decoded = text.error();
    if (text.ok() && first_stop(*text, request.until) != std::string::npos)
      out.reason = StopReason::kStopString;
    return text.ok() && out.reason != StopReason::kStopString;
  };
  const auto generated = generator.generate(prompt, options, goes_on);
  if (!generated.ok()) return generated.error();
  RETURN_IF_ERROR(decoded);
  out.tokens = static_cast<int64_t>(made.size());
  ASSIGN_OR_RETURN(out.text, tokenizer.decode(made, /*skip_special_tokens=*/true));
  if (const size_t stop = first_stop(out.text, request.until); stop != std::string::npos)
    out.text.resize(stop);
  return out;
}

}  // namespace ostro::eval
