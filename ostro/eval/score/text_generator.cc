#include "ostro/eval/score/text_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "ostro/tokenizer/model/text_ends.h"

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

// The text of the first `end` bytes of `marked`, the text of `made` with special tokens: of the tokens that
// lie before `end`, without special ones, and of the piece before `end` of the token that reaches over it.
Result<std::string> text_to(const tokenizer::Tokenizer& tokenizer, const std::vector<uint32_t>& made,
                            const std::string& marked, size_t end) {
  size_t whole = 0, bytes = 0;
  for (size_t n = 1; n <= made.size(); ++n) {
    ASSIGN_OR_RETURN(const std::string so_far, tokenizer.decode(std::span(made).first(n)));
    if (so_far.size() > end) break;
    if (!marked.starts_with(so_far)) continue;  // the last character is not complete yet
    whole = n;
    bytes = so_far.size();
  }
  ASSIGN_OR_RETURN(std::string out,
                   tokenizer.decode(std::span(made).first(whole), /*skip_special_tokens=*/true));
  return out + marked.substr(bytes, end - bytes);
}

}  // namespace

const char* stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kEndOfText: return "end_of_text";
    case StopReason::kStopString: return "stop_string";
    case StopReason::kLength: return "length";
  }
  return "";
}

// Stop strings are searched in the text with its special tokens, since one may be such a token
// ("<|im_end|>"), and in the text without them.
Result<std::optional<std::string>> text_before_stop(const tokenizer::Tokenizer& tokenizer,
                                                    const std::vector<uint32_t>& made,
                                                    const std::vector<std::string>& until) {
  ASSIGN_OR_RETURN(const std::string marked, tokenizer.decode(made));
  const size_t stop = first_stop(marked, until);
  std::string text;
  if (stop == std::string::npos) {
    ASSIGN_OR_RETURN(text, tokenizer.decode(made, /*skip_special_tokens=*/true));
  } else {
    ASSIGN_OR_RETURN(text, text_to(tokenizer, made, marked, stop));
  }
  const size_t plain = first_stop(text, until);
  if (stop == std::string::npos && plain == std::string::npos) return std::optional<std::string>();
  if (plain != std::string::npos) text.resize(plain);
  return std::optional(std::move(text));
}

// After each token the whole generated text is decoded and searched for a stop string: the text of a token
// depends on those before it, and a stop string may end inside a token.
Result<GeneratedText> generate_text(infer::RowRunner& runner, const tokenizer::Tokenizer& tokenizer,
                                    int64_t context, const GenerationRequest& request) {
  RETURN_IF_ERROR(check_request(request, context));
  ASSIGN_OR_RETURN(std::vector<int32_t> prompt, tokenizer::prompt_ids(tokenizer, request.prompt));
  const auto room = static_cast<size_t>(context - request.max_tokens);
  if (prompt.size() > room) prompt.erase(prompt.begin(), prompt.end() - static_cast<int64_t>(room));

  infer::SampleOptions options;
  options.max_new_tokens = request.max_tokens;
  options.temperature = request.temperature;
  options.seed = request.seed;
  options.tokens = tokenizer.vocab_size();
  ASSIGN_OR_RETURN(const tokenizer::TextEnds ends, tokenizer::text_ends(tokenizer));
  options.stops.assign(ends.stops.begin(), ends.stops.end());
  std::vector<uint32_t> made;
  GeneratedText out;
  Status decoded;
  const auto goes_on = [&](size_t, int32_t token) {
    made.push_back(static_cast<uint32_t>(token));
    if (is_stop(options, token)) out.reason = StopReason::kEndOfText;
    if (request.until.empty()) return true;
    auto stopped = text_before_stop(tokenizer, made, request.until);
    if (!stopped.ok()) decoded = stopped.error();
    if (stopped.ok() && *stopped) {
      out.reason = StopReason::kStopString;
      out.text = std::move(**stopped);
    }
    return stopped.ok() && !*stopped;
  };
  const auto generated = infer::generate(runner, {&prompt, 1}, options, goes_on);
  if (!generated.ok()) return generated.error();
  RETURN_IF_ERROR(decoded);
  out.tokens = static_cast<int64_t>(made.size());
  if (out.reason != StopReason::kStopString) {
    ASSIGN_OR_RETURN(out.text, tokenizer.decode(made, /*skip_special_tokens=*/true));
  }
  return out;
}

}  // namespace ostro::eval
