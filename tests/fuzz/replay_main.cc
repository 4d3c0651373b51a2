// SPDX-License-Identifier: Apache-2.0
// A main for the fuzz harnesses of this directory, so that they run with any compiler: feeds LLVMFuzzerTestOneInput every
// file of the corpus, then variants of them (bytes flipped, cut, doubled, joined), as many as asked for. Deterministic:
// the seed is printed and can be given back. With clang, link a harness with -fsanitize=fuzzer instead of this file.
//   replay <corpus directory> [variants per file] [seed]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kInputBytesMax = 64 * 1024;

std::vector<std::string> read_corpus(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

void feed(const std::string& input) {
  // A copy of exactly this size, so that a sanitizer sees a read beyond it.
  std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

std::string variant(std::string input, const std::vector<std::string>& corpus, std::mt19937_64& random) {
  static const std::string kTelling[] = {"\xff", std::string(1, '\0'), "{", "[", "\"", "}", "null", "-1", "$patch", "\x80\x80\x80\x80"};
  for (int changes = int(random() % 4) + 1; changes > 0; --changes) {
    size_t at = input.empty() ? 0 : random() % input.size();
    switch (random() % 6) {
      case 0: if (!input.empty()) input[at] = char(random()); break;
      case 1: if (!input.empty()) input[at] = char(uint8_t(input[at]) ^ (1u << random() % 8)); break;
      case 2: input.erase(at, random() % 16); break;
      case 3: input.insert(at, kTelling[random() % std::size(kTelling)]); break;
      case 4: input.insert(at, input.substr(at, random() % 256)); break;
      case 5: {
        const std::string& other = corpus[random() % corpus.size()];
        if (!other.empty()) input.insert(at, other.substr(random() % other.size(), random() % 128));
        break;
      }
    }
  }
  if (input.size() > kInputBytesMax) input.resize(kInputBytesMax);
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s <corpus directory> [variants per file] [seed]\n", argv[0]);
    return 2;
  }
  std::vector<std::string> corpus = read_corpus(argv[1]);
  unsigned long variants = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 0;
  uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: the corpus is empty\n", argv[1]);
    return 1;
  }
  std::mt19937_64 random(seed);
  for (const std::string& input : corpus) feed(input);
  for (const std::string& input : corpus) {
    for (unsigned long i = 0; i < variants; ++i) feed(variant(input, corpus, random));
  }
  std::printf("%zu inputs, %lu variants of each, seed %llu\n", corpus.size(), variants, (unsigned long long)seed);
  return 0;
}
