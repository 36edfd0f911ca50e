// crashers: bodies of requests that ended other servers, as they were published, or stalled them: schemas,
// patterns and grammars that refer to themselves, nest, repeat, or are wrong. The fuzzer asks each as it is,
// and damages them.
#pragma once

#include <string>
#include <vector>

namespace ostro::fuzz {

struct Crasher {
  std::string name;  // with the report, where there is one
  size_t reader;     // of the body: 0 completions, 1 chats, 2 responses
  std::string body;
  bool is_refused;  // 400; otherwise a schema of a function, which is text for the template, and is answered
};

std::vector<Crasher> crashers();

}  // namespace ostro::fuzz
