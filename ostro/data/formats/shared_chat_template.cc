#include "ostro/data/formats/shared_chat_template.h"

#include <utility>
#include <variant>

namespace ostro::data {

Result<std::optional<chat::ChatTemplate>> shared_chat_template(io::FileSystem& fs, const DataOptions& options,
                                                               const tokenizer::Tokenizer& tokenizer) {
  std::optional<chat::ChatTemplate> shared;
  for (const Component& component : components_of(options)) {
    const auto* chat = std::get_if<ChatFormat>(&component.format);
    const auto* preference = std::get_if<PreferenceFormat>(&component.format);
    if ((chat == nullptr && preference == nullptr) || component.is_in_place()) continue;
    auto own = chat::ChatTemplate::load(fs, options.tokenizer_path(), tokenizer,
                                        chat != nullptr ? chat->chat_template : preference->chat_template);
    // Pairs of texts need no template.
    if (preference != nullptr && !own.ok() && own.error().code() == ErrorCode::kNotFound) continue;
    if (!own.ok()) return own.error().with_context(component.key + ".format.chat_template");
    if (shared && shared->identity() != own->identity()) return std::optional<chat::ChatTemplate>();
    shared = std::move(*own);
  }
  return shared;
}

Status keep_chat_template(io::FileSystem& fs, const DataOptions& options,
                          const tokenizer::Tokenizer& tokenizer, const std::string& directory) {
  ASSIGN_OR_RETURN(const auto chat, shared_chat_template(fs, options, tokenizer));
  return chat ? chat->save(fs, directory) : Status();
}

}  // namespace ostro::data
