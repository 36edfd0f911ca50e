// ForeignKey: the names that other trainers (Levanter, Hugging Face, nanoGPT) have for our options. Pure
// functions.
//
// One table (foreign_keys.cc) serves the errors of the reader and `ostro config import`.
#pragma once

#include <string>

#include "ostro/config/node.h"

namespace ostro::config {

struct ForeignKey {
  enum class Kind {
    kRenamed,   // `ours` is the path of the same option here
    kNone,      // there is no such option; `text` says why, and what to do
    kNoEffect,  // it would change nothing here; `text` says why
  };

  // "": in any section; "-": at the top level alone; else in this section and those inside it
  const char* section;
  const char* key;
  // nullptr: any value; "off": null, false, 0, "no", "none", an empty text, list or section; else the text
  const char* value;
  Kind kind;
  const char* ours;
  const char* text;
};

// The first row for a key at `path` ("trainer.max_steps") with this value; nullptr if there is none.
const ForeignKey* find_foreign(const std::string& path, const Node& value);

// Returns true for a value that means "not used": see ForeignKey::value.
bool is_off(const Node& value);

// "unknown key "trainer.max_steps"; it is called trainer.num_train_steps here".
std::string foreign_text(const ForeignKey& row, const std::string& path);

}  // namespace ostro::config
