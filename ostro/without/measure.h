// StateLosses, measure_state: what is compared of two runs at their end: losses on held-out text, on
// documents and on other texts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/context/context.h"
#include "ostro/data/arrays/build_settings.h"
#include "ostro/train/options/config.h"

namespace ostro::without {

// A text whose loss is measured: its tokens, each predicted from those before it. The first is predicted from
// the token that stands before a text (eval::prefix_token).
struct MeasuredText {
  std::string name;
  std::vector<uint32_t> ids;
};

// In nats per token.
struct StateLosses {
  std::optional<double> held_out;  // nothing: the configuration has no held-out text
  std::vector<double> texts;       // in the order in which they were given
};

// The losses with the state after the last step of the run in `folder`, whose configuration is `config`.
// `batch_tokens` positions are computed together; that changes no loss. Errors: those of the run's checkpoint
// (as `ostro eval`), of its data, and of the engine; a text without tokens.
Result<StateLosses> measure_state(const Context& context, const train::TrainConfig& config,
                                  const std::string& folder, const std::vector<MeasuredText>& texts,
                                  const data::BuildSettings& build);

// The tokens of a file's text, as `ostro score` encodes it. Errors: those of reading; an empty file.
Result<MeasuredText> read_text(io::FileSystem& fs, const std::string& path,
                               const tokenizer::Tokenizer& tokenizer);

}  // namespace ostro::without
