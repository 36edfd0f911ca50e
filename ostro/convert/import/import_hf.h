// `ostro import --from hf`: a model in the Hugging Face layout as a checkpoint with which training can go on.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "ostro/context/context.h"
#include "ostro/train/options/config.h"

namespace ostro::convert {

// In the directory that import_hf makes: {"dtype": "BF16"}, the type that all weights had, or F32 if they had
// several. It is apart from checkpoint::kOriginFile, which the chains of runs begin with.
inline constexpr const char* kImportFile = "import.json";

struct HfImport {
  std::string directory, out, tokenizer;  // no tokenizer: the directory's
};

// Makes the directory `out`: a checkpoint of the model in `directory`, what came with it, and a configuration
// to go on training with. Returns a line about it, for a person. If anything fails, there is no `out`.
Result<std::string> import_hf(const Context& context, const HfImport& request);

// For trainer.initialize_from (run::Environment::import_model): the checkpoint in the directory `to`, which
// is made anew, of the Hugging Face directory `from`; nothing where `from` is none.
Result<std::optional<std::string>> import_beginning(const Context& context, const std::string& from,
                                                    const std::string& to);

// A Hugging Face directory as trainer.initialize_from, for a command that has no run: a checkpoint of it in a
// folder of TMPDIR, which the destructor removes.
class BorrowedImport {
 public:
  // Where `config` names such a directory, makes the checkpoint and lets the config name it instead. Else
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
