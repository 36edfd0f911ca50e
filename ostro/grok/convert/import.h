// import_release: writes the tensors of a release as a checkpoint, with a few hundred MiB in memory at a
// time.
#pragma once

#include <functional>
#include <string>

#include "ostro/checkpoint/manifest.h"
#include "ostro/checkpoint/save.h"
#include "ostro/grok/convert/model.h"
#include "ostro/grok/release/reader.h"

namespace ostro::grok {

struct ImportOptions {
  LayerRange layers;
  Held held = Held::kF32;
  // Called with the bytes of the checkpoint that were written, and of the whole checkpoint.
  std::function<void(int64_t done, int64_t total)> progress;
};

// Reads the pickles of all tensors that an import needs, not their elements. Errors: layers that the release
// does not have; int8 from a release without int8 matrices; a tensor that is missing or has another dtype or
// shape.
Status check_import(const Release& release, const ImportOptions& options);

// Writes the checkpoint `root`/step-00000000; `info` is its configuration and so on. int8 weights are
// multiplied by their scales: exact in f32, rounded to bf16 as the release's program does it. Errors: those
// of check_import, before anything is written; an element that is infinite or NaN. On an error there is no
// checkpoint.
Result<checkpoint::Saved> import_release(io::FileSystem& fs, const Release& release, const std::string& root,
                                         const checkpoint::Info& info, const ImportOptions& options);

}  // namespace ostro::grok
