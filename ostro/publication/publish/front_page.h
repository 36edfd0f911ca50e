// front_page: README.md of a publication, for the reader who finds it. A pure function. Private to the
// sub-room.
#pragma once

#include <string>

#include "ostro/experiment/plan/plan.h"
#include "ostro/publication/parts/manifest.h"

namespace ostro::publication {

std::string front_page(const PublicationManifest& manifest, const lab::Plan& plan);

}  // namespace ostro::publication
