#include "ostro/io/files/below.h"

namespace ostro::io {

bool stays_below(std::string_view path) {
  for (bool more = true; more;) {
    const size_t end = path.find('/');
    const std::string_view part = path.substr(0, end);
    if (part.empty() || part == "." || part == "..") return false;
    more = end != std::string_view::npos;
    if (more) path.remove_prefix(end + 1);
  }
  return true;
}

}  // namespace ostro::io
