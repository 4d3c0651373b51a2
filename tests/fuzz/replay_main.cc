// SPDX-License-Identifier: Apache-2.0
// A main function for the fuzz harnesses of this directory, so that they run with any compiler: it calls LLVMFuzzerTestOneInput
// with every file of the corpus, then with variants of them (bytes flipped, cut, doubled, joined), as many as requested, with a
// few grown ones (one item repeated until the input is as large as a request may be, or nested as deeply), and then with more
// until CORACLE_FUZZ_SECONDS have passed. It is deterministic: it prints the seed first, which can be given as an argument. With
// clang, link a harness with -fsanitize=fuzzer instead of this file. An input that ends the program is stored in a file, whose
// name is printed: add it to the corpus after the fix.
//
// Each input has a budget: processor time far above that of a single pass over the input, and the stack of a small thread.
// Exceeding it ends the program like any other fault.
//   replay <corpus directory> [variants per file] [seed]
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" void __sanitizer_set_death_callback(void (*)()) __attribute__((weak));  // defined with a sanitizer

namespace {

constexpr size_t kInputBytesMax = 64 * 1024;
constexpr size_t kGrownBytesMax = 3 << 20;  // the largest body of a request
constexpr unsigned long kGrown = 24;        // of each run
constexpr double kInputSecondsMax = 1;      // processor time; and as much again for each MiB of input
constexpr size_t kStackBytes = 512 * 1024;  // a thread of the daemon has 8 MiB
constexpr int kSanitizedFactor = 8;         // for stack frames and time with sanitizers

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

// ---- the fatal input ----

const std::string* being_fed = nullptr;
std::string last_words;  // message with the file's name, prepared in advance

void leave_input() {
  if (!being_fed) return;
  int file = ::open(last_words.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool kept = file >= 0 && ::write(file, being_fed->data(), being_fed->size()) == ssize_t(being_fed->size());
  std::string_view says = kept ? "\nthe input is kept in " : "\nthe input could not be kept in ";
  for (std::string_view part : {says, std::string_view(last_words), std::string_view("\n")})
    (void)!::write(STDERR_FILENO, part.data(), part.size());
}

void on_signal(int number) {
  leave_input();
  std::signal(number, SIG_DFL);
  (void)std::raise(number);
}

void keep_what_ends_us(const char* program, unsigned long long seed) {
  last_words = (std::filesystem::temp_directory_path() /
                (std::filesystem::path(program).filename().string() + "-" + std::to_string(seed) + ".input"))
                   .string();
  for (int number : {SIGILL, SIGABRT}) std::signal(number, on_signal);
  if (__sanitizer_set_death_callback) return __sanitizer_set_death_callback(leave_input);
  static char stack[64 * 1024];  // a separate stack, since the normal one may have overflowed
  stack_t other{};
  other.ss_sp = stack, other.ss_size = sizeof stack;
  sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

std::pair<double, size_t> slowest;  // seconds, bytes

void feed(const std::string& input) {
  being_fed = &input;
  // A copy of exactly this size, so that a sanitizer detects a read beyond it.
  std::vector<uint8_t> bytes(input.begin(), input.end());
  double begin = processor_seconds();
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  double taken = processor_seconds() - begin, most = kInputSecondsMax * (1 + double(input.size()) / (1 << 20));
  if (__sanitizer_set_death_callback) most *= kSanitizedFactor;
  slowest = std::max(slowest, {taken, input.size()});
  if (taken > most) {
    std::fprintf(stderr, "an input of %zu bytes took %.1f seconds of the processor, more than %.1f\n", input.size(), taken, most);
    std::abort();
  }
  being_fed = nullptr;
}

std::string variant(std::string input, const std::vector<std::string>& corpus, std::mt19937_64& random) {
  static const std::string kTelling[] = {"\xff",   std::string(1, '\0'), "{", "[", "\"", "}", "null", "-1",
                                         "$patch", "\x80\x80\x80\x80"};
  for (int changes = int(random() % 4) + 1; changes > 0; --changes) {
    size_t at = input.empty() ? 0 : random() % input.size();
    switch (random() % 6) {
      case 0:
        if (!input.empty()) input[at] = char(random());
        break;
      case 1:
        if (!input.empty()) input[at] = char(uint8_t(input[at]) ^ (1u << random() % 8));
        break;
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

// ---- grown inputs: they show work that grows with the square of the input, and recursion ----

// The end of the item that begins at `from`: the next separator or closing bracket outside of brackets and strings.
size_t end_of_item(const std::string& input, size_t from, char separator) {
  int depth = 0;
  bool quoted = false;
  for (size_t at = from; at < input.size(); ++at) {
    char c = input[at];
    if (quoted) {
      if (c == '\\') ++at;
      else if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '{' || c == '[' || c == '(') ++depth;
    if (c == '}' || c == ']' || c == ')') --depth;
    if (depth < 0 || (depth == 0 && c == separator)) return at;
  }
  return input.size();
}

// Places where a number makes the item another one: the ends of its strings, names and numbers.
std::vector<size_t> places_to_count(const std::string& item) {
  std::vector<size_t> places;
  for (size_t at = 1; at <= item.size(); ++at)
    if (std::isalnum(uint8_t(item[at - 1])) && (at == item.size() || !std::isalnum(uint8_t(item[at])))) places.push_back(at);
  return places;
}

// The input with one of its items repeated; the copies are equal, or numbered at one place. Empty if it has no items.
std::string grown(const std::string& input, std::mt19937_64& random) {
  std::vector<size_t> begins;
  for (size_t at = 0; at < input.size(); ++at)
    if (std::string_view("[{(,\n&;").find(input[at]) != std::string_view::npos) begins.push_back(at + 1);
  if (begins.empty()) return "";
  const size_t from = begins[random() % begins.size()];
  const char before = input[from - 1], separator = std::string_view("\n&;").find(before) != std::string_view::npos ? before : ',';
  const std::string item = input.substr(from, end_of_item(input, from, separator) - from);
  if (item.empty()) return "";
  std::string out = input.substr(0, from);
  out.reserve(kGrownBytesMax);
  if (random() % 8 == 0) {  // deeper and deeper instead
    const std::string step = random() % 2 == 0 ? "[" : item.substr(0, item.find_first_of("[{") + 1);
    while (!step.empty() && out.size() + step.size() + input.size() < kGrownBytesMax) out += step;
    return out + input.substr(from);
  }
  const std::vector<size_t> places = places_to_count(item);
  const size_t place =
      places.empty() || random() % 8 == 0 ? std::string::npos : places[random() % std::min<size_t>(places.size(), 8)];
  for (size_t count = 0; out.size() + item.size() + 8 + input.size() < kGrownBytesMax; ++count) {
    out += place == std::string::npos ? item : item.substr(0, place) + std::to_string(count) + item.substr(place);
    out += separator;
  }
  return out + input.substr(from);
}

struct Arguments {
  int count;
  char** values;
};

int replay(int argc, char** argv) {
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
  std::fflush(stdout);  // so that the output is complete if an input ends the program
  keep_what_ends_us(argv[0], seed);
  std::mt19937_64 random(seed);
  unsigned long long fed = 0, largest = 0;
  auto vary = [&](unsigned long times) {
    for (const std::string& input : corpus)
      for (unsigned long i = 0; i < times; ++i, ++fed) feed(variant(input, corpus, random));
  };
  auto grow = [&](const std::string& input) {
    std::string large = grown(input, random);
    if (large.empty()) return;
    feed(large);
    ++largest;
  };
  for (const std::string& input : corpus) feed(input);
  vary(variants);
  for (unsigned long i = 0; variants > 0 && i < kGrown; ++i) grow(corpus[i % corpus.size()]);
  while (std::chrono::steady_clock::now() < end) {
    vary(1);
    grow(corpus[random() % corpus.size()]);
  }
  std::printf("%zu inputs, %llu variants of them, %llu grown; the slowest had %zu bytes and took %.2f s of the processor\n",
              corpus.size(), fed, largest, slowest.second, slowest.first);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments{argc, argv};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes * (__sanitizer_set_death_callback ? kSanitizedFactor : 1));
  pthread_t thread;
  auto run = [](void* given) -> void* {
    const auto* arguments = static_cast<Arguments*>(given);
    return reinterpret_cast<void*>(intptr_t(replay(arguments->count, arguments->values)));
  };
  void* result = nullptr;
  if (pthread_create(&thread, &attributes, run, &arguments) != 0) return 2;
  pthread_join(thread, &result);
  return int(reinterpret_cast<intptr_t>(result));
}
