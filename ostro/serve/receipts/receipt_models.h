// ReceiptModels: the models of which receipts are checked, each kept once it is open.
//
// A log may have receipts of several precisions and adapters in any order. A precision is opened at most
// twice, and once where no receipt's forward program had to be looked for. Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ostro/serve/receipts/receipt.h"

namespace ostro::serve {

class ReceiptModels {
 public:
  using Models = std::vector<std::unique_ptr<ServedModel>>;
  // Opens the model at hand, and with each of its adapters, in the precision of this word
  // (ModelFacts::dtype).
  using Open = std::function<Result<Models>(const std::string& precision)>;

  explicit ReceiptModels(Open open) : open_(std::move(open)) {}

  // The model in the receipt's precision, with its adapter; if there is none with that, the last one, and the
  // check says what differs. Valid as long as this. Errors: those of opening it.
  Result<ServedModel*> of(const Receipt& receipt);
  // The word of the precision, other than `than`, in which the model has the receipt's forward program; "":
  // none. A model that was only opened for this is closed again, and its programs' hashes stay.
  std::string precision_of_program(const Receipt& receipt, const std::string& than);

 private:
  Open open_;
  std::map<std::string, Models> models_;                               // by precision
  std::map<std::string, std::map<std::string, std::string>> forward_;  // by precision, by adapter
};

}  // namespace ostro::serve
