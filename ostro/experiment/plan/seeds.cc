#include "ostro/experiment/plan/seeds.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/base/sha256.h"

namespace ostro::lab {
namespace {

constexpr const char* kMarker = "$registration ";
constexpr const char* kSweep = "registration x ";

std::optional<int64_t> number_after(const std::string& text, const std::string& prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  const std::string digits = text.substr(prefix.size());
  const bool plain = !digits.empty() && digits.size() <= 4 && digits[0] != '0' &&
                     std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  return plain ? std::optional<int64_t>(std::stoll(digits)) : std::nullopt;
}

}  // namespace

int64_t Seeds::of(int64_t number) const {
  if (registration.empty()) return number;
  const Sha256Digest digest =
      sha256(fmt::format("ostro registration seed 1\n{}\n{}\n{}\n", registration, beacon, number));
  uint64_t out = 0;
  for (size_t i = 0; i < sizeof(out); ++i) out = out << 8 | digest.at(i);
  return static_cast<int64_t>(out >> 1);
}

std::optional<int64_t> registration_seeds(const std::string& text) { return number_after(text, kSweep); }

config::Node seed_marker(int64_t number) {
  return config::Node::string(fmt::format("{}{}", kMarker, number));
}

std::optional<int64_t> marked_seed(const config::Node& value) {
  return value.kind == config::Node::Kind::kString ? number_after(value.text, kMarker) : std::nullopt;
}

bool has_seeds(const config::Node& node) {
  return marked_seed(node).has_value() || std::any_of(node.items.begin(), node.items.end(), has_seeds);
}

config::Node with_seeds(config::Node node, const Seeds& seeds) {
  if (const auto number = marked_seed(node)) {
    const std::string key = node.key, where = node.where;
    node = config::Node::integer(seeds.of(*number));
    node.key = key;
    node.where = where;
  }
  for (config::Node& item : node.items) item = with_seeds(std::move(item), seeds);
  return node;
}

}  // namespace ostro::lab
