#include "ostro/corpus_check/uses_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/base/one_line.h"

namespace ostro::corpus_check {
namespace {

// "positions 3 to 9 (tokens 0 to 6)", or that only its first token is the target of the last position.
std::string place_of(const batches::RowPart& part) {
  if (part.begin == part.end) return fmt::format("only as the target of position {}", part.target_end - 1);
  return fmt::format("positions {} to {} (its tokens {} to {})", part.begin, part.end - 1, part.first_token,
                     part.first_token + part.end - part.begin - 1);
}

// Why a row has no use in the steps.
std::string reason(const batches::UsedRow& row) {
  if (!row.kept)
    return "it is in no sequence: nothing of it is kept, or it is the end that no longer fills a sequence";
  if (!row.trained) return "its component has weight 0 and is only evaluated";
  return "no batch of these steps has its sequences";
}

}  // namespace

std::string uses_text(const UsesQuestion& question, std::span<const batches::UsedRow> rows) {
  std::string out;
  for (const batches::UsedRow& row : rows) {
    const std::string& component = question.stores.parts()[row.component].component.name;
    out +=
        fmt::format("{} document {}: row {}{}, {} tokens\n", one_line(row.source.file), row.source.document,
                    row.row, component.empty() ? "" : fmt::format(" of component {}", component), row.tokens);
    for (const batches::DocumentUse& use : row.uses)
      out += fmt::format("  step {}, row {}, epoch {}: sequence {}, {}\n", use.step, use.row, use.epoch,
                         use.part.sequence, place_of(use.part));
    const size_t count = row.uses.size();
    out += fmt::format("  {} place{} in steps {} to {}{}\n", count, count == 1 ? "" : "s", question.first,
                       question.end - 1, count == 0 ? ": " + reason(row) : "");
  }
  return out;
}

std::string uses_json(const UsesQuestion& question, std::span<const batches::UsedRow> rows) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const batches::UsedRow& row : rows) {
    Json entry = {{"file", row.source.file},
                  {"document", row.source.document},
                  {"row", row.row},
                  {"tokens", row.tokens},
                  {"uses", Json::array()}};
    const std::string& component = question.stores.parts()[row.component].component.name;
    if (!component.empty()) entry["component"] = component;
    if (row.uses.empty()) entry["reason"] = reason(row);
    for (const batches::DocumentUse& use : row.uses)
      entry["uses"].push_back({{"step", use.step},
                               {"row", use.row},
                               {"epoch", use.epoch},
                               {"sequence", use.part.sequence},
                               {"positions", {use.part.begin, use.part.end}},
                               {"targets", {use.part.target_begin, use.part.target_end}},
                               {"first_token", use.part.first_token}});
    list.push_back(std::move(entry));
  }
  const Json out = {{"document", question.name}, {"steps", {question.first, question.end}}, {"rows", list}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ostro::corpus_check
