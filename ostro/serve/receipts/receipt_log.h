// ReceiptMaker: makes the receipts of a server, each with the hash of the one before, signs them, and keeps
// them in a file.
//
// FOLDER/receipts.jsonl has a line for each, without its opening: {"receipt", "signature", "public_key"}. A
// line that a lost process left unfinished is passed over when the file is read, and cut off before the next
// one is written. make() is thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "ostro/bundle/parts/signature.h"
#include "ostro/io/files/file_system.h"
#include "ostro/serve/receipts/receipt.h"

namespace ostro::serve {

inline constexpr const char* kReceiptsFile = "receipts.jsonl";

class ReceiptMaker {
 public:
  // Reads the file of `folder`, if there is one, and continues its chain. With an empty `folder` there is no
  // file, and a new chain begins. Errors: a file whose lines are no chain (with the line); a folder that
  // another server uses; those of reading.
  static Result<std::unique_ptr<ReceiptMaker>> open(io::FileSystem& fs, const std::string& folder,
                                                    std::optional<bundle::SigningKey> key);

  // Returns the receipt of a finished answer, after it is safe in the file. `log_probs` are those of its
  // tokens. Errors: those of writing; the receipt then does not count.
  Result<ReceiptDocument> make(const ServedModel& model, const AnswerState& answer,
                               const AnswerOptions& options, const std::string& nonce,
                               std::vector<float> log_probs);

 private:
  ReceiptMaker(io::FileSystem& fs, std::optional<bundle::SigningKey> key) : fs_(fs), key_(std::move(key)) {}
  Status read_file();
  // After a failed append the file is cut back to its last whole line.
  Status append(const std::string& line);

  io::FileSystem& fs_;
  std::mutex mutex_;
  std::optional<bundle::SigningKey> key_;
  std::string path_;  // empty: no file
  std::unique_ptr<io::FileLock> lock_;
  std::unique_ptr<io::WritableFile> file_;
  int64_t size_ = 0;  // of its whole lines
  int64_t number_ = 0;
  std::string previous_;
};

}  // namespace ostro::serve
