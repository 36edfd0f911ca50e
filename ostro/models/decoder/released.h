// Where the released program of Grok-1 rounds to bf16 and Ostro's models do not, with what it masks: the
// parts of a layer under Rounding::kReleased (docs/grok.md, "Rounding"). All compute in bf16.
#pragma once

#include "ostro/models/decoder/block.h"

namespace ostro::models::released {

// To bf16.
Array rounded(const Array& x);
// A multiplier as the program has it: a number that meets a bf16 array becomes bf16 first.
double multiplier(double value);
// TraceError unless the parameter is read in bf16.
void check_compute(const Array& parameter);

// Keys k [batch, key_pos, kv_heads, head_dim] of tokens i32 [batch, pos], with NaN for those of token 0, the
// padding: so a cache knows them, however the text is fed.
Array without_padding(const Array& k, const Array& tokens);

// Attention that does not fuse: scores are rounded before they are scaled, capped and masked, and the
// probabilities before they weigh v. q [batch, pos, kv_heads, group, head_dim], k of without_padding(), v
// like k, all bf16; gives q's axes. A query that sees no key gets +0, as N9 has it.
Array attention(const DecoderOptions& options, const Array& q, const Array& k, const Array& v,
                const LayerInputs& inputs);

}  // namespace ostro::models::released
