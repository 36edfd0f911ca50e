// shared_chat_template: the chat template to export with a model trained on a configuration's data.
#pragma once

#include <optional>
#include <string>

#include "ostro/base/error.h"
#include "ostro/chat/chat_template.h"
#include "ostro/data/options/options.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

// Returns the template that all chat components with texts share. Nothing when no component has one, or when
// two have different ones, since a model has only one. Errors: those of reading a template, with the key of
// its component.
Result<std::optional<chat::ChatTemplate>> shared_chat_template(io::FileSystem& fs, const DataOptions& options,
                                                               const tokenizer::Tokenizer& tokenizer);

// Writes that template into the directory of a run, so that who exports the model can talk to it as it was
// trained. Without one, what is there stays.
Status keep_chat_template(io::FileSystem& fs, const DataOptions& options,
                          const tokenizer::Tokenizer& tokenizer, const std::string& directory);

}  // namespace ostro::data
