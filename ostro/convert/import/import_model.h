// import_model: makes a checkpoint from a model that another program wrote, or from another checkpoint, for
// `ostro import`.
#pragma once

#include <optional>

#include "ostro/convert/import/import_grok.h"
#include "ostro/convert/import/import_upcycle.h"

namespace ostro::convert {

// The options of the command. Each importer takes some of them; the others must have their defaults.
struct ImportRequest {
  std::string from;                // hf, peft or grok; empty with `experts`
  GrokImport grok;                 // all importers read its directory, out and tokenizer
  std::optional<int64_t> experts;  // --upcycle
  Upcycle upcycle;                 // `checkpoint` is also for peft; import_model sets experts, out, tokenizer
};

// Makes the directory `out`. Returns a line about it, for a person. Errors: kInvalidArgument for options that
// do not belong together; those of the importers.
Result<std::string> import_model(const Context& context, const ImportRequest& request);

}  // namespace ostro::convert
