// Context: the services that long work of any kind needs from the process that it runs in: files, models,
// engines, a place to show progress, and a question whether to stop. The command line makes one
// (cli/main/cli_main.cc); another program can make its own.
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
// progress, which must outlive it. Nothing in it changes the bits of a result. For one thread at a time,
// since Progress is.
struct Context {
  io::FileSystem& fs;
  models::ModelChoices models;     // the choices of model.type
  MakeEngine engine;               // for programs that run often
  MakeEngine engine_for_a_moment;  // for programs that run a few times: it has nothing to compile first
  Progress& progress;
  std::function<bool()> stop = [] { return false; };  // true: save and end soon
  // Returns the function that makes engines on a device ("cuda:1", runtime/device_name.h). Empty: this
  // process has engines for its processors only.
  std::function<MakeEngine(const std::string& device)> engine_on = {};

  // A copy that uses another file system.
  Context in(io::FileSystem& files) const {
    return {files, models, engine, engine_for_a_moment, progress, stop, engine_on};
  }
  // A copy whose `engine` makes engines on that device. An error of `engine` says when there is no such
  // device.
  Context on(const std::string& device) const {
    Context out = *this;
    if (engine_on) out.engine = engine_on(device);
    return out;
  }
};

}  // namespace ostro
