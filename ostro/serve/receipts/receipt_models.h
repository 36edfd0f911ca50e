// ReceiptModels: the models of which receipts are checked: those of one precision and context at a time.
//
// A receipt's writer chooses its precision and context, so neither what they cost in memory nor what they
// cost in time may add up: before a model of another precision or context is opened, the one before is
// closed, and programs are looked for without weights. Who asks in the order of precision and context (of())
// opens each once. Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/serve/model/programs.h"
#include "ostro/serve/receipts/receipt.h"

namespace ostro::serve {

class ReceiptModels {
 public:
  using Models = std::vector<std::unique_ptr<ServedModel>>;
  // Opens the model at hand, and with each of its adapters, in the precision of this word
  // (ModelFacts::dtype), for so many positions; nothing: as many as in training.
  using Open = std::function<Result<Models>(const std::string& precision, std::optional<int64_t> context)>;
  // The programs that these models would have, in the same order (programs_of).
  using Programs = std::function<Result<std::vector<ServedProgram>>(const std::string& precision,
                                                                    std::optional<int64_t> context)>;

  ReceiptModels(Open open, Programs programs) : open_(std::move(open)), programs_(std::move(programs)) {}

  // The model in the receipt's precision and context, with its adapter. If the checkpoint cannot have that
  // context, the model in its own; if there is none with that adapter, the last one; the check says what
  // differs. Valid until the next call of this. Errors: those of opening it.
  Result<ServedModel*> of(const Receipt& receipt);
  // Whether there is such a model at all, in the precision and context of training. Error: why not.
  Status at_hand();
  // The word of the precision, other than `than`, in which the model has the receipt's forward program; "":
  // none. The hash of an adapter is known when of() has opened it.
  std::string precision_of_program(const Receipt& receipt, const std::string& than);
  // The same of the context of training; nothing: its program is another one, or it is the receipt's context.
  std::optional<int64_t> context_of_program(const Receipt& receipt);

 private:
  struct Key {
    std::string precision;
    std::optional<int64_t> context;
    auto operator<=>(const Key&) const = default;
  };

  Status open(const Key& key);
  const Result<std::vector<ServedProgram>>& programs_of(const Key& key);
  // That of the receipt's adapter; null: the model cannot be opened so, or has no such adapter.
  const ServedProgram* program_of(const Key& key, const Receipt& receipt);

  Open open_;
  Programs programs_;
  std::optional<Key> key_;  // of models_
  Models models_;
  std::vector<std::string> adapters_;  // hashes, in the order of models_, known once any were open
  std::map<Key, Result<std::vector<ServedProgram>>> known_;
};

}  // namespace ostro::serve
