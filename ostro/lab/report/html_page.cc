#include "ostro/lab/report/html_page.h"

#include <fmt/format.h>

#include "ostro/base/html.h"

namespace ostro::lab {
namespace {

constexpr const char* kStyle = R"css(
body{margin:0;background:#fcfcfb;color:#1d2127;font:16px/1.5 system-ui,sans-serif}
main{max-width:62rem;margin:0 auto;padding:2rem 1.2rem}
h1,h2,p,code{overflow-wrap:anywhere}h2{margin-top:2.2rem;border-top:1px solid #dfe2e6;padding-top:1rem;font-size:1.15rem}
p{max-width:46rem}svg{max-width:46rem;width:100%;height:auto}a{color:#2f6db5}
table{border-collapse:collapse;font-size:.92rem}.scroll{overflow-x:auto}
td,th{padding:.25rem .9rem .25rem 0;text-align:left;vertical-align:top;border-bottom:1px solid #dfe2e6}
.n{text-align:right;font-variant-numeric:tabular-nums}code{font-size:.85em}small{color:#626a75}
svg.graph{max-width:100%}nav a{margin-right:1rem}.measured,.failed{color:#9a6200}.declared,.wait,.run,.resume{color:#626a75}.done,.replayed{color:#1f7a44}
)css";

}  // namespace

std::string html_page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>{}</style></head>\n"
      "<body><main>\n{}</main></body></html>\n",
      html_escaped(title), kStyle, body);
}

std::string cell(const std::string& html, bool is_number) {
  return fmt::format("<td{}>{}</td>", is_number ? " class=\"n\"" : "", html);
}

std::string shown_text(const std::string& text) {
  constexpr size_t kMost = 2000;
  if (text.size() <= kMost) return html_escaped(text);
  size_t end = kMost;
  while (end > kMost - 4 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return fmt::format("{} <small>(the beginning of {} bytes)</small>", html_escaped(text.substr(0, end)),
                     text.size());
}

std::string html_table(const Rows& rows, size_t most) {
  std::string out = "<div class=\"scroll\"><table><thead><tr>";
  for (const std::string& column : rows.columns) out += fmt::format("<th>{}</th>", html_escaped(column));
  out += "</tr></thead><tbody>\n";
  for (size_t i = 0; i < rows.rows.size() && i < most; ++i) {
    out += "<tr>";
    for (const Value& value : rows.rows[i])
      out += cell(shown_text(value_text(value)), !std::holds_alternative<std::string>(value));
    out += "</tr>\n";
  }
  out += "</tbody></table></div>\n";
  if (rows.rows.size() > most)
    out += fmt::format("<p><small>and {} more rows</small></p>\n", rows.rows.size() - most);
  return out;
}

}  // namespace ostro::lab
