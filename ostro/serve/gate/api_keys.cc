#include "ostro/serve/gate/api_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/base/sha256.h"

namespace ostro::serve {
namespace {

constexpr size_t kDigits = 64;
constexpr int64_t kMostBytes = int64_t{1} << 20;
constexpr std::string_view kSpace = " \t\r";

using Entries = std::vector<std::pair<std::string, std::string>>;

Result<Entries> parse(std::string_view text, const std::string& path) {
  Entries out;
  for (size_t begin = 0, number = 1; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    line.remove_suffix(line.size() - (line.find_last_not_of(kSpace) + 1));
    if (line.empty() || line.starts_with('#')) continue;
    const auto wrong = [&](std::string_view why) {
      return invalid_argument(
          fmt::format("{}: line {} {}; a line is the SHA-256 of a key (64 digits of 0-9a-f) and a name", path,
                      number, why));
    };
    const std::string_view hash = line.substr(0, kDigits);
    if (hash.size() < kDigits || hash.find_first_not_of("0123456789abcdef") != std::string_view::npos)
      return wrong("does not begin with a hash");
    const size_t name_at = line.find_first_not_of(kSpace, kDigits);
    if (name_at == std::string_view::npos || name_at == kDigits) return wrong("has no name behind the hash");
    const std::string_view name = line.substr(name_at);
    for (const auto& [other_hash, other_name] : out)
      if (other_hash == hash || other_name == name)
        return wrong(fmt::format("has the {} of a line before it", other_hash == hash ? "key" : "name"));
    out.emplace_back(hash, name);
  }
  if (out.empty()) return invalid_argument(fmt::format("{}: no key is in it", path));
  return out;
}

}  // namespace

Result<ApiKeys> ApiKeys::open(io::FileSystem& fs, std::string path) {
  ApiKeys out(fs, std::move(path));
  RETURN_IF_ERROR(out.read());
  return out;
}

Status ApiKeys::read() {
  auto text = fs_->read_file(path_, kMostBytes);
  if (text.ok() && !hash_and_name_.empty() && *text == text_) return {};
  hash_and_name_.clear();
  if (!text.ok()) return text.error();
  ASSIGN_OR_RETURN(hash_and_name_, parse(*text, path_));
  text_ = std::move(*text);
  return {};
}

size_t ApiKeys::count_without(std::string_view name) const {
  return static_cast<size_t>(std::count_if(hash_and_name_.begin(), hash_and_name_.end(),
                                           [&](const auto& known) { return known.second != name; }));
}

std::string ApiKeys::owner(std::string_view key) const {
  const std::string hash = sha256_hex(key);
  std::string out;
  for (const auto& [known, name] : hash_and_name_)
    if (same_code(hash, known)) out = name;
  return out;
}

}  // namespace ostro::serve
