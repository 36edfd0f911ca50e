// For check_chat.py. `chat_helper render`: every line of stdin is {"template", "context"}; `chat_helper
// format TOKENIZER`: every line is {"format": "chat" | "supervised" | "preference" | "prebuilt" | "text",
// options ..., "row": {...}}, or {"prompt": text}, for which the ids of a prompt and those after which
// generation ends come. A line of JSON for each.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "ostro/chat/run/template.h"
#include "ostro/chat/value/from_json.h"
#include "ostro/data/formats/row_formatter.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/tokenizer/model/text_ends.h"

namespace {

using nlohmann::ordered_json;
namespace jinja = ostro::chat::jinja;

ordered_json render(const ordered_json& line) {
  auto parsed = jinja::Template::parse(line["template"].get<std::string>(), "template");
  if (!parsed.ok()) return {{"error", parsed.error().message()}};
  jinja::RenderOptions options;
  if (line.contains("now")) options.now = line["now"].get<int64_t>();
  const auto context = jinja::from_json(line["context"].dump());
  if (!context.ok()) return {{"error", context.error().message()}};
  const auto out = parsed->render(context.value().as_mapping(), options);
  if (!out.ok()) return {{"error", out.error().message()}};
  return {{"text", out.value().text}, {"spans", out.value().generations}};
}

ostro::data::RowFormat format_options(const ordered_json& line) {
  const auto type = line["format"].get<std::string>();
  const auto text = [&](const char* key) -> std::optional<std::string> {
    if (!line.contains(key)) return std::nullopt;
    return line[key].get<std::string>();
  };
  if (type == "chat") {
    ostro::data::ChatFormat out;
    out.chat_template = text("chat_template");
    out.mask_user_turns = line.value("mask_user_turns", true);
    return out;
  }
  if (type == "supervised") {
    ostro::data::SupervisedFormat out;
    out.separate_with = text("separate_with");
    out.mask_inputs = line.value("mask_inputs", true);
    return out;
  }
  if (type == "preference") return ostro::data::PreferenceFormat{};
  if (type == "prebuilt") {
    ostro::data::PrebuiltFormat out;
    out.loss_weights_key = text("loss_weights_key");
    return out;
  }
  return ostro::data::TextFormat{};
}

ordered_json format(const std::string& path, const ostro::tokenizer::Tokenizer& tokenizer,
                    ostro::tokenizer::Encoder& encoder, const ordered_json& line) {
  if (line.contains("prompt")) {
    const auto ids = ostro::tokenizer::prompt_ids(tokenizer, line["prompt"].get<std::string>());
    const auto ends = ostro::tokenizer::text_ends(tokenizer);
    if (!ids.ok()) return {{"error", ids.error().message()}};
    return {{"ids", ids.value()}, {"stops", ends.value().stops}};
  }
  auto formatter =
      ostro::data::make_row_formatter(ostro::io::local_file_system(), format_options(line), "format", path,
                                      tokenizer, {.enforce_eos = line.value("enforce_eos", false)});
  if (!formatter.ok()) return {{"error", formatter.error().message()}};
  ostro::data::Row row;
  row.bytes = line["row"].dump();
  const auto out = (*formatter)->format(row, encoder);
  if (!out.ok()) return {{"error", out.error().message()}};
  const ostro::data::FormattedRow& f = out.value();
  using ostro::data::RowSkip;
  const char* skip = f.skip == RowSkip::kEmpty ? "empty" : f.skip == RowSkip::kNoLoss ? "no loss" : "";
  return {{"ids", f.ids}, {"weights", f.weights}, {"content", f.content}, {"skip", skip}};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  std::string text;
  if (mode == "render") {
    while (std::getline(std::cin, text)) std::cout << render(ordered_json::parse(text)).dump() << '\n';
    return 0;
  }
  if (mode != "format" || argc != 3) {
    std::fprintf(stderr, "usage: chat_helper render | format TOKENIZER\n");
    return 2;
  }
  const auto tokenizer = ostro::tokenizer::load_tokenizer(ostro::io::local_file_system(), argv[2]);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message().c_str());
    return 1;
  }
  ostro::tokenizer::Encoder encoder(tokenizer.value());
  while (std::getline(std::cin, text))
    std::cout << format(argv[2], tokenizer.value(), encoder, ordered_json::parse(text)).dump() << '\n';
  return 0;
}
