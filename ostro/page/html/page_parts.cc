#include "ostro/page/html/page_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "ostro/base/html.h"
#include "ostro/page/numbers/axis.h"

namespace ostro::page {

std::string heading(const char* text) {
  std::string id(text);
  for (char& c : id) c = c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return fmt::format("<h2 id=\"{}\">{}</h2>\n", id, text);
}

std::string contents(std::string_view body) {
  constexpr std::string_view kBegin = "<h2 id=\"";
  std::string links;
  for (size_t at = body.find(kBegin); at != std::string_view::npos; at = body.find(kBegin, at + 1)) {
    const size_t id = at + kBegin.size(), id_end = body.find('"', id), text = body.find('>', id) + 1;
    links += fmt::format("<a href=\"#{}\">{}</a>", body.substr(id, id_end - id),
                         body.substr(text, body.find("</h2>", text) - text));
  }
  return links.empty() ? "" : "<nav aria-label=\"contents\">" + links + "</nav>\n";
}

std::string hash_html(std::string_view hash) {
  return fmt::format("<span class=\"hash\">{}</span>", html_escaped(hash));
}

std::string command_html(std::string_view command) {
  return fmt::format("<code class=\"command\">{}</code>", html_escaped(command));
}

std::string cut(std::string_view text, size_t limit) {
  if (text.size() <= limit) return html_escaped(text);
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return html_escaped(text.substr(0, limit)) +
         fmt::format("… <small>({} more bytes)</small>", grouped(static_cast<int64_t>(text.size() - limit)));
}

std::string cut_words(const std::vector<std::string>& words) {
  return cut(fmt::format("{}", fmt::join(words, " ")), kLongestWord);
}

std::string and_earlier(size_t count, const char* what) {
  if (count == 0) return "";
  return fmt::format("<p class=\"soft\">and {} earlier {}.</p>\n", grouped(static_cast<int64_t>(count)),
                     what);
}

void FactTable::row(std::string_view name, const std::string& html) {
  if (!html.empty()) rows_ += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", name, html);
}

void FactTable::hash(std::string_view name, std::string_view hash) { row(name, hash_html(hash)); }

std::string FactTable::html() const {
  return rows_.empty() ? "" : "<table class=\"facts\">" + rows_ + "</table>\n";
}

}  // namespace ostro::page
