#include "ostro/cluster/ssh/bring.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>

#include "ostro/base/units.h"

namespace ostro::cluster {
namespace {

constexpr std::chrono::seconds kShort{60}, kLong{1800};
constexpr size_t kTarBlock = 512, kTarRecord = 20 * kTarBlock, kPiece = size_t{1} << 20;
constexpr int64_t kSpare = int64_t{16} << 20;  // for names, folders and what the worker writes

std::string machine_here() {
  utsname name{};
  return ::uname(&name) == 0 ? fmt::format("{} {}", name.sysname, name.machine) : "";
}

// The header of a file in a tar file of the form ustar.
std::string tar_header(const std::string& name, int64_t size, bool is_program) {
  std::string out(kTarBlock, '\0');
  const auto put = [&](size_t at, std::string_view text) { out.replace(at, text.size(), text); };
  put(0, name);
  put(100, is_program ? "0000555" : "0000444");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", size));
  put(136, "13602760400");  // 2020: tar says nothing of it
  put(148, "        ");
  put(156, "0");
  put(257, std::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : out) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum));
  out[154] = '\0';
  return out;
}

class Carrier {
 public:
  Carrier(io::FileSystem& fs, const BroughtCopy& copy, LineProcess& remote,
          const std::function<void(int64_t)>& sent, const std::function<bool()>& stop)
      : fs_(fs), copy_(copy), remote_(remote), sent_(sent), stop_(stop) {}

  Result<Arrival> carry() {
    RETURN_IF_ERROR(expect("machine", kShort));
    if (const std::string here = machine_here(); rest_ != here)
      return unsupported(
          fmt::format("the machine is {}, and this program is for {}: install ostro there and start without "
                      "--bring, or leave the machine out",
                      rest_, here));
    RETURN_IF_ERROR(expect("folder", kShort));
    out_.folder = rest_;
    RETURN_IF_ERROR(remote_.send(copy_.list() + "\n", stop_));
    std::string elsewhere;
    for (const std::string& path : copy_.elsewhere) elsewhere += path + "\n";
    RETURN_IF_ERROR(remote_.send(elsewhere + "\n", stop_));
    RETURN_IF_ERROR(next(kShort));
    std::string lacks;
    while (word_ == "lacks") {
      lacks += (lacks.empty() ? "" : ", ") + rest_;
      RETURN_IF_ERROR(next(kShort));
    }
    if (!lacks.empty())
      return not_found(fmt::format(
          "{} is not there; it is outside of the folder in which the command is typed, so it is not "
          "brought: copy it there, or name a place below that folder",
          lacks));
    RETURN_IF_ERROR(is("free"));
    std::istringstream(rest_) >> free_;
    RETURN_IF_ERROR(next(kLong));
    out_.was_there = word_ == "there";
    if (!out_.was_there) RETURN_IF_ERROR(send_needed());
    RETURN_IF_ERROR(next(kLong));
    while (word_ == "removed") {
      ++out_.removed;
      RETURN_IF_ERROR(next(kLong));
    }
    RETURN_IF_ERROR(is("done"));
    return out_;
  }

 private:
  // Reads a line: its first word, and the rest.
  Status next(std::chrono::seconds patience) {
    ASSIGN_OR_RETURN(const std::string line, remote_.answer(patience, stop_));
    const size_t space = line.find(' ');
    word_ = line.substr(0, space);
    rest_ = space == std::string::npos ? "" : line.substr(space + 1);
    if (word_ == "error") return io_error(out_.folder.empty() ? rest_ : out_.folder + ": " + rest_);
    if (word_ == "wrong") return wrong();
    return {};
  }
  Status is(std::string_view word) const {
    if (word_ == word) return {};
    return io_error(
        fmt::format("says \"{} {}\" in place of \"{}\": what its shell prints at a login without a "
                    "terminal must go away",
                    word_, rest_, word));
  }
  Status expect(std::string_view word, std::chrono::seconds patience) {
    RETURN_IF_ERROR(next(patience));
    return is(word);
  }

  Status wrong() const {
    const auto file = std::find_if(copy_.files.begin(), copy_.files.end(),
                                   [&](const BroughtFile& f) { return f.sha256 == rest_; });
    return corrupt(fmt::format(
        "{}: {} arrived with other bytes than it has here (SHA-256 {}); nothing of it was kept. Start the "
        "command again; if it happens again, the connection or a disk is broken",
        out_.folder, file == copy_.files.end() ? "a file" : file->name, rest_));
  }

  // The files of these numbers, each content once, if there is room for them.
  Status send_needed() {
    RETURN_IF_ERROR(is("need"));
    std::vector<const BroughtFile*> files;
    std::set<std::string> sums;
    std::istringstream numbers(rest_);
    for (size_t number = 0; numbers >> number;) {
      if (number < 1 || number > copy_.files.size())
        return io_error(fmt::format("asks for file {} of {}", number, copy_.files.size()));
      const BroughtFile& file = copy_.files[number - 1];
      if (sums.insert(file.sha256).second) files.push_back(&file), out_.bytes += file.size;
    }
    out_.files = static_cast<int64_t>(files.size());
    if (const int64_t needed = out_.bytes + kSpare; free_ < needed / 1024)
      return io_error(fmt::format(
          "{}: {} bytes ({:.1f} MiB) are needed there, and {:.1f} MiB are free: make room, or name another "
          "folder with --bring_to",
          out_.folder, needed, mib(needed), mib(free_ * 1024)));
    size_t written = 0;
    for (const BroughtFile* file : files) RETURN_IF_ERROR(send_file(*file, written));
    const size_t end = written + 2 * kTarBlock;
    RETURN_IF_ERROR(
        remote_.send(std::string((end + kTarRecord - 1) / kTarRecord * kTarRecord - written, '\0'), stop_));
    remote_.end_input();
    return {};
  }

  // Errors of sending: what the other machine says counts, if it says something.
  Status send(std::string_view bytes) {
    const Status done = remote_.send(bytes, stop_);
    if (done.ok()) return sent_(static_cast<int64_t>(bytes.size())), Status();
    if (done.error().code() == ErrorCode::kBusy) return done;
    RETURN_IF_ERROR(next(std::chrono::seconds(1)));
    return done;
  }

  Status send_file(const BroughtFile& file, size_t& written) {
    RETURN_IF_ERROR(send(tar_header(file.sha256, file.size, file.name == copy_.program)));
    if (file.from.empty()) {
      RETURN_IF_ERROR(send(file.text));
    } else {
      ASSIGN_OR_RETURN(const auto in, fs_.open(file.from));
      std::string piece(kPiece, '\0');
      for (int64_t at = 0; at < file.size; at += static_cast<int64_t>(piece.size())) {
        if (stop_ && stop_()) return busy("was not waited for");
        piece.resize(static_cast<size_t>(std::min<int64_t>(kPiece, file.size - at)));
        RETURN_IF_ERROR(in->read(at, std::as_writable_bytes(std::span(piece.data(), piece.size()))));
        RETURN_IF_ERROR(send(piece));
      }
    }
    const size_t padding = (kTarBlock - static_cast<size_t>(file.size) % kTarBlock) % kTarBlock;
    RETURN_IF_ERROR(send(std::string(padding, '\0')));
    written += kTarBlock + static_cast<size_t>(file.size) + padding;
    return {};
  }

  io::FileSystem& fs_;
  const BroughtCopy& copy_;
  LineProcess& remote_;
  const std::function<void(int64_t)>& sent_;
  const std::function<bool()>& stop_;
  Arrival out_;
  std::string word_, rest_;
  int64_t free_ = 0;  // KiB
};

}  // namespace

Result<Arrival> bring(io::FileSystem& fs, const BroughtCopy& copy, LineProcess& remote,
                      const std::function<void(int64_t)>& sent, const std::function<bool()>& stop) {
  return Carrier(fs, copy, remote, sent, stop).carry();
}

}  // namespace ostro::cluster
