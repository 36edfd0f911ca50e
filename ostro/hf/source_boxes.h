// source_boxes: the weights of a Hugging Face directory as boxes of our parameters, f32.
#pragma once

#include <memory>

#include "ostro/checkpoint/boxes.h"
#include "ostro/hf/source.h"

namespace ostro::hf {

// Returns a function that reads boxes from the source's tensors; parameters are counted as in source->paths.
// Each call reads the units (source_units.h) that the box touches, whole; the last one stays in memory. Calls
// from several threads wait for each other. Errors: those of read_unit().
checkpoint::ReadBox source_boxes(std::shared_ptr<const Source> source, int threads = 2);

}  // namespace ostro::hf
