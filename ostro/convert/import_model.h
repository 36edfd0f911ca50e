// `ostro import`: a checkpoint of a model that another program wrote, or of one that Ostro has.
#pragma once

#include <optional>

#include "ostro/convert/import_grok.h"
#include "ostro/convert/import_upcycle.h"

namespace ostro::convert {

// What the options of the command say. Each importer takes some of them; the others must have their defaults.
struct ImportRequest {
  std::string from;                // hf, peft or grok; empty with `experts`
  GrokImport grok;                 // directory, out and tokenizer are of every importer
  std::optional<int64_t> experts;  // --upcycle
  Upcycle upcycle;  // the checkpoint is also --from peft's; experts, out and tokenizer are set here
};

// Makes the directory `out`. Returns what there is to say about it, in a line. Errors: kInvalidArgument for
// options that do not belong together, and what the importers say.
Result<std::string> import_model(const Context& context, const ImportRequest& request);

}  // namespace ostro::convert
