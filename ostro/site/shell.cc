#include "ostro/site/shell.h"

#include <fmt/format.h>

#include "ostro/audit/record/run_diff.h"
#include "ostro/base/html.h"
#include "ostro/base/sha256.h"
#include "ostro/lab/report/html_page.h"
#include "ostro/site/script/batches_script.h"
#include "ostro/site/script/chain_script.h"
#include "ostro/site/script/chart_script.h"
#include "ostro/site/script/core_script.h"
#include "ostro/site/script/diff_script.h"
#include "ostro/site/script/table_script.h"
#include "ostro/site/style.h"

namespace ostro::site {

std::string Shell::page(const std::string& file, const std::string& title, const std::string& body) const {
  std::string navigation = "<nav aria-label=\"pages\">";
  for (const auto& [target, name] : links)
    navigation += fmt::format("<a href=\"{}\"{}>{}</a> ", target,
                              target == file ? " aria-current=\"page\"" : "", html_escaped(name));
  // A browser takes a page from a folder as one of no origin, so "self" alone does not name its neighbours.
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'self' file:; "
      "script-src 'self' file:;{} base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n{}<title>{}</title>\n"
      "<link rel=\"stylesheet\" href=\"style.css\">\n<script src=\"site.js\" defer></script></head>\n"
      "<body><header>{}</nav></header>\n<main{}><h1>{}</h1>\n{}</main></body></html>\n",
      live ? " connect-src 'self';" : "",
      live ? "<noscript><meta http-equiv=\"refresh\" content=\"20\"></noscript>\n" : "",
      html_escaped(title.substr(0, 200) + " - " + lab), navigation,
      live ? fmt::format(" data-live=\"{}\"", sha256_hex(navigation + body).substr(0, 16)) : "",
      lab::shown_text(title), body);
}

std::string badge(const std::string& kind, const std::string& text, const std::string& meaning) {
  return fmt::format("<span class=\"badge {}\" title=\"{}\">{}</span> ", kind, html_escaped(meaning),
                     html_escaped(text));
}

std::string style_sheet() { return kStyleSheet; }

std::string site_script() {
  std::string out =
      fmt::format("'use strict';\n(() => {{\nconst kRules = {};\n", audit::run_diff_rules_json());
  for (const char* part :
       {kCoreScript, kTableScript, kChartScript, kChainScript, kDiffScript, kBatchesScript})
    out += part;
  return out + "start();\n})();\n";
}

std::string data_script(const std::string& name, const std::string& json) {
  return fmt::format("ostro_data(\"{}\", {});\n", name, json);
}

}  // namespace ostro::site
