// PublishedLab: the lab in a publication, opened as if all its steps were done here. Private to the sub-room.
#pragma once

#include <string>
#include <vector>

#include "ostro/experiment/journal/journal.h"
#include "ostro/lab/drive/lab_state.h"
#include "ostro/publication/parts/manifest.h"

namespace ostro::publication {

struct PublishedLab {
  lab::Plan plan;
  lab::LabState state;  // of the steps that journal and manifest agree on, all done
};

// Opens it. What the journal, the plan and publication.json say differently of a step is added to `faults`, a
// line each. Errors: those of reading the plan.
Result<PublishedLab> open_lab(io::FileSystem& fs, const std::string& directory,
                              const PublicationManifest& manifest, const lab::Journal& journal,
                              std::vector<std::string>& faults);

// Compares the files of the outputs, as the manifest lists them, with the lists that the journal has the
// hashes of: a line for each file that is another one. Those that only the lists have are counted in
// `left_out`.
Result<std::vector<std::string>> output_faults(io::FileSystem& fs, const PublishedLab& lab,
                                               const PublicationManifest& manifest, int64_t& left_out);

}  // namespace ostro::publication
