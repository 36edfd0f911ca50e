// cut, FactTable and others: pieces of HTML that the sections of the page share. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ostro::page {

// These bound the size of the page: longer texts are cut, and of longer lists the last rows are shown.
inline constexpr size_t kLongestText = 16'000, kLongestWord = 400, kRows = 30;

// An <h2> with an id, so that the table of contents can lead to it.
std::string heading(const char* text);
// Links to all headings of a page's body.
std::string contents(std::string_view body);

// A hash, and a command for a shell: the page's script puts a button beside each that copies it.
std::string hash_html(std::string_view hash);
std::string command_html(std::string_view command);

// The text, escaped. A text of more than `limit` bytes is cut between two characters, and the number of
// missing bytes is added.
std::string cut(std::string_view text, size_t limit);
// The words with spaces between them, cut.
std::string cut_words(const std::vector<std::string>& words);

// "and 12 earlier sessions"; empty for 0.
std::string and_earlier(size_t count, const char* what);

// Rows of a name and a value.
class FactTable {
 public:
  // `html` is escaped already. An empty value adds no row.
  void row(std::string_view name, const std::string& html);
  void hash(std::string_view name, std::string_view hash);
  // Empty without rows.
  std::string html() const;

 private:
  std::string rows_;
};

}  // namespace ostro::page
