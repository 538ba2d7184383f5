#include <bit>

#include "saved/compact.h"

namespace neo {
namespace {

// FIPS 180-4.
constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

class Hash {
 public:
  void add(uint8_t byte) {
    block_[bytes_++ % 64] = byte;
    if (bytes_ % 64 == 0) mix();
  }

  Sha256 finish() {
    const uint64_t bits = bytes_ * 8;
    add(0x80);
    while (bytes_ % 64 != 56) add(0);
    for (int shift = 56; shift >= 0; shift -= 8) add(static_cast<uint8_t>(bits >> shift));
    Sha256 out;
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return out;
  }

 private:
  void mix() {
    uint32_t w[64];
    for (size_t i = 0; i < 16; ++i) {
      w[i] = 0;
      for (size_t b = 0; b < 4; ++b) w[i] = w[i] << 8 | block_[4 * i + b];
    }
    for (size_t i = 16; i < 64; ++i) {
      const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
      const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    std::array<uint32_t, 8> h = state_;
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t s1 = std::rotr(h[4], 6) ^ std::rotr(h[4], 11) ^ std::rotr(h[4], 25);
      const uint32_t first = h[7] + s1 + ((h[4] & h[5]) ^ (~h[4] & h[6])) + kRounds[i] + w[i];
      const uint32_t s0 = std::rotr(h[0], 2) ^ std::rotr(h[0], 13) ^ std::rotr(h[0], 22);
      const uint32_t second = s0 + ((h[0] & h[1]) ^ (h[0] & h[2]) ^ (h[1] & h[2]));
      for (size_t j = 7; j > 0; --j) h[j] = h[j - 1];
      h[4] += first;
      h[0] = first + second;
    }
    for (size_t j = 0; j < 8; ++j) state_[j] += h[j];
  }

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> block_ = {};
  uint64_t bytes_ = 0;
};

}  // namespace

Sha256 sha256(std::span<const std::span<const std::byte>> pieces) {
  Hash hash;
  for (const auto& piece : pieces) {
    for (const std::byte b : piece) hash.add(static_cast<uint8_t>(b));
  }
  return hash.finish();
}

}  // namespace neo
