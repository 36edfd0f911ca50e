#include "ostro/cluster/slurm/sbatch_words.h"

#include <algorithm>
#include <sstream>

namespace ostro::cluster {
namespace {

constexpr std::string_view kSbatchQuotes = "'\"\\";

bool has_sbatch_quotes(const std::string& text) {
  return text.find_first_of(kSbatchQuotes) != std::string::npos;
}

bool is_long(std::string_view option) { return option.starts_with("--"); }

std::string_view name_of(std::string_view word) { return word.substr(0, word.find('=')); }

bool is_option(std::string_view word, std::string_view option) {
  if (is_long(option)) return name_of(word) == option;
  return word.starts_with(option) && !is_long(word);
}

// sbatch takes --node=4 for --nodes=4.
bool is_beginning(std::string_view word, std::string_view option) {
  const std::string_view name = name_of(word);
  return is_long(name) && name.size() < option.size() && option.starts_with(name);
}

}  // namespace

std::vector<SbatchUse> sbatch_uses(const std::string& words, std::span<const std::string_view> options) {
  std::istringstream in(words);
  std::vector<std::string> all;
  for (std::string word; in >> word;) all.push_back(word);
  std::vector<SbatchUse> out;
  for (size_t i = 0; i < all.size(); ++i) {
    std::string plain = all[i];
    std::erase_if(plain, [](char c) { return kSbatchQuotes.find(c) != std::string_view::npos; });
    const auto full = std::ranges::find_if(options, [&](auto option) { return is_option(plain, option); });
    const auto found = full != options.end() ? full : std::ranges::find_if(options, [&](auto option) {
      return is_beginning(plain, option);
    });
    if (found == options.end()) continue;
    SbatchUse use{.option = *found, .in_full = full != options.end(), .word = all[i], .text = all[i]};
    if (is_long(plain) && plain.find('=') != std::string::npos) {
      use.value = use.word.substr(use.word.find('=') + 1);
    } else if (!is_long(plain) && plain.size() > found->size()) {
      use.value = use.word.substr(use.word.find(found->back()) + 1);
    } else if (i + 1 < all.size()) {
      use.value = all[i + 1];
      use.text += " " + all[i + 1];
    }
    use.has_quotes = has_sbatch_quotes(use.text);
    out.push_back(std::move(use));
  }
  return out;
}

}  // namespace ostro::cluster
