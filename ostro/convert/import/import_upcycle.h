// upcycle: makes a mixture of experts from a dense decoder, for `ostro import --upcycle`. The experts begin
// as copies of its MLP.
#pragma once

#include <string>

#include "ostro/context/context.h"

namespace ostro::convert {

struct Upcycle {
  std::string checkpoint, out, tokenizer;  // tokenizer "": that of the checkpoint
  int64_t experts = 0, per_token = 2;
  int64_t seed = 0;  // of the router's weights
};

// Makes the directory `out`: a mixture whose experts are all copies of the MLP of a dense decoder, with a
// random router, and a configuration to go on training with. The weights of a token's experts add up to 1, so
// it computes what the dense model does, except for their rounding. Returns a line about it, for a person. If
// anything fails, there is no `out`. Errors: the checkpoint is no decoder, is a mixture already, or has an
// adapter.
Result<std::string> upcycle(const Context& context, const Upcycle& request);

}  // namespace ostro::convert
