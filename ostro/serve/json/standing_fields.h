// read_standing_fields: fields of OpenAI's API with which clients say what this server does anyway, and
// labels.
//
// Neither changes an answer. Of the first only the value is taken that is true here (docs/guide/serve.md
// lists them); another one is an error, for the client would wait in vain for what it asks. Pure.
#pragma once

#include "ostro/serve/json/fields.h"

namespace ostro::serve {

// `chat`: the fields of /v1/chat/completions and /v1/responses besides those of completions.
void read_standing_fields(Fields& fields, bool chat);

}  // namespace ostro::serve
