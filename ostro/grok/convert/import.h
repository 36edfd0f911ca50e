// Writes the tensors of a release as a checkpoint, a few hundred MiB in memory at a time.
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
  // Told bytes of the checkpoint: written, of all.
  std::function<void(int64_t done, int64_t total)> progress;
};

// Refuses layers that the release does not have, and a release of which a tensor that is needed is missing or
// is not what its name says: every pickle is read before anything is written.
Status check_import(const Release& release, const ImportOptions& options);

// The checkpoint `root`/step-00000000; `info` is its configuration and so on. int8 weights times their
// scales: exact in f32, rounded to bf16 as the release's program does it. On an error there is no checkpoint.
Result<checkpoint::Saved> import_release(io::FileSystem& fs, const Release& release, const std::string& root,
                                         const checkpoint::Info& info, const ImportOptions& options);

}  // namespace ostro::grok
