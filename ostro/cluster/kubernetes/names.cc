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

Status check_kubernetes_object(const std::string& what, const std::string& name, const std::string& kind) {
  constexpr size_t kMost = 253;
  static const std::regex form("[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*");
  if (name.size() <= kMost && std::regex_match(name, form)) return {};
  return invalid_argument(
      fmt::format("{}: \"{}\" names no {}; use small letters, digits, hyphens and dots, a letter or a "
                  "digit at both ends, and at most {} of them",
                  what, name, kind, kMost));
}

Status check_kubernetes_label(const std::string& what, const std::string& key, const std::string& value) {
  constexpr size_t kMostOfPrefix = 253, kMost = 63;
  static const std::regex form("[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?");
  static const std::regex prefix("[a-z0-9]([-a-z0-9.]*[a-z0-9])?");
  const size_t slash = key.find('/');
  const std::string before = slash == std::string::npos ? "" : key.substr(0, slash);
  const std::string name = slash == std::string::npos ? key : key.substr(slash + 1);
  const auto fits = [&](const std::string& text) {
    return text.size() <= kMost && std::regex_match(text, form);
  };
  if (!fits(name) || before.size() > kMostOfPrefix ||
      (slash != std::string::npos && !std::regex_match(before, prefix)))
    return invalid_argument(
        fmt::format("{}: \"{}\" is no key of a label; use one as topology.kubernetes.io/zone", what, key));
  if (fits(value)) return {};
  return invalid_argument(
      fmt::format("{}: \"{}\" is no value of a label; use letters, digits, hyphens, underscores and dots, a "
                  "letter or a digit at both ends, and at most {} of them",
                  what, value, kMost));
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
