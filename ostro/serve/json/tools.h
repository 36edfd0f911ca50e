// ToolFormat: how a model writes calls of functions in its text; parse_calls: the calls in a text.
//
// The format is data beside the chat template, tool_format.json:
//   {"begin": "<tool_call>", "end": "</tool_call>", "name": "name", "arguments": "arguments"}
// Between `begin` and `end` stands a JSON object with the two members, or a list of such objects; a text may
// have several such places, and nothing but white space behind the first. With an empty `begin` and `end` the
// whole text is the call. Values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/io/files/file_system.h"

namespace ostro::serve {

inline constexpr const char* kToolFormatFile = "tool_format.json";

struct ToolFormat {
  std::string begin, end;
  std::string name = "name", arguments = "arguments";
};

// The one beside a tokenizer (a file, or the folder that it is in); nothing: there is none. Errors name the
// file and the member that is wrong.
Result<std::optional<ToolFormat>> load_tool_format(io::FileSystem& fs, const std::string& tokenizer_path);

struct ToolCall {
  std::string name;
  std::string arguments;  // JSON text of an object
};

// How the calls of an answer are read.
struct ToolUse {
  ToolFormat format;
  std::vector<std::string> names;  // of the functions that the request has
};

struct CallsInText {
  std::string content;  // the text in front of the calls, without white space at its end
  std::vector<ToolCall> calls;
};

// Nothing where the text has no call, or one that is broken: no JSON, another member, a function that the
// request does not have, an end that is missing before more text. Such an answer is text.
std::optional<CallsInText> parse_calls(const ToolUse& use, std::string_view text);
// How many bytes of a text that goes on are certainly content: they are in front of whatever may begin a
// call, and of the white space before it.
size_t certain_content(const ToolFormat& format, std::string_view text);

}  // namespace ostro::serve
