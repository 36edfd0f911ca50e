// rounded, attention, ...: the parts of a layer under Rounding::kReleased: the places where the released
// program of Grok-1 rounds to bf16 and Ostro's models do not, and its mask (docs/reference/grok.md,
// "Rounding"). All compute in bf16 and are called while tracing.
#pragma once

#include "ostro/models/decoder/block.h"

namespace ostro::models::released {

// Returns x rounded to bf16.
Array rounded(const Array& x);
// Returns the value of a multiplier in that program: a number that is multiplied with a bf16 array becomes
// bf16 first.
double multiplier(double value);
// Throws TraceError unless the table is read in bf16 and its products are not of integers.
void check_compute(const nn::Embedding& embedding);

// Returns the keys k [batch, pos or key_pos, kv_heads, head_dim] of tokens i32 [batch, pos], with NaN for
// those of token 0, the padding. The NaN marks them in a cache, however the text is divided into calls.
Array without_padding(const Array& k, const Array& tokens);

// Attention without fusion: scores are rounded before they are scaled, capped and masked, and the
// probabilities before they weigh v. q [batch, pos, kv_heads, group, head_dim], k of without_padding(), v
// like k, all bf16; the result has q's axes. A query that attends to no key gets +0, as in N9.
Array attention(const DecoderOptions& options, const Array& q, const Array& k, const Array& v,
                const LayerInputs& inputs);

}  // namespace ostro::models::released
