// model_card: README.md of a bundle, in the form of a Hugging Face model card, filled from the run's record.
//
// It depends on the record and the manifest alone, and has no dates. A pure function.
#pragma once

#include <optional>
#include <string>

#include "ostro/bundle/parts/manifest.h"
#include "ostro/page/facts/run_view.h"

namespace ostro::bundle {

// `manifest` has everything but the files. `base_model`: the model that the run began with, as its publisher
// names it.
std::string model_card(const page::RunView& view, const BundleManifest& manifest,
                       const std::optional<std::string>& base_model, bool is_signed);

}  // namespace ostro::bundle
