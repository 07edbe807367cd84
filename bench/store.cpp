// How near the writer and the reader of images come to plain code: `store-bench DIR RANKS MIB [ROUNDS
// [WORDS…]]`.
//
// RANKS processes with MIB of floating-point data each write it in turns: plain write and fsync of the same
// bytes, then the image writer with each set of words. All processes begin together; a time is from the first
// beginning to the last end. The word `encrypted` encrypts. One line of JSON per way: seconds of every round,
// of writing and of reading.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "image/image.h"
#include "image/page_cache.h"
#include "image/save_options.h"
#include "store/parts.h"

using namespace fermata;

namespace {

// A smooth field with noise in the low bits, as solvers have it.
void fill(double* data, size_t count, unsigned seed) {
    std::mt19937_64 random(seed);
    for (size_t i = 0; i < count; ++i) {
        double x = static_cast<double>(i % 4096) / 4096;
        data[i] = 300 + 20 * x * (1 - x) + static_cast<double>(random() >> 40) * 1e-9;
    }
}

struct Shared {
    std::atomic<int> ready, go, done;
    std::atomic<uint64_t> begin, end;
};

size_t free_memory() {
    std::ifstream in("/proc/meminfo");
    std::string word;
    while (in >> word)
        if (size_t kib; word == "MemFree:" && in >> kib) return kib << 10;
    return 0;
}

// A virtual machine's host takes free memory back (virtio_balloon's page reporting, two seconds after some
// became free), and finding a page anew takes fifteen times its copy; which free page the kernel hands out is
// not ours to say. So all of it is asked of the host before the clock runs and held, but for what the clocked
// part will need, given back as the clock begins. (A pass that was under way then may still take some.)
class Warm {
  public:
    Warm() = default;
    Warm(const Warm&) = delete;
    Warm& operator=(const Warm&) = delete;
    ~Warm() { give(held_.size() * kPiece); }

    // All but what the kernel needs. The pause: until the host has taken back what was left to it, the last
    // of which is then asked for again.
    void take() {
        take_down_to(2 * kLeft);
        ::sleep(3);
        take_down_to(kLeft);
    }

    void give(size_t bytes) {
        for (size_t given = 0; given < bytes && !held_.empty(); given += kPiece) {
            ::munmap(held_.back(), kPiece);
            held_.pop_back();
        }
    }

  private:
    static constexpr size_t kPiece = 32 << 20;
    static constexpr size_t kLeft = 256 << 20;  // less, and the kernel takes programs' texts out of memory

    void take_down_to(size_t left) {
        while (free_memory() > left + kPiece) {
            void* memory =
                ::mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (memory == MAP_FAILED) fail("no memory to hold");
            ::madvise(memory, kPiece, MADV_HUGEPAGE);
            ::madvise(memory, kPiece, MADV_DONTFORK);
            for (size_t at = 0; at < kPiece; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
            held_.push_back(memory);
        }
    }

    std::vector<void*> held_;
};

// All memory of a machine of one's own is there.
bool is_virtual_machine() {
    std::ifstream in("/proc/cpuinfo");
    std::string word;
    while (in >> word)
        if (word == "hypervisor") return true;
    return false;
}

// Runs `body` in `ranks` forked processes at once, `first` before the clock; seconds.
double together(int ranks, const std::function<void()>& first, const std::function<void(int)>& body) {
    auto* s = static_cast<Shared*>(
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    std::vector<pid_t> children;
    for (int rank = 0; rank < ranks; ++rank) {
        pid_t pid = ::fork();
        if (pid == 0) {
            ++s->ready;
            while (!s->go) ::usleep(100);
            try {
                body(rank);
            } catch (const std::exception& error) {
                std::fprintf(stderr, "%s\n", error.what());
                ::_exit(1);
            }
            ++s->done;
            ::_exit(0);
        }
        children.push_back(pid);
    }
    while (s->ready < ranks) ::usleep(100);
    first();
    uint64_t begin = monotonic_ns();
    s->go = 1;
    bool good = true;
    for (pid_t pid : children) {
        int status;
        ::waitpid(pid, &status, 0);
        good = good && status == 0;
    }
    double seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
    ::munmap(s, sizeof(Shared));
    if (!good) fail("a process failed");
    return seconds;
}

void plain_write(const std::string& path, const char* data, size_t size) {
    Fd fd = open_file(path, O_WRONLY | O_CREAT | O_EXCL);
    for (size_t at = 0; at < size; at += 4 << 20)
        write_all(fd.get(), data + at, std::min<size_t>(4 << 20, size - at), path);
    sync_file(fd.get(), path);
}

void plain_read(const std::string& path, char* to, size_t size) {
    Fd fd = open_file(path, O_RDONLY);
    for (size_t at = 0; at < size; at += 4 << 20)
        pread_all(fd.get(), to + at, std::min<size_t>(4 << 20, size - at), at, path);
}

// Out of the page cache, as far as the kernel allows: a restart is rarely on the node that wrote.
void forget(const std::string& path) {
    Fd fd = open_file(path, O_RDONLY);
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
}

// "plain" and "encrypted" are words of this program only.
image::WriteOptions write_options(std::string words) {
    for (const std::string own : {"plain", "encrypted"})
        if (size_t at = words.find(own); at != std::string::npos) words.erase(at, own.size());
    return image::SaveOptions::parse(words).write;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "store-bench DIR RANKS MIB [ROUNDS [WORDS…]]\n");
        return 2;
    }
    std::string directory = argv[1];
    int ranks = std::atoi(argv[2]), rounds = argc > 4 ? std::atoi(argv[4]) : 3;
    size_t size = static_cast<size_t>(std::atoi(argv[3])) << 20;
    std::vector<std::string> ways = {"plain"};
    for (int i = 5; i < argc; ++i) ways.push_back(argv[i]);
    if (ways.size() == 1) ways.push_back("");
    // Filled before the forks: the children share it and only read.
    auto* data = static_cast<char*>(::mmap(nullptr, size * static_cast<size_t>(ranks), PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    fill(reinterpret_cast<double*>(data), size * static_cast<size_t>(ranks) / 8, 1);
    std::vector<std::vector<double>> wrote(ways.size()), read(ways.size());
    std::vector<uint64_t> bytes(ways.size());
    // (A shared one has its own place, since its name is always the same.)
    const std::string shared_directory = directory + "/shared";
    ::mkdir(shared_directory.c_str(), 0700);
    // Read by every process anew: children do not inherit keys.
    std::string key_file = directory + "/store-bench.key";
    {
        Fd fd(::open(key_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
        std::string digits(64, '7');
        write_all(fd.get(), digits.data(), digits.size(), key_file);
    }
    auto path = [&](int rank) { return fmt::format("{}/store-bench-{}.img", directory, rank); };
    auto clear = [&] {
        for (int rank = 0; rank < ranks; ++rank) ::unlink(path(rank).c_str());
        const files::Folder shared = files::Folder::at(shared_directory);
        for (const std::string& name : shared.names()) shared.remove_file(name);
    };
    const bool in_memory = image::page_cache_is_better(open_file(directory, O_RDONLY).get());
    const auto warm = in_memory && is_virtual_machine() ? std::make_unique<Warm>() : nullptr;
    const auto give = [&] {
        if (warm) warm->give(size * static_cast<size_t>(ranks) * 5 / 4);
    };
    for (int round = 0; round < rounds; ++round) {
        for (size_t turn = 0; turn < ways.size(); ++turn) {
            // Who comes after whom changes: small pages leave memory in pieces for the next one's huge pages.
            const size_t way = (turn + static_cast<size_t>(round)) % ways.size();
            clear();
            ::sync();
            image::WriteOptions options = write_options(ways[way]);
            options.processors =
                std::max(1u, std::thread::hardware_concurrency() / static_cast<unsigned>(ranks));
            // (All ranks are on one node.)
            store::Parts parts(way > 0 ? options.layout : image::Layout(),
                               std::vector<uint32_t>(static_cast<size_t>(ranks)));
            const bool shared = parts.together();
            auto place_of = [&](int number) {
                const Rank rank(static_cast<uint32_t>(number));
                if (!shared) return image::Place(path(number));
                image::Place place(files::Folder::at(shared_directory), parts.file_of(rank));
                if (parts.laid_out()) place.begin = parts.begin_of(rank);
                return place;
            };
            auto key = [&] {
                bool encrypted = ways[way].find("encrypted") != std::string::npos;
                return encrypted ? image::Key::from_file(key_file) : nullptr;
            };
            if (shared) {
                const files::Folder folder = files::Folder::at(shared_directory);
                parts.create(folder);
                options.key = key();
                image::Writer one = image::Writer::in_shared(place_of(0), {}, options);
                one.run(0x10000000, data, size);
                one.prepare();
                parts.lay_out(std::vector<uint64_t>(static_cast<size_t>(ranks), one.room()));
                parts.finish(folder, 0, 0);
            }
            if (warm) warm->take();
            wrote[way].push_back(together(ranks, give, [&](int rank) {
                const char* mine = data + size * static_cast<size_t>(rank);
                if (way == 0) return plain_write(path(rank), mine, size);
                options.key = key();
                image::Writer writer = shared ? image::Writer::in_shared(place_of(rank), {}, options)
                                              : image::Writer(place_of(rank), {}, options);
                writer.run(0x10000000, mine, size);
                writer.prepare();
                if (shared) writer.place(*place_of(rank).begin);
                writer.write_first();
                writer.write_rest();
                writer.conclude();
            }));
            bytes[way] = 0;
            std::set<std::string> files;
            for (int rank = 0; rank < ranks; ++rank) files.insert(place_of(rank).path());
            for (const std::string& file : files) {
                struct stat st {};
                ::stat(file.c_str(), &st);
                bytes[way] += static_cast<uint64_t>(st.st_blocks) * 512;
                forget(file);
            }
            read[way].push_back(together(ranks, give, [&](int rank) {
                auto* to = static_cast<char*>(
                    ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
                if (way == 0) return plain_read(path(rank), to, size);
                image::Reader(place_of(rank), key().get()).load([&](const image::Extent& e) {
                    return to + (e.address - 0x10000000);
                });
            }));
        }
    }
    clear();
    ::rmdir(shared_directory.c_str());
    ::unlink(key_file.c_str());
    for (size_t way = 0; way < ways.size(); ++way) {
        std::printf("{\"way\": \"%s\", \"bytes\": %llu, \"write\": [", ways[way].c_str(),
                    static_cast<unsigned long long>(bytes[way]));
        for (size_t i = 0; i < wrote[way].size(); ++i) std::printf("%s%.4f", i ? ", " : "", wrote[way][i]);
        std::printf("], \"read\": [");
        for (size_t i = 0; i < read[way].size(); ++i) std::printf("%s%.4f", i ? ", " : "", read[way][i]);
        std::printf("]}\n");
    }
    return 0;
}
