#include "ostro/cluster/kubernetes/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

namespace ostro::cluster {

Status check_kubernetes_name(const std::string& what, const std::string& name) {
  constexpr size_t kMost = 45;  // the longest ending makes a label of 63
  const bool fits = !name.empty() && name.size() <= kMost && name.front() != '-' && name.back() != '-' &&
                    name.front() >= 'a' && std::all_of(name.begin(), name.end(), [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
                    });
  if (fits) return {};
  return invalid_argument(
      fmt::format("{}: \"{}\" cannot name an object of Kubernetes; use small letters, digits and hyphens, a "
                  "letter first, "
                  "and at most {} of them",
                  what, name, kMost));
}

Status check_kubernetes_claim(const std::string& what, const std::string& name) {
  constexpr size_t kMost = 253;
  static const std::regex form("[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*");
  if (name.size() <= kMost && std::regex_match(name, form)) return {};
  return invalid_argument(fmt::format(
      "{}: \"{}\" names no PersistentVolumeClaim; use small letters, digits, hyphens and dots, a letter or a "
      "digit at both ends, and at most {} of them",
      what, name, kMost));
}

Status check_kubernetes_quantity(const std::string& what, const std::string& text) {
  constexpr size_t kMost = 32;
  static const std::regex form("([0-9]+\\.?[0-9]*|\\.[0-9]+)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][0-9]+)?");
  const bool is_positive =
      text.substr(0, text.find_first_of("eE")).find_first_of("123456789") != std::string::npos;
  if (text.size() <= kMost && is_positive && std::regex_match(text, form)) return {};
  return invalid_argument(
      fmt::format("{}: \"{}\" is no quantity of Kubernetes; use a number above 0, with a suffix where it is "
                  "needed, as 16, "
                  "500m or 64Gi",
                  what, text));
}

}  // namespace ostro::cluster
