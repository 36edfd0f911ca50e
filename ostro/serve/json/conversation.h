// read_messages, read_tools, read_items, read_variables: conversations and functions of a request, and
// further variables, as a chat template gets them. Private to this room. An error goes to `fields`, and the
// result is then empty.
#pragma once

#include <string>
#include <vector>

#include "ostro/serve/json/fields.h"

namespace ostro::serve {

// The list "messages" of a chat. A content that is a list of texts becomes one text, and arguments of calls
// that are JSON text become the object, and the role "developer" is "system", which is what templates expect.
nlohmann::ordered_json read_messages(Fields& fields, const nlohmann::ordered_json& messages);

struct Functions {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();  // for the template; empty: none
  std::vector<std::string> names;
};
// "tools" and "tool_choice". `flat`: a function's members stand in the tool itself, as /v1/responses has it.
Functions read_tools(Fields& fields, bool flat);

// "chat_template_kwargs": the object of variables for the template; empty: none.
nlohmann::ordered_json read_variables(Fields& fields);

// "input" of /v1/responses, with "instructions" in front, as messages.
nlohmann::ordered_json read_items(Fields& fields, const nlohmann::ordered_json& input,
                                  const std::string& instructions);

}  // namespace ostro::serve
