// StateLosses, measure_state: what is compared of two runs at their end: losses on held-out text, on
// documents and on other texts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/context/context.h"
#include "ostro/data/arrays/build_settings.h"
#include "ostro/train/options/config.h"
#include "ostro/without/measured_texts.h"

namespace ostro::without {

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

// The floating-point operations of measure_state for each of the states, a multiply and an add counting one
// each. `states`: their texts. Errors: those of the held-out text and of tracing.
Result<std::vector<double>> measuring_flops(const Context& context, const train::TrainConfig& config,
                                            const tokenizer::Tokenizer& tokenizer,
                                            const std::vector<std::vector<MeasuredText>>& states);

}  // namespace ostro::without
