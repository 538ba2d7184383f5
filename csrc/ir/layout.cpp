#include "ir/layout.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "ir/text.h"

namespace neo {
namespace {

constexpr int kMaxLettered = 26;

// The letters of the axes in logical order.
std::string letters_of(int rank) {
  switch (rank) {
    case 3:
      return "NCW";
    case 4:
      return "NCHW";
    case 5:
      return "NCDHW";
    default:
      break;
  }
  std::string letters(static_cast<size_t>(rank), 'A');
  std::iota(letters.begin(), letters.end(), 'A');
  return letters;
}

[[noreturn]] void refuse(std::string_view text) {
  fail(ErrorKind::Model, "layout", str("a layout is written like NCHW, NHWC or NCHW16c. Got \"", text, "\""));
}

int64_t read_number(std::string_view whole, std::string_view& rest) {
  int64_t n = 0;
  if (rest.empty() || !is_digit(rest[0])) refuse(whole);
  for (; !rest.empty() && is_digit(rest[0]); rest.remove_prefix(1)) {
    n = n * 10 + (rest[0] - '0');
    if (n > kMaxExtent) refuse(whole);
  }
  return n;
}

}  // namespace

Layout::Layout(std::vector<int> order, std::vector<Block> blocks)
    : order_(std::move(order)), blocks_(std::move(blocks)) {
  std::vector<bool> seen(order_.size(), false);
  for (int axis : order_) {
    NEO_ASSERT(axis >= 0 && axis < rank() && !seen[static_cast<size_t>(axis)], "a layout permutes its axes");
    seen[static_cast<size_t>(axis)] = true;
  }
  for (const Block& b : blocks_) NEO_ASSERT(b.axis >= 0 && b.axis < rank() && b.size >= 1, "a block splits an axis");
}

Layout Layout::plain(int rank) {
  std::vector<int> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return Layout(std::move(order), {});
}

Layout Layout::permuted(std::vector<int> order) {
  return Layout(std::move(order), {});
}

Layout Layout::channel_blocked(int rank, int64_t block) {
  NEO_ASSERT(rank >= 2 && block >= 1, "rank ", rank, ", block ", block);
  Layout layout = plain(rank);
  if (block > 1) layout.blocks_.push_back({1, block});
  return layout;
}

bool Layout::is_plain() const {
  return blocks_.empty() && std::is_sorted(order_.begin(), order_.end());
}

int64_t Layout::block_of(int axis) const {
  int64_t product = 1;
  for (const Block& b : blocks_) {
    if (b.axis != axis) continue;
    NEO_CHECK(!__builtin_mul_overflow(product, b.size, &product) && product <= kMaxExtent, Shape, "layout",
              "the blocks of an axis must be at most ", kMaxExtent, ". Got ", to_string());
  }
  return product;
}

Dims Layout::physical_dims(const Dims& dims) const {
  NEO_ASSERT(dims.size() == order_.size(), "the layout ", to_string(), " of the dims ", neo::to_string(dims));
  Dims physical;
  physical.reserve(order_.size() + blocks_.size());
  for (int axis : order_) {
    const int64_t block = block_of(axis);
    const int64_t size = dims[static_cast<size_t>(axis)];
    physical.push_back(size / block + (size % block != 0 ? 1 : 0));
  }
  for (const Block& b : blocks_) physical.push_back(b.size);
  return physical;
}

bool Layout::has_padding(const Dims& dims) const {
  return std::any_of(blocks_.begin(), blocks_.end(),
                     [&](const Block& b) { return dims[static_cast<size_t>(b.axis)] % block_of(b.axis) != 0; });
}

std::string Layout::to_string() const {
  if (rank() == 0) return "scalar";
  std::string text;
  if (rank() <= kMaxLettered) {
    const std::string letters = letters_of(rank());
    for (int axis : order_) text += letters[static_cast<size_t>(axis)];
    for (const Block& b : blocks_) {
      text += std::to_string(b.size) + static_cast<char>(letters[static_cast<size_t>(b.axis)] - 'A' + 'a');
    }
    return text;
  }
  for (int axis : order_) text += (text.empty() ? "" : ".") + std::to_string(axis);
  for (const Block& b : blocks_) text += "/" + std::to_string(b.size) + "x" + std::to_string(b.axis);
  return text;
}

Layout Layout::parse(std::string_view text) {
  if (text == "scalar") return Layout();
  std::string_view rest = text;
  std::vector<int> order;
  std::vector<Block> blocks;
  if (!rest.empty() && is_digit(rest[0])) {  // more axes than letters
    do {
      if (!order.empty()) rest.remove_prefix(1);
      const int64_t axis = read_number(text, rest);
      if (axis >= kMaxAxes) refuse(text);
      order.push_back(static_cast<int>(axis));
    } while (!rest.empty() && rest[0] == '.');
    while (!rest.empty() && rest[0] == '/') {
      rest.remove_prefix(1);
      const int64_t size = read_number(text, rest);
      if (rest.empty() || rest[0] != 'x') refuse(text);
      rest.remove_prefix(1);
      const int64_t axis = read_number(text, rest);
      if (axis >= kMaxAxes) refuse(text);
      blocks.push_back({static_cast<int>(axis), size});
    }
    if (!rest.empty() || order.size() <= kMaxLettered) refuse(text);
  } else {
    size_t count = 0;
    while (count < rest.size() && rest[count] >= 'A' && rest[count] <= 'Z') ++count;
    if (count == 0 || count > kMaxLettered) refuse(text);
    const std::string letters = letters_of(static_cast<int>(count));
    const auto axis_of = [&](char letter) {
      const size_t axis = letters.find(letter);
      if (axis == std::string::npos) refuse(text);
      return static_cast<int>(axis);
    };
    for (char c : rest.substr(0, count)) order.push_back(axis_of(c));
    rest.remove_prefix(count);
    while (!rest.empty()) {
      const int64_t size = read_number(text, rest);
      if (rest.empty() || rest[0] < 'a' || rest[0] > 'z') refuse(text);
      blocks.push_back({axis_of(static_cast<char>(rest[0] - 'a' + 'A')), size});
      rest.remove_prefix(1);
    }
  }
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int>(i)) refuse(text);
  }
  for (const Block& b : blocks) {
    if (b.size < 1 || b.axis >= static_cast<int>(order.size())) refuse(text);
  }
  return Layout(std::move(order), std::move(blocks));
}

}  // namespace neo
