#include "ostro/base/merkle.h"

#include "ostro/base/check.h"

namespace ostro {
namespace {

Sha256Digest node(const Sha256Digest& left, const Sha256Digest& right) {
  constexpr std::string_view kNode("\x01", 1);
  return Sha256()
      .update(kNode)
      .update(std::as_bytes(std::span(left)))
      .update(std::as_bytes(std::span(right)))
      .finish();
}

std::vector<Sha256Digest> next_level(std::span<const Sha256Digest> level) {
  std::vector<Sha256Digest> above;
  for (size_t i = 0; i + 1 < level.size(); i += 2) above.push_back(node(level[i], level[i + 1]));
  if (level.size() % 2 == 1) above.push_back(level.back());
  return above;
}

}  // namespace

Sha256Digest merkle_leaf(std::string_view data) {
  constexpr std::string_view kLeaf("\0", 1);
  return Sha256().update(kLeaf).update(data).finish();
}

Sha256Digest merkle_root(std::span<const Sha256Digest> leaves) {
  if (leaves.empty()) return sha256(std::string_view());
  std::vector<Sha256Digest> level(leaves.begin(), leaves.end());
  while (level.size() > 1) level = next_level(level);
  return level[0];
}

std::vector<Sha256Digest> merkle_path(std::span<const Sha256Digest> leaves, size_t leaf) {
  OSTRO_CHECK(leaf < leaves.size(), "leaf {} of {}", leaf, leaves.size());
  std::vector<Sha256Digest> level(leaves.begin(), leaves.end()), path;
  for (; level.size() > 1; level = next_level(level), leaf /= 2)
    if ((leaf ^ 1) < level.size()) path.push_back(level[leaf ^ 1]);
  return path;
}

std::optional<Sha256Digest> merkle_root_of_path(const Sha256Digest& leaf_hash, size_t leaf, size_t leaves,
                                                std::span<const Sha256Digest> path) {
  if (leaf >= leaves) return std::nullopt;
  Sha256Digest hash = leaf_hash;
  for (; leaves > 1; leaf /= 2, leaves = (leaves + 1) / 2) {
    if ((leaf ^ 1) >= leaves) continue;  // no sibling: the node moves up unchanged
    if (path.empty()) return std::nullopt;
    hash = leaf % 2 == 0 ? node(hash, path[0]) : node(path[0], hash);
    path = path.subspan(1);
  }
  return path.empty() ? std::optional(hash) : std::nullopt;
}

}  // namespace ostro
