#include "ostro/train/programs/watch.h"

#include <fmt/format.h>

#include "ostro/trace/ops.h"

namespace ostro::train {
namespace {

const char* const kLayers = "layers";
const char* const kPrefix = "watch/";

}  // namespace

std::vector<Array> norms_of(const Array& parameter, const optim::Boxes& boxes) {
  if (!parameter.shape().has(kLayers)) return {sqrt(optim::sum_of_squares(parameter, boxes))};
  const Array norms = sqrt(optim::sums_of_squares(parameter, {kLayers}, boxes));
  std::vector<Array> out;
  for (int64_t i = 0; i < norms.shape().axes[0].size; ++i) out.push_back(index(norms, kLayers, i));
  return out;
}

std::vector<std::string> norm_names(const std::string& what, const std::string& path,
                                    const ir::Shape& shape) {
  const int64_t at = shape.find(kLayers);
  const std::string name = fmt::format("{}/{}", what, path);
  if (at < 0) return {name};
  std::vector<std::string> out;
  for (int64_t i = 0; i < shape.axes[static_cast<size_t>(at)].size; ++i)
    out.push_back(fmt::format("{}[{}]", name, i));
  return out;
}

std::vector<std::string> watch_names(const ir::Program& update) {
  std::vector<std::string> out;
  for (const std::string& name : update.result_names)
    if (name.starts_with(kPrefix)) out.push_back(name);
  return out;
}

}  // namespace ostro::train
