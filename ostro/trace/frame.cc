#include "ostro/trace/frame.h"

#include <atomic>

#include <fmt/format.h>

#include "ostro/ir/program/op_table.h"
#include "ostro/trace/error.h"

namespace ostro {
namespace {

constexpr int64_t kLargestConstant = int64_t{1} << 20;
constexpr const char* kEmptyArray = "an empty Array was read; was the field initialised?";

thread_local Frame* current_frame = nullptr;
std::atomic<runtime::Engine*> engine{nullptr};
std::atomic<uint64_t> engine_number{0};

uint64_t next_serial() {
  static std::atomic<uint64_t> serial{0};
  return ++serial;
}

std::string hex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (std::byte b : bytes) {
    out += kDigits[static_cast<unsigned>(b) >> 4];
    out += kDigits[static_cast<unsigned>(b) & 15];
  }
  return out;
}

}  // namespace

void set_default_engine(runtime::Engine* e) {
  engine = e;
  ++engine_number;
}

uint64_t jit_internal::engine_serial() { return engine_number; }

runtime::Engine& default_engine() {
  runtime::Engine* e = engine;
  if (e == nullptr) throw TraceError("no engine: call set_default_engine() before running arrays");
  return *e;
}

Array::Array(runtime::Buffer buffer) {
  auto node = std::make_shared<Node>();
  node->shape = buffer.shape();
  node->buffer = std::move(buffer);
  node_ = std::move(node);
}

Array::Array(Frame* frame, ir::ValueId id, Shape shape) {
  auto node = std::make_shared<Node>();
  node->shape = std::move(shape);
  node->frame_serial = frame->serial();
  node->id = id;
  node_ = std::move(node);
}

const Shape& Array::shape() const {
  if (!valid()) throw TraceError(kEmptyArray);
  return node_->shape;
}

int64_t Array::size(std::string_view axis, std::source_location location) const {
  if (!shape().has(axis)) trace_fail(fmt::format("no axis \"{}\" in {}", axis, shape().str()), location);
  return shape().size_of(axis);
}

bool Array::traced() const { return valid() && node_->frame_serial != 0; }

const runtime::Buffer& Array::buffer() const {
  if (!valid()) throw TraceError(kEmptyArray);
  if (traced()) throw TraceError(fmt::format("the value of {} is not known while tracing", shape().str()));
  return node_->buffer;
}

std::optional<DType> Array::use_dtype() const { return valid() ? node_->use_dtype : std::nullopt; }

Array Array::tagged(std::optional<DType> dtype) const {
  Array copy;
  auto node = std::make_shared<Node>(*node_);
  node->use_dtype = dtype;
  copy.node_ = std::move(node);
  return copy;
}

std::string place(const std::source_location& location) {
  std::string_view file = location.file_name();
  if (const size_t slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return fmt::format("{}:{}", file, location.line());
}

void trace_fail(const std::string& message, const std::source_location& location) {
  std::string scope;
  if (Frame* f = Frame::current(); f != nullptr && !f->builder().scope().empty())
    scope = fmt::format(", in {}", f->builder().scope());
  throw TraceError(fmt::format("{} ({}{})", message, place(location), scope));
}

Frame::Frame() : outer_(current_frame), serial_(next_serial()), builder_(block_) {
  if (outer_ != nullptr) builder_.set_scope(outer_->builder_.scope());
  current_frame = this;
}

Frame::~Frame() { current_frame = outer_; }

Frame* Frame::current() { return current_frame; }

Array Frame::add_param(const Shape& shape, std::optional<DType> use_dtype) {
  return Array(this, block_.add_param(shape), shape).tagged(use_dtype);
}

std::string Frame::unreadable(const Array& array) const {
  if (!array.valid()) return kEmptyArray;
  const Array::Node& node = *array.node();
  if (node.frame_serial == 0 && node.shape.bytes() > kLargestConstant)
    return fmt::format(
        "a concrete {} of {} bytes would become a constant of the program (limit 1 MiB); pass it as an "
        "argument",
        node.shape.str(), node.shape.bytes());
  if (node.frame_serial != 0 && node.frame_serial != serial_ && outer_ == nullptr)
    return fmt::format("a value {} of another trace was used; return it from there instead",
                       node.shape.str());
  return "";
}

// Three cases: a value of this frame has an id; a concrete array becomes a constant; a value of an outer
// frame becomes a parameter. The last two happen once per value. A capture from two frames above is captured
// by the frame between when that frame's op reads its operands.
ir::ValueId Frame::read_raw(const Array& array) {
  if (const std::string problem = unreadable(array); !problem.empty()) throw TraceError(problem);
  const Array::Node& node = *array.node();
  if (node.frame_serial == serial_) return node.id;
  // A traced value is identified by its frame and id, not by its handle: tagging makes new handles of the
  // same value.
  const Known key = node.frame_serial == 0 ? Known{0, reinterpret_cast<intptr_t>(&node)}
                                           : Known{node.frame_serial, node.id};
  if (auto it = known_.find(key); it != known_.end()) return it->second;
  ir::ValueId id = -1;
  if (node.frame_serial == 0) {
    ir::Attrs attrs = ir::shape_attrs(node.shape.axes);
    attrs.set("dtype", std::string(ir::dtype_name(node.shape.dtype)));
    attrs.set("data", hex(node.buffer.bytes()));
    id = builder_.add(ir::OpKind::constant, {}, std::move(attrs));
  } else {
    // A captured value becomes a parameter; the enclosing scan or cond passes the outer value in.
    id = block_.add_param(node.shape);
    captures_.push_back(array);
  }
  known_[key] = id;
  if (node.frame_serial == 0) keep_alive_.push_back(array.node());  // the address stays taken
  return id;
}

ir::ValueId Frame::read(const Array& array) {
  const ir::ValueId raw = read_raw(array);
  if (!array.use_dtype()) return raw;
  const std::pair key(raw, *array.use_dtype());
  if (auto it = used_.find(key); it != used_.end()) return it->second;
  const ir::ValueId used =
      builder_.add(ir::OpKind::use, {raw}, {{"dtype", std::string(ir::dtype_name(*array.use_dtype()))}});
  used_[key] = used;
  return used;
}

std::vector<Array> Frame::emit(ir::OpKind kind, const std::vector<Array>& operands, ir::Attrs attrs,
                               std::vector<ir::Block> regions, const std::source_location& location) {
  builder_.set_location(place(location));
  std::vector<ir::ValueId> ids;
  ids.reserve(operands.size());
  for (const Array& a : operands) {
    if (const std::string problem = unreadable(a); !problem.empty())
      trace_fail(fmt::format("{}: {}", ir::op_name(kind), problem), location);
    ids.push_back(kind == ir::OpKind::scan ? read_raw(a) : read(a));
  }
  auto results = builder_.try_add(kind, std::move(ids), std::move(attrs), std::move(regions));
  if (!results.ok()) trace_fail(results.error().message(), location);
  std::vector<Array> out;
  for (ir::ValueId id : *results) out.push_back(wrap(id));
  return out;
}

void Frame::set_results(const std::vector<Array>& results) {
  block_.results.clear();
  for (const Array& a : results) block_.results.push_back(read(a));
}

void Frame::refuse_captures(const std::string& name) const {
  if (captures_.empty()) return;
  throw TraceError(fmt::format("program {} uses a value {} of another trace; pass it as an argument", name,
                               captures_[0].shape().str()));
}

void Frame::label(const Array& array, const std::string& name) {
  if (!array.traced() || array.node()->frame_serial != serial_) return;
  for (auto op = block_.ops.rbegin(); op != block_.ops.rend(); ++op)
    for (ir::ValueId v : op->results)
      if (v == array.node()->id) {
        op->label = name;
        return;
      }
}

Scope::Scope(const std::string& segment) : frame_(Frame::current()) {
  if (frame_ == nullptr) return;
  before_ = frame_->builder().scope();
  frame_->builder().set_scope(before_.empty() ? segment : before_ + "/" + segment);
}

Scope::~Scope() {
  if (frame_ != nullptr) frame_->builder().set_scope(before_);
}

std::vector<Array> apply_n(ir::OpKind kind, const std::vector<Array>& operands, ir::Attrs attrs,
                           std::vector<ir::Block> regions, const std::source_location& location) {
  if (Frame* frame = Frame::current())
    return frame->emit(kind, operands, std::move(attrs), std::move(regions), location);
  // Eager: a one-op program whose parameters are the operands.
  ir::Program program;
  program.name = ir::op_name(kind);
  std::vector<runtime::Buffer> inputs;
  {
    Frame frame;
    std::vector<Array> params;
    for (const Array& a : operands) {
      inputs.push_back(a.buffer());
      params.push_back(frame.add_param(a.shape(), a.use_dtype()));
    }
    frame.set_results(frame.emit(kind, params, std::move(attrs), std::move(regions), location));
    program.body = std::move(frame.block());
  }
  auto executable = default_engine().compile(program);
  if (!executable.ok()) trace_fail(executable.error().message(), location);
  auto results = (*executable)->run(std::move(inputs));
  if (results.ok()) results = runtime::all_to(std::move(*results), runtime::host_memory());
  if (!results.ok()) trace_fail(results.error().message(), location);
  std::vector<Array> out;
  for (runtime::Buffer& b : *results) out.emplace_back(std::move(b));
  return out;
}

ir::Program trace_program(const std::string& name, const std::vector<Shape>& params,
                          const std::function<std::vector<Array>(const std::vector<Array>&)>& f) {
  Frame frame;
  std::vector<Array> args;
  for (const Shape& s : params) args.push_back(frame.add_param(s));
  frame.set_results(f(args));
  frame.refuse_captures(name);
  ir::Program p;
  p.name = name;
  p.body = std::move(frame.block());
  return p;
}

}  // namespace ostro
