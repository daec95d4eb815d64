// A small replacement of libFuzzer, for compilers without it.
//
//     fuzz_validator --seconds 60 [--seed 7] [files or a folder of inputs ...]
//
// Inputs are drawn, mutated and spliced.  The code under test is compiled with a call at every
// branch; an input that reaches a new branch, or a new number of visits, is kept and mutated
// further.  An input that ends the program is written to crash-<target>.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Input = std::vector<std::uint8_t>;

constexpr std::size_t kPlaces = 1 << 16;
constexpr std::size_t kLongest = 512;
constexpr unsigned kPatience = 20;  // seconds one input may take
std::uint8_t visits[kPlaces];       // in this run; threads may miscount, which does not matter
std::uint8_t seen[kPlaces];         // per place: which numbers of visits there were
const Input* current = nullptr;
const char* crash_name = "crash";

void keep_current() {
    if (current == nullptr) return;
    if (FILE* file = std::fopen(crash_name, "wb")) {
        std::fwrite(current->data(), 1, current->size(), file);
        std::fclose(file);
        std::fprintf(stderr, "the input is in %s (%zu bytes)\n", crash_name, current->size());
    }
    current = nullptr;
}

void on_signal(int number) {
    std::fprintf(stderr, number == SIGALRM ? "an input takes too long\n" : "aborted\n");
    keep_current();
    _exit(98);
}

// Whether the last run reached anything new, in steps of 1, 2, 3, 4-7, 8-15, 16-31, 32-127, 128+.
bool was_new() {
    bool found = false;
    for (std::size_t k = 0; k < kPlaces; ++k) {
        const std::uint8_t n = visits[k];
        if (n == 0) continue;
        const int step = n < 4 ? n - 1 : n < 8 ? 3 : n < 16 ? 4 : n < 32 ? 5 : n < 128 ? 6 : 7;
        if (seen[k] & (1 << step)) continue;
        seen[k] |= std::uint8_t(1 << step);
        found = true;
    }
    return found;
}

void run(const Input& input) {
    std::memset(visits, 0, sizeof visits);
    current = &input;
    alarm(kPatience);
    LLVMFuzzerTestOneInput(input.data(), input.size());
    alarm(0);
    current = nullptr;
}

Input mutated(const std::vector<Input>& corpus, std::mt19937_64& random) {
    const auto below = [&](std::size_t n) { return std::size_t(random() % n); };
    Input input = corpus[below(corpus.size())];
    for (std::size_t n = 1 + below(8); n > 0; --n) {
        if (input.empty()) input.push_back(0);
        const std::size_t place = below(input.size());
        switch (below(7)) {
            case 0:
                input[place] = std::uint8_t(random());
                break;
            case 1:
                input[place] ^= std::uint8_t(1 << below(8));
                break;
            case 2:
                input[place] = std::uint8_t(240 + below(16));
                break;
            case 3:
                input.insert(input.begin() + long(place), std::uint8_t(random()));
                break;
            case 4:
                input.erase(input.begin() + long(place));
                break;
            case 5:
                input.resize(place + 1 + below(32), std::uint8_t(random()));
                break;
            default: {
                const Input& other = corpus[below(corpus.size())];
                if (other.empty()) break;
                const std::size_t from = below(other.size());
                input.resize(place);
                input.insert(input.end(), other.begin() + long(from), other.end());
            }
        }
    }
    if (input.size() > kLongest) input.resize(kLongest);
    return input;
}

Input from_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

extern "C" void __sanitizer_cov_trace_pc() {
    const auto pc = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
    std::uint8_t& count = visits[(pc ^ (pc >> 16)) % kPlaces];
    if (count < 255) ++count;
}

int main(int argc, char** argv) {
    double seconds = 60;
    std::uint64_t seed = std::random_device{}();
    std::vector<Input> corpus;
    for (int k = 1; k < argc; ++k) {
        const std::string word = argv[k];
        if (word == "--seconds" && k + 1 < argc) {
            seconds = std::atof(argv[++k]);
        } else if (word == "--seed" && k + 1 < argc) {
            seed = std::strtoull(argv[++k], nullptr, 10);
        } else if (std::filesystem::is_directory(word)) {
            for (const auto& entry : std::filesystem::directory_iterator(word)) {
                corpus.push_back(from_file(entry.path()));
            }
        } else {
            corpus.push_back(from_file(word));
        }
    }
    const std::string name = std::filesystem::path(argv[0]).filename().string();
    const std::string crash = "crash-" + name;
    crash_name = crash.c_str();
    __sanitizer_set_death_callback(keep_current);
    signal(SIGABRT, on_signal);
    signal(SIGALRM, on_signal);

    std::mt19937_64 random(seed);
    corpus.push_back({});
    for (const Input& input : corpus) {
        run(input);
        was_new();
    }
    std::uint64_t runs = corpus.size();
    const auto clock = [] { return std::chrono::steady_clock::now(); };
    const auto stop = clock() + std::chrono::duration<double>(seconds);
    while (clock() < stop) {
        Input input = mutated(corpus, random);
        run(input);
        ++runs;
        if (was_new()) corpus.push_back(std::move(input));
    }
    std::size_t places = 0;
    for (const std::uint8_t steps : seen) places += steps != 0;
    std::printf("%s: %llu inputs, %zu places, %zu inputs kept, seed %llu\n", name.c_str(),
                static_cast<unsigned long long>(runs), places, corpus.size(),
                static_cast<unsigned long long>(seed));
    return 0;
}
