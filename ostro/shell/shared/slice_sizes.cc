#include "ostro/shell/shared/slice_sizes.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdlib>

namespace ostro::cli {

Result<std::vector<std::string>> slice_names(const std::string& what, std::string_view text,
                                             int64_t workers) {
  std::vector<std::string> names;
  int64_t sum = 0;
  for (int64_t slice = 0;; ++slice) {
    const std::string_view part = text.substr(0, text.find(':'));
    int64_t size = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
    if (error != std::errc() || end != part.data() + part.size() || size < 1 || size > 1024)
      return invalid_argument(fmt::format(
          "{}: \"{}\" is not the number of workers of a slice; use sizes with ':' between them, as in 2:2",
          what, part));
    sum += size;
    if (sum <= workers) names.insert(names.end(), static_cast<size_t>(size), std::to_string(slice));
    if (part.size() == text.size()) break;
    text.remove_prefix(part.size() + 1);
  }
  if (sum != workers)
    return invalid_argument(
        fmt::format("{}: slices of {} workers together, but there are {}; use sizes whose "
                    "sum is {}",
                    what, sum, workers, workers));
  return names;
}

Result<std::vector<std::string>> sim_slices(int64_t workers) {
  const char* value = std::getenv("OSTRO_SIM_SLICES");
  if (value == nullptr || *value == '\0') return std::vector<std::string>();
  return slice_names(fmt::format("OSTRO_SIM_SLICES={}", value), value, workers);
}

}  // namespace ostro::cli
