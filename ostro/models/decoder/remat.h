// remat_text: the values of a layer that are kept for the backward pass. Never changes bits.
#pragma once

#include <string>

#include "ostro/config/options.h"

namespace ostro::models {

// The values of a layer that have a name; gradient_checkpointing may list these names. (gate_up is the input
// of the activation, also where there is no gate.)
inline constexpr const char* kCheckpointNames[] = {"qkv", "attention", "attention_out", "gate_up", "mlp_out"};

// Returns gradient_checkpointing as runtime::CompileOptions::remat; an error names the words and names that
// are known.
Result<std::string> remat_text(const config::Alternatives<bool, std::string>& gradient_checkpointing);

}  // namespace ostro::models
