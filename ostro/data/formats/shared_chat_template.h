// The chat template that goes with a model trained on a configuration's data.
#pragma once

#include <optional>

#include "ostro/base/error.h"
#include "ostro/chat/chat_template.h"
#include "ostro/data/options/options.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

// The template of all chat components that are made into tokens here. None without such a component, and when
// two of them have different ones: a model has one.
Result<std::optional<chat::ChatTemplate>> shared_chat_template(io::FileSystem& fs, const DataOptions& options,
                                                               const tokenizer::Tokenizer& tokenizer);

}  // namespace ostro::data
