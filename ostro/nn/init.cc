#include "ostro/nn/init.h"

namespace ostro::nn {

Array key_of_path(const Array& key, const std::string& path) {
  Array k = key;
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = path.find('/', begin);
    if (end == std::string::npos) end = path.size();
    k = fold_in(k, std::string_view(path).substr(begin, end - begin));
    begin = end + 1;
  }
  return k;
}

Array trunc_normal(const Array& key, const std::string& path, const std::vector<Axis>& axes, double std) {
  return random_trunc_normal(key_of_path(key, path), axes) * std;
}

}  // namespace ostro::nn
