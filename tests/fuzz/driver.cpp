// libFuzzer's entry for the target that FUZZ_TARGET names. Three of four mutations are sealed.
//   FUZZ_SEEDS=DIR fuzz_NAME …     writes the seeds into DIR first: encrypted ones fit this process only
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "fuzz.h"

using namespace fermata::fuzz;

static const Target& target = FUZZ_TARGET;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max);

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    std::vector<Bytes> seeds = target.seeds();  // the target may remember what they mean
    if (const char* directory = std::getenv("FUZZ_SEEDS")) {
        int number = 0;
        for (const Bytes& seed : seeds)
            std::ofstream(std::string(directory) + "/seed-" + std::to_string(number++), std::ios::binary)
                .write(reinterpret_cast<const char*>(seed.data()), static_cast<std::streamsize>(seed.size()));
    }
    return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max, unsigned seed) {
    size = LLVMFuzzerMutate(data, size, max);
    if (!target.seal || seed % 4 == 0) return size;
    Bytes bytes(data, data + size);
    target.seal(bytes);
    if (bytes.size() > max) return size;
    std::copy(bytes.begin(), bytes.end(), data);
    return bytes.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        target.run({data, size});
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", target.name, error.what());
        std::abort();
    }
    return 0;
}
