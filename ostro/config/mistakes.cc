#include "ostro/config/mistakes.h"

#include <algorithm>

namespace ostro::config {

std::vector<std::string> split_errors(const std::string& message) {
  std::vector<std::string> out;
  for (size_t begin = 0;;) {
    const size_t end = message.find(kNextError, begin);
    out.push_back(message.substr(begin, end == std::string::npos ? end : end - begin));
    if (end == std::string::npos) return out;
    begin = end + kNextError.size();
  }
}

bool Mistakes::add(const Status& status) {
  if (status.ok()) return true;
  for (const std::string& text : split_errors(status.error().message()))
    if (std::none_of(errors_.begin(), errors_.end(), [&](const Error& e) { return e.message() == text; }))
      errors_.emplace_back(status.error().code(), text);
  return false;
}

Status Mistakes::status() const {
  if (errors_.empty()) return {};
  std::string all;
  for (const Error& error : errors_) {
    if (!all.empty()) all += kNextError;
    all += error.message();
  }
  return Error(errors_[0].code(), all);
}

}  // namespace ostro::config
