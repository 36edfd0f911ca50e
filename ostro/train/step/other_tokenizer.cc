#include "ostro/train/step/other_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ostro/base/log.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/io/files/path.h"
#include "ostro/tokenizer/files/files.h"

namespace ostro::train {
namespace {

// The tokenizer's file in the directory itself, or in the run of RUN/checkpoints/step-*.
std::optional<std::string> tokenizer_beside(io::FileSystem& fs, const std::string& from) {
  const std::string clean = io::clean_path(from), parent = io::parent_path(clean);
  std::vector<std::string> places = {clean};
  if (io::base_name(parent) == checkpoint::kCheckpointsFolder) places.push_back(io::parent_path(parent));
  for (const std::string& place : places)
    for (const char* name : {"tokenizer.json", "tokenizer.model"}) {
      const std::string path = io::join_path(place, name);
      const auto exists = fs.exists(path);
      if (exists.ok() && *exists) return path;
    }
  return std::nullopt;
}

// How many of the ids that both have stand for different tokens.
uint32_t different_ids(const tokenizer::Tokenizer& a, const tokenizer::Tokenizer& b) {
  uint32_t count = 0;
  for (uint32_t id = 0; id < std::min(a.vocab_size(), b.vocab_size()); ++id)
    count += a.id_to_token(id) != b.id_to_token(id) ? 1 : 0;
  return count;
}

}  // namespace

void warn_of_other_tokenizer(io::FileSystem& fs, const std::string& key, const std::string& from,
                             const tokenizer::Tokenizer& used, const std::string& used_path) {
  const auto path = tokenizer_beside(fs, from);
  if (!path) return;
  const auto own = tokenizer::load_tokenizer(fs, *path);
  if (!own.ok() || own->hash() == used.hash()) return;
  log_warning(fmt::format(
      "{}: the weights of {} were made with another tokenizer than the text: {} ({} tokens, SHA-256 {:.12}), "
      "and the "
      "text's is {} ({} tokens, SHA-256 {:.12}); {} of the ids that both have stand for other tokens. Set "
      "data.tokenizer to {} unless this is meant",
      key, from, *path, own->vocab_size(), own->hash(), used_path, used.vocab_size(), used.hash(),
      different_ids(*own, used), *path));
}

}  // namespace ostro::train
