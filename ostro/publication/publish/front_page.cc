#include "ostro/publication/publish/front_page.h"

#include <fmt/format.h>

namespace ostro::publication {
namespace {

// Text of the plan's author in a table of Markdown.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      out += ' ';
      continue;
    }
    if (std::string_view("\\`*_[]<>|#").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string front_page(const PublicationManifest& m, const lab::Plan& plan) {
  std::string out = fmt::format(
      "# {}\n\n{}\n\nThis folder is a published experiment. To check all of it: `ostro verify .`, which "
      "needs "
      "nothing but this folder\nand ostro. The lab hash is `{}`.\n\n",
      cell(m.lab), cell(m.question), m.lab_hash);
  out += "| | |\n|---|---|\n";
  out += fmt::format("| `{}`, and what it names | the plan: question, steps, hypotheses |\n", m.plan);
  out += fmt::format("| `{}/index.html` | pages about it, with the report; they open in a browser |\n",
                     kSiteFolder);
  out += fmt::format("| `{}` | the record: every number, as SQLite tables |\n", kRecordFile);
  out += fmt::format("| `{}.lab` | journal and registry, which are hash chains, and outputs of steps |\n",
                     m.lab);
  out += fmt::format("| `{}` | lists all files with their SHA-256 |\n", kManifestFile);
  out += "| `ro-crate-metadata.json`, `croissant.json`, `provenance.*` | the same for other programs |\n\n";
  out += "| step | kind | content | |\n|---|---|---|---|\n";
  for (const lab::Step& step : plan.steps) {
    const auto found = m.steps.find(step.name);
    if (found == m.steps.end()) continue;  // it is left out
    const PublishedStep& s = found->second;
    const std::string more = !s.bundle.empty()    ? fmt::format("model and record: `{}`", s.bundle)
                             : !s.licence.empty() ? cell(s.licence)
                                                  : "";
    out += fmt::format("| {} | {} | `{}` | {} |\n", cell(step.name), s.kind, s.content, more);
  }
  return out +
         "\nThe texts that the sources are made of are not here. Their SHA-256 stand in the journal, so "
         "whoever "
         "has the same\nfiles can do the whole experiment again: `ostro lab run`, and compare the lab "
         "hash.\n";
}

}  // namespace ostro::publication
