// tokenize, detokenize, apply_template, tokenizer_info: the answers of the paths that make no text. Pure
// functions; the model may be shared.
#pragma once

#include "ostro/http/message.h"
#include "ostro/serve/json/body.h"
#include "ostro/serve/model/served_model.h"

namespace ostro::serve {

// Of a body {"prompt": S} or {"messages": [...]}, and of one {"tokens": [...]}.
http::Response tokenize(const ServedModel& model, const Body& body);
http::Response detokenize(const ServedModel& model, const Body& body);
// The text that the chat template makes of {"messages": [...], "tools": [...]}.
http::Response apply_template(const ServedModel& model, const Body& body);
// The content of a tokenizer_config.json, with the chat template.
http::Response tokenizer_info(const ServedModel& model);

}  // namespace ostro::serve
