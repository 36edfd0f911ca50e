// sbatch_uses: which options of sbatch the words of --sbatch use, read as sbatch reads them. Inputs are the
// words as typed and the options that are looked for. Any thread may call.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ostro::cluster {

// One option of sbatch in words.
struct SbatchUse {
  std::string_view option;  // the one that was looked for
  bool in_full = true;      // false: a beginning of its name, which sbatch may take for it
  std::string word;         // as typed, with quotes
  std::string value;        // as typed: behind '=' or the letter, otherwise the next word; "": none
  std::string text;         // as typed: the word, and the next one where that is the value
  // Whether word or value has quotes or a backslash, which only the shell behind sbatch would take away.
  bool has_quotes = false;
};

// The uses of `options` ("--nodes", "-N") in `words`, in their order; one at most for each word. -N4, -N 4,
// --nodes=4 and --nodes 4 are the same; quotes and backslashes in names do not count.
std::vector<SbatchUse> sbatch_uses(const std::string& words, std::span<const std::string_view> options);

}  // namespace ostro::cluster
