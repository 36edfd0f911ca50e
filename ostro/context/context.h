// Context: what a process gives to everything that it is asked to do: files, models, engines, a place to show
// progress, and whether to stop. The command line makes one (cli/main/cli_main.cc), as another program can.
#pragma once

#include <functional>
#include <memory>

#include "ostro/base/progress.h"
#include "ostro/io/files/file_system.h"
#include "ostro/models/model_choices.h"
#include "ostro/runtime/engine.h"

namespace ostro {

// Makes an engine at each call. Errors: what keeps it from being made, for example a variable with a wrong
// value.
using MakeEngine = std::function<Result<std::unique_ptr<runtime::Engine>>()>;

// Functions take it as the first argument and keep no reference to it. A copy refers to the same files and
// progress, which must outlive it. None of it changes the bits of a result.
struct Context {
  io::FileSystem& fs;
  models::ModelChoices models;     // the choices of model.type
  MakeEngine engine;               // for programs that run often
  MakeEngine engine_for_a_moment;  // for programs that run a few times: it has nothing to compile first
  Progress& progress;
  std::function<bool()> stop = [] { return false; };  // true: save and end soon
  // What `engine` is on another device ("cuda:1", runtime/device_name.h); empty: there is none but the
  // processors.
  std::function<MakeEngine(const std::string& device)> engine_on = {};

  // The same, on another file system.
  Context in(io::FileSystem& files) const {
    return {files, models, engine, engine_for_a_moment, progress, stop, engine_on};
  }
  // The same, with engines on that device. Whether the device is there, only `engine` finds out.
  Context on(const std::string& device) const {
    Context out = *this;
    if (engine_on) out.engine = engine_on(device);
    return out;
  }
};

}  // namespace ostro
