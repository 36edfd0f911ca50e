#include "ostro/runtime/check_inputs.h"

#include <fmt/format.h>

namespace ostro::runtime {

Status check_inputs(const std::string& program, const std::vector<std::string>& names,
                    std::span<const ir::Shape> expected, std::span<const Buffer> inputs) {
  if (inputs.size() != expected.size())
    return invalid_argument(
        fmt::format("program {} takes {} inputs, {} given", program, expected.size(), inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].valid() || inputs[i].shape() != expected[i])
      return invalid_argument(fmt::format(
          "program {}: input {} ({}) is {}, expected {}", program, i, names.empty() ? "unnamed" : names[i],
          inputs[i].valid() ? inputs[i].shape().str() : "missing", expected[i].str()));
  return Status();
}

}  // namespace ostro::runtime
