#include "ostro/serve/receipts/receipt_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include "ostro/base/hex_digits.h"
#include "ostro/base/sha256.h"
#include "ostro/chain/version.h"
#include "ostro/io/files/only_local.h"
#include "ostro/io/files/path.h"

namespace ostro::serve {

Result<std::unique_ptr<ReceiptMaker>> ReceiptMaker::open(io::FileSystem& fs, const std::string& folder,
                                                         std::optional<bundle::SigningKey> key) {
  std::unique_ptr<ReceiptMaker> out(new ReceiptMaker(fs, std::move(key)));
  if (folder.empty()) return out;
  RETURN_IF_ERROR(io::only_local(fs, folder, "receipts"));
  RETURN_IF_ERROR(fs.make_dirs(folder));
  ASSIGN_OR_RETURN(
      out->lock_, fs.lock(io::join_path(folder, "lock"), fmt::format("ostro serve, process {}", ::getpid())));
  out->path_ = io::join_path(folder, kReceiptsFile);
  RETURN_IF_ERROR(out->read_file());
  return out;
}

Status ReceiptMaker::read_file() {
  ASSIGN_OR_RETURN(const bool there, fs_.exists(path_));
  if (!there) return {};
  ASSIGN_OR_RETURN(const std::string text, fs_.read_file(path_));
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string where = fmt::format("{}: line {}", path_, number_ + 1);
    const auto parsed = parse_document(std::string_view(text).substr(begin, end - begin), where);
    if (!parsed.ok() && end + 1 == text.size()) break;  // a line that was being written; append() cuts it off
    if (!parsed.ok()) return parsed.error();
    const ReceiptDocument& line = *parsed;
    if (line.receipt.number != number_ || line.receipt.previous != previous_)
      return corrupt(
          fmt::format("{}: the receipt does not follow the one before it; begin a new folder", where));
    previous_ = receipt_hash(line.receipt);
    ++number_;
    size_ = static_cast<int64_t>(end + 1);
  }
  return {};
}

Status ReceiptMaker::append(const std::string& line) {
  if (file_ == nullptr) {
    ASSIGN_OR_RETURN(const bool there, fs_.exists(path_));
    if (there) RETURN_IF_ERROR(fs_.truncate(path_, size_));
    ASSIGN_OR_RETURN(auto file, fs_.open_append(path_));
    RETURN_IF_ERROR(fs_.sync_dir(io::parent_path(path_)));
    file_ = std::move(file);
  }
  Status done = file_->append(line);
  if (done.ok()) done = file_->sync();
  if (!done.ok()) {
    file_.reset();
    return done;
  }
  size_ += static_cast<int64_t>(line.size());
  return {};
}

Result<ReceiptDocument> ReceiptMaker::make(const ServedModel& model, const AnswerState& answer,
                                           const AnswerOptions& options, const std::string& nonce,
                                           std::vector<float> log_probs) {
  ReceiptDocument out;
  Opening opening;
  const Nonce salt = new_nonce();
  opening.salt = to_hex_digits({salt.data(), salt.size()});
  opening.prompt = answer.prompt();
  opening.output = answer.made();
  opening.log_probs = std::move(log_probs);
  const std::lock_guard lock(mutex_);  // one follows the other
  Receipt& r = out.receipt;
  r.numerics = chain::kNumericsVersion;
  r.model = model.facts;
  r.options = options;
  r.nonce = nonce;
  r.prompt = ids_hash("prompt", opening.salt, opening.prompt);
  r.prompt_tokens = static_cast<int64_t>(opening.prompt.size());
  r.output = ids_hash("output", opening.salt, opening.output);
  r.output_tokens = static_cast<int64_t>(opening.output.size());
  r.finish = finish_word(answer.finish());
  r.log_probs = log_probs_hash(opening.log_probs);
  r.number = number_;
  r.previous = previous_;
  if (key_) {
    r.key = key_->public_key().fingerprint();
    out.signature = to_hex_digits(key_->sign(receipt_text(r)));
    out.public_key = key_->public_key().pem();
  }
  if (!path_.empty()) RETURN_IF_ERROR(append(document_text(out) + "\n"));
  previous_ = receipt_hash(r);
  ++number_;
  out.opening = std::move(opening);
  return out;
}

}  // namespace ostro::serve
