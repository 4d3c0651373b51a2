// SPDX-License-Identifier: Apache-2.0
// A main for the fuzz harnesses of this directory, so that they run with any compiler: feeds LLVMFuzzerTestOneInput every
// file of the corpus, then variants of them (bytes flipped, cut, doubled, joined), as many as asked for, and then more of
// them until CORACLE_FUZZ_SECONDS have passed. Deterministic: the seed is printed first and can be given back. With clang,
// link a harness with -fsanitize=fuzzer instead of this file.
//   replay <corpus directory> [variants per file] [seed]
#include <algorithm>
#include <chrono>
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
  const char* wanted = std::getenv("CORACLE_FUZZ_SECONDS");
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(wanted ? std::strtoul(wanted, nullptr, 10) : 0);
  std::printf("seed %llu\n", (unsigned long long)seed);
  std::fflush(stdout);  // it must be known when an input ends us
  std::mt19937_64 random(seed);
  unsigned long long fed = 0;
  auto vary = [&](unsigned long times) {
    for (const std::string& input : corpus)
      for (unsigned long i = 0; i < times; ++i, ++fed) feed(variant(input, corpus, random));
  };
  for (const std::string& input : corpus) feed(input);
  vary(variants);
  while (std::chrono::steady_clock::now() < end) vary(1);
  std::printf("%zu inputs, %llu variants of them\n", corpus.size(), fed);
  return 0;
}
