// check_publication: checks everything about a publication that needs no replay, and comes to one verdict.
//
// It compares the files with publication.json, its signature and time stamp, each bundle with itself (bundle/
// check/check_bundle.h) and with its step, the steps with the journal, the registry with the journal, the
// outputs with the journal's lists, and makes the record again from them. It only reads.
#pragma once

#include <string>

#include "ostro/bundle/check/check_bundle.h"
#include "ostro/context/context.h"

namespace ostro::publication {

// Returns true when the directory is a publication: it has publication.json.
bool is_publication(io::FileSystem& fs, const std::string& directory);

// Checks the publication in `directory`. `options.run_hash` is the published lab hash, if there is one; its
// key is that of publication.json and of all bundles. Error: kInvalidArgument for a --key or --time_ca that
// is no such file. Whatever is wrong with the publication is a finding.
Result<bundle::BundleAudit> check_publication(const Context& context, const std::string& directory,
                                              const bundle::BundleOptions& options);

// The verdict's line first, then the other findings, what was shown and what was not. Ends with a newline.
std::string publication_text(const bundle::BundleAudit& audit);

}  // namespace ostro::publication
