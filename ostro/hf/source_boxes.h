// source_boxes: the weights of a Hugging Face directory as boxes of our parameters, f32.
#pragma once

#include <memory>

#include "ostro/checkpoint/boxes.h"
#include "ostro/hf/source.h"

namespace ostro::hf {

// Reads the source's tensors; parameters are counted as in source->paths. Each call reads the units
// (source_units.h) that the box touches, whole; the last one stays in memory. Calls wait for each other.
checkpoint::ReadBox source_boxes(std::shared_ptr<const Source> source, int threads = 2);

}  // namespace ostro::hf
