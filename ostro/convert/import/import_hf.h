// import_hf: makes a checkpoint, with which training can go on, from a model in the Hugging Face layout, for
// `ostro import --from hf`.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "ostro/context/context.h"
#include "ostro/train/options/config.h"

namespace ostro::convert {

// A file in the directory that import_hf makes: {"dtype": "BF16"}, the type that all weights had, or F32 if
// they had several. It is not part of checkpoint::kOriginFile, because the genesis of a run contains that.
inline constexpr const char* kImportFile = "import.json";

struct HfImport {
  std::string directory, out, tokenizer;  // tokenizer "": that of the directory
};

// Makes the directory `out`: a checkpoint of the model in `directory`, its tokenizer and chat template, and a
// configuration to go on training with. Returns a line about it, for a person. If anything fails, there is no
// `out`. Errors: kUnsupported for a model that Ostro does not have; those of reading and writing.
Result<std::string> import_hf(const Context& context, const HfImport& request);

// For trainer.initialize_from (run::Environment::import_model): makes a checkpoint of the Hugging Face
// directory `from` in the directory `to`, which is made anew, and returns its path. Nothing when `from` is no
// such directory.
Result<std::optional<std::string>> import_beginning(const Context& context, const std::string& from,
                                                    const std::string& to);

// The checkpoint of a Hugging Face directory that trainer.initialize_from names, for a command that has no
// run. It lies in a folder of TMPDIR, which the destructor removes.
class BorrowedImport {
 public:
  // When `config` names such a directory, makes the checkpoint and puts its path into `config`. Otherwise
  // does nothing. Errors: as import_hf.
  static Result<BorrowedImport> take(const Context& context, train::TrainConfig& config);
  BorrowedImport(BorrowedImport&& other) noexcept : fs_(other.fs_), place_(std::exchange(other.place_, {})) {}
  BorrowedImport& operator=(BorrowedImport&& other) noexcept {
    std::swap(fs_, other.fs_);
    std::swap(place_, other.place_);
    return *this;
  }
  ~BorrowedImport();

 private:
  explicit BorrowedImport(io::FileSystem& fs) : fs_(&fs) {}
  io::FileSystem* fs_;
  std::string place_;  // "": there is none
};

}  // namespace ostro::convert
