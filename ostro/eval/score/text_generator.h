// generate_text: generates the continuation of a prompt until a stop string, the end of the document or a
// number of tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ostro/infer/generate.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::eval {

struct GenerationRequest {
  std::string prompt;
  // stop strings, which may be special tokens; empty ones are not allowed
  std::vector<std::string> until;
  int64_t max_tokens = 256;
  double temperature = 0;  // 0: always the most likely token
  uint64_t seed = 0;
};

enum class StopReason { kEndOfText, kStopString, kLength };
const char* stop_reason_name(StopReason reason);  // "end_of_text", "stop_string", "length"

struct GeneratedText {
  std::string text;    // without the stop string and what follows it
  int64_t tokens = 0;  // that were generated
  StopReason reason = StopReason::kLength;
};

// The text of generated tokens before the first stop string, without special tokens. Nothing if there is no
// stop string in it. Errors: an id that is no token.
Result<std::optional<std::string>> text_before_stop(const tokenizer::Tokenizer& tokenizer,
                                                    const std::vector<uint32_t>& made,
                                                    const std::vector<std::string>& until);

// Generates the text for a request. The prompt is encoded by prompt_ids (tokenizer/model/text_ends.h); if it
// leaves no room for max_tokens, only its last tokens are used. `context` is the model's number of positions.
// Errors: max_tokens is not in [1, context); an empty stop string; a negative temperature.
Result<GeneratedText> generate_text(infer::RowRunner& runner, const tokenizer::Tokenizer& tokenizer,
                                    int64_t context, const GenerationRequest& request);

}  // namespace ostro::eval
