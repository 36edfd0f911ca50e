// `ostro import --upcycle`: makes a mixture of experts from a dense decoder. The experts begin as copies of
// its MLP.
#pragma once

#include <string>

#include "ostro/context/context.h"

namespace ostro::convert {

struct Upcycle {
  std::string checkpoint, out, tokenizer;  // no tokenizer: the checkpoint's
  int64_t experts = 0, per_token = 2;
  int64_t seed = 0;  // of the router's weights
};

// Makes the directory `out`: a mixture whose experts are all copies of the MLP of a dense decoder, with a
// random router, and a configuration to go on training with. It computes what the dense model does, up to
// the rounding of the experts' weights, which add up to 1. Returns a line about it, for a person.
// If anything fails, there is no `out`. Errors: the checkpoint is no decoder, a mixture already, or has an
// adapter.
Result<std::string> upcycle(const Context& context, const Upcycle& request);

}  // namespace ostro::convert
