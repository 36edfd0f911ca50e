#include "ostro/cluster/messages/message.h"

namespace ostro::cluster {

Message& Message::number(int64_t value) {
  for (int shift = 0; shift < 64; shift += 8) {
    bytes_.push_back(static_cast<char>(static_cast<uint64_t>(value) >> shift));
  }
  return *this;
}

Message& Message::text(std::string_view value) {
  number(static_cast<int64_t>(value.size()));
  bytes_.append(value);
  return *this;
}

Message& Message::fields_of(const Message& other) {
  bytes_.append(other.bytes_, 1);
  return *this;
}

MessageReader::MessageReader(std::string_view bytes) : kind_{}, rest_(bytes) {
  const std::string_view first = take(1);
  if (!short_) kind_ = static_cast<Kind>(first[0]);
}

std::string_view MessageReader::take(size_t size) {
  if (short_ || size > rest_.size()) {
    short_ = true;
    return {};
  }
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

int64_t MessageReader::number() {
  uint64_t value = 0;
  int shift = 0;
  for (const char c : take(8)) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(c)) << shift;
    shift += 8;
  }
  return static_cast<int64_t>(value);
}

std::string_view MessageReader::text() {
  // A negative length is a huge one here, and so too long.
  return take(static_cast<size_t>(number()));
}

std::string beat_message(const Progress& progress) {
  return Message(Kind::kBeat)
      .number(progress.epoch)
      .number(progress.step)
      .text(progress.phase)
      .number(progress.compute_microseconds)
      .number(progress.wait_microseconds)
      .number(progress.work)
      .number(progress.bytes_sent)
      .number(progress.bytes_between_slices)
      .bytes();
}

std::optional<Progress> read_beat(MessageReader& reader) {
  Progress progress;
  progress.epoch = reader.number();
  progress.step = reader.number();
  progress.phase = reader.text();
  progress.compute_microseconds = reader.number();
  progress.wait_microseconds = reader.number();
  progress.work = reader.number();
  progress.bytes_sent = reader.number();
  progress.bytes_between_slices = reader.number();
  if (!reader.done() || !progress.sane()) return std::nullopt;
  return progress;
}

std::string hello_message(const Hello& hello) {
  Message message(Kind::kHello);
  message.text(hello.job).text(hello.host).number(hello.pid).text(hello.slice).text(hello.machine);
  message.number(hello.slice_limit).number(hello.fastest_link);
  message.number(hello.epoch).number(hello.rank).number(hello.size);
  message.number(static_cast<int64_t>(hello.equal.size()));
  for (const auto& [name, value] : hello.equal) message.text(name).text(value);
  return message.bytes();
}

std::optional<Hello> read_hello(MessageReader& reader) {
  Hello hello;
  hello.job = reader.text();
  hello.host = reader.text();
  hello.pid = reader.number();
  hello.slice = reader.text();
  hello.machine = reader.text();
  hello.slice_limit = reader.number();
  hello.fastest_link = reader.number();
  hello.epoch = reader.number();
  hello.rank = reader.number();
  hello.size = reader.number();
  const bool sane = hello.epoch == 0 || (hello.rank >= 0 && hello.rank < hello.size);
  const int64_t count = reader.number();
  // An entry takes 16 bytes at least, so a message cannot promise more of them than it could hold.
  if (!sane || count < 0 || count > static_cast<int64_t>(kMostBytes / 16)) return std::nullopt;
  for (int64_t i = 0; i < count; ++i) {
    std::string name(reader.text());
    hello.equal.emplace_back(std::move(name), reader.text());
  }
  if (!reader.done()) return std::nullopt;
  return hello;
}

void write_workers(const Epoch& epoch, Message& message) {
  const size_t size = epoch.hosts.size();
  message.number(static_cast<int64_t>(size)).number(epoch.rates.limit).number(epoch.rates.fastest);
  for (const std::string& host : epoch.hosts) message.text(host);
  for (size_t begin = 0, end = 0; begin < size; begin = end) {
    const auto is_alike = [&](size_t i) {
      return epoch.slices[i] == epoch.slices[begin] && epoch.guessed[i] == epoch.guessed[begin];
    };
    while (end < size && is_alike(end)) ++end;
    message.number(static_cast<int64_t>(end - begin))
        .text(epoch.slices[begin])
        .number(epoch.guessed[begin] ? 1 : 0);
  }
}

bool read_workers(MessageReader& reader, Epoch& epoch) {
  epoch.size = reader.number();
  epoch.rates.limit = reader.number();
  epoch.rates.fastest = reader.number();
  // A host takes 8 bytes at least, so a message cannot promise more of them than it could hold.
  if (epoch.size < 0 || epoch.size > static_cast<int64_t>(kMostBytes / 8)) return false;
  const auto size = static_cast<size_t>(epoch.size);
  for (size_t i = 0; i < size; ++i) epoch.hosts.emplace_back(reader.text());
  while (epoch.slices.size() < size) {
    const int64_t count = reader.number();
    if (count < 1 || count > static_cast<int64_t>(size - epoch.slices.size())) return false;
    const std::string slice(reader.text());
    const bool is_guess = reader.number() != 0;
    epoch.slices.insert(epoch.slices.end(), static_cast<size_t>(count), slice);
    epoch.guessed.insert(epoch.guessed.end(), static_cast<size_t>(count), is_guess);
  }
  return true;
}

std::string shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  return std::string(text.substr(0, most - 3)) + "...";
}

}  // namespace ostro::cluster
