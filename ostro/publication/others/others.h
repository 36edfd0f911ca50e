// texts_for_others: what a publication says of itself in the formats of other programs: RO-Crate 1.1 with the
// profile of Provenance Run Crate 0.5, Croissant 1.0 for its data, and an in-toto statement with SLSA
// provenance 1.0. Ostro never reads them back. Pure functions of what is published.
//
// Sources: https://w3id.org/ro/crate/1.1, https://w3id.org/ro/wfrun/provenance/0.5,
// http://mlcommons.org/croissant/1.0, https://in-toto.io/Statement/v1, https://slsa.dev/provenance/v1.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ostro/bundle/parts/signature.h"
#include "ostro/lab/drive/lab_state.h"
#include "ostro/publication/parts/manifest.h"

namespace ostro::publication {

// The texts by their files' names. The manifest lists all files but these. With a key the statement is in an
// envelope (DSSE) that it signed. No time is in them: the same lab gives the same bytes.
std::map<std::string, std::string> texts_for_others(const PublicationManifest& manifest,
                                                    const lab::LabState& state, const std::string& licence,
                                                    const std::optional<bundle::SigningKey>& key);

// Private to the sub-room.
std::string research_crate(const PublicationManifest& manifest, const lab::LabState& state,
                           const std::string& licence);
std::string croissant(const PublicationManifest& manifest, const std::string& licence);
std::string provenance_statement(const PublicationManifest& manifest);
// The envelope of a statement, signed.
std::string signed_envelope(const std::string& statement, const bundle::SigningKey& key);

}  // namespace ostro::publication
