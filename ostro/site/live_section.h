// live_html: what runs in a lab now, for pages that a server gives out.
#pragma once

#include <string>

#include "ostro/lab/drive/live_lab.h"

namespace ostro::site {

// Who works on the lab, the steps that were begun, and of each training step, losses, speed, the time that is
// left, and its curve. Reads the folders of runs; one that cannot be read has no curve.
std::string live_html(io::FileSystem& fs, const lab::LiveLab& lab);

}  // namespace ostro::site
