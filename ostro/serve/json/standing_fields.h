// read_standing_fields: fields of OpenAI's API with which clients say what this server does anyway, and
// labels.
//
// Neither changes an answer. Of the first only the value is taken that is true here (docs/guide/serve.md
// lists them); another one is an error, for the client would wait in vain for what it asks. Pure.
#pragma once

#include "ostro/serve/json/fields.h"

namespace ostro::serve {

void read_standing_completion(Fields& fields, int64_t answers);  // of /v1/completions with that `n`
void read_standing_chat(Fields& fields);                         // of /v1/chat/completions
void read_standing_response(Fields& fields);                     // of /v1/responses

}  // namespace ostro::serve
