#include "ostro/trace/tree.h"

namespace ostro::tree_internal {

std::string field_name(std::string_view names, size_t i) {
  for (; i > 0; --i) names.remove_prefix(names.find(',') + 1);
  names = names.substr(0, names.find(','));
  const size_t first = names.find_first_not_of(" \n\t");
  if (first == std::string_view::npos) return "";  // a field that adds nothing to the path
  const size_t last = names.find_last_not_of(" \n\t");
  return std::string(names.substr(first, last - first + 1));
}

}  // namespace ostro::tree_internal
