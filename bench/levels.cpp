// Floors and parts of checkpoints in memory: `levels-bench FILES MEMORY RANKS MIB ROUNDS`.
//
// RANKS processes with MIB each, all at once, in turns: plain write and fsync of a file each below FILES; a
// memcpy and then a transfer over loopback TCP into touched memory (the two copies that a checkpoint with a
// buddy makes at least), and the same with a Poly1305 tag of each MiB made and compared. Then one process:
// the code of 4+2, and parity and rebuilding of 4+2 members whose images have MIB, below MEMORY. One line of
// JSON: seconds of each round, and bytes.
#include <fcntl.h>
#include <netinet/in.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "erasure/code.h"
#include "erasure/encode.h"
#include "erasure/parity_file.h"
#include "erasure/rebuild.h"
#include "image/image.h"

using namespace fermata;
namespace fs = std::filesystem;

namespace {

constexpr uint32_t kData = 4, kLosses = 2, kMembers = kData + kLosses;
constexpr size_t kStep = 4 << 20;

// Pages that are there: a copy into them costs the copy.
char* touched(size_t size) {
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail_errno("no memory");
    for (size_t at = 0; at < size; at += 4096) static_cast<char*>(memory)[at] = 1;
    return static_cast<char*>(memory);
}

void fill(char* data, size_t size, unsigned seed) {
    std::mt19937_64 random(seed);
    for (size_t at = 0; at + 8 <= size; at += 8) {
        const uint64_t word = random();
        std::memcpy(data + at, &word, 8);
    }
}

// Runs `body` in processes of their own, after all have said that they are ready; seconds to the last end.
double together(int processes, const std::function<void(int)>& body) {
    struct Flags {
        std::atomic<int> ready, go;
    };
    auto* flags = static_cast<Flags*>(static_cast<void*>(touched(sizeof(Flags))));
    flags->ready = flags->go = 0;
    std::vector<pid_t> children;
    for (int i = 0; i < processes; ++i) {
        const pid_t pid = ::fork();
        if (pid == 0) {
            ++flags->ready;
            while (!flags->go) ::usleep(100);
            try {
                body(i);
            } catch (const std::exception& error) {
                std::fprintf(stderr, "%s\n", error.what());
                ::_exit(1);
            }
            ::_exit(0);
        }
        children.push_back(pid);
    }
    while (flags->ready < processes) ::usleep(100);
    const double begin = monotonic_s();
    flags->go = 1;
    bool good = true;
    for (pid_t pid : children) {
        int status = 0;
        ::waitpid(pid, &status, 0);
        good = good && status == 0;
    }
    const double seconds = monotonic_s() - begin;
    ::munmap(flags, sizeof(Flags));
    if (!good) fail("a process failed");
    return seconds;
}

struct Sockets {
    Fd from, to;
};

Sockets loopback() {
    Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), from(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener.get(), any, size) != 0 || ::listen(listener.get(), 1) != 0 ||
        ::getsockname(listener.get(), any, &size) != 0 || ::connect(from.get(), any, size) != 0)
        fail_errno("no connection over loopback");
    Fd to(::accept(listener.get(), nullptr, nullptr));
    if (!to) fail_errno("no connection over loopback");
    return {std::move(from), std::move(to)};
}

// What a copy to a buddy is made of with its tags.
constexpr size_t kFrame = 1 << 20;
using Tag = std::array<unsigned char, crypto_onetimeauth_BYTES>;

Tag tag_of(const char* data, size_t size) {
    static const unsigned char kKey[crypto_onetimeauth_KEYBYTES] = {1};
    Tag tag;
    crypto_onetimeauth(tag.data(), reinterpret_cast<const unsigned char*>(data), size, kKey);
    return tag;
}

void send_copy(int socket, const char* data, size_t size, bool tags) {
    for (size_t at = 0; at < size; at += kFrame) {
        const size_t length = std::min(kFrame, size - at);
        const Tag tag = tags ? tag_of(data + at, length) : Tag{};
        write_all(socket, data + at, length, "a socket");
        if (tags) write_all(socket, tag.data(), tag.size(), "a socket");
    }
}

void receive_copy(int socket, char* to, size_t size, bool tags) {
    const auto receive = [&](void* into, size_t length) {
        if (::recv(socket, into, length, MSG_WAITALL) != static_cast<ssize_t>(length))
            fail_errno("a transfer ended early");
    };
    for (size_t at = 0; at < size; at += kFrame) {
        const size_t length = std::min(kFrame, size - at);
        receive(to + at, length);
        if (!tags) continue;
        Tag tag;
        receive(tag.data(), tag.size());
        if (tag != tag_of(to + at, length)) fail("a wrong tag");
    }
}

// Processes 0 .. ranks-1 copy and send, the others receive.
double two_copies(int ranks, const char* data, char* copies, char* received, size_t size, bool tags) {
    std::vector<Sockets> sockets;
    for (int i = 0; i < ranks; ++i) sockets.push_back(loopback());
    return together(2 * ranks, [&](int i) {
        const auto rank = static_cast<size_t>(i % ranks);
        if (i < ranks) {
            std::memcpy(copies + rank * size, data + rank * size, size);
            return send_copy(sockets[rank].from.get(), copies + rank * size, size, tags);
        }
        receive_copy(sockets[rank].to.get(), received + rank * size, size, tags);
    });
}

double plain_files(int ranks, const std::string& directory, const char* data, size_t size) {
    const auto path = [&](int rank) { return fmt::format("{}/plain-{}", directory, rank); };
    const double seconds = together(ranks, [&](int rank) {
        Fd fd = open_file(path(rank), O_WRONLY | O_CREAT | O_EXCL);
        for (size_t at = 0; at < size; at += kStep)
            write_all(fd.get(), data + static_cast<size_t>(rank) * size + at, std::min(kStep, size - at),
                      path(rank));
        sync_file(fd.get(), path(rank));
    });
    for (int rank = 0; rank < ranks; ++rank) ::unlink(path(rank).c_str());
    return seconds;
}

// All rows of 4+2, piece by piece over buffers that no cache holds; seconds for `size` bytes of data.
double code_alone(const char* data, char* parity, size_t size) {
    const erasure::Layout layout = *erasure::Layout::of(kMembers, kLosses);
    const erasure::Combination rows = erasure::Code(layout).parity(0, kLosses);
    const size_t chunk = size / kData;
    const double begin = monotonic_s();
    for (size_t at = 0; at < chunk; at += erasure::kPiece) {
        const size_t length = std::min<size_t>(erasure::kPiece, chunk - at);
        std::vector<const uint8_t*> from;
        std::vector<uint8_t*> to;
        for (uint32_t i = 0; i < kData; ++i)
            from.push_back(reinterpret_cast<const uint8_t*>(data) + i * chunk + at);
        for (uint32_t i = 0; i < kLosses; ++i)
            to.push_back(reinterpret_cast<uint8_t*>(parity) + i * chunk + at);
        rows.apply(from, to, length);
    }
    return monotonic_s() - begin;
}

// A group in directories of this machine.
class Members {
  public:
    Members(const fs::path& where, const char* data, size_t size) : where_(where) {
        std::vector<erasure::Contents> contents;
        for (uint32_t i = 0; i < kMembers; ++i) {
            const std::string name = image::image_name(Rank(i));
            fs::create_directories(where_ / std::to_string(i));
            Fd fd = open_file(where_ / std::to_string(i) / name, O_WRONLY | O_CREAT);
            write_all(fd.get(), data, size, name);
            contents.push_back(erasure::contents_of(folder(i), 1, Generation(1), std::to_string(i)));
        }
        group_.emplace(erasure::Group::of(std::move(contents), kLosses));
    }
    ~Members() { fs::remove_all(where_); }
    // Of one member.
    double encode() {
        erasure::Folders source(all());
        const double begin = monotonic_s();
        erasure::write_parity(*group_, erasure::Member{0}, source, folder(0));
        return monotonic_s() - begin;
    }
    // The image of a member, while as many are lost as may be.
    double rebuild() {
        std::vector<std::optional<files::Folder>> folders(kMembers);
        for (uint32_t i = kLosses; i < kMembers; ++i) {
            folders[i] = folder(i);
            if (fs::exists(where_ / std::to_string(i) / erasure::kParityFile)) continue;
            erasure::Folders source(all());
            erasure::write_parity(*group_, erasure::Member{i}, source, folder(i));
        }
        fs::create_directories(where_ / "spare");
        const double begin = monotonic_s();
        erasure::Folders source(folders);
        erasure::Rebuild(*group_, source).file(erasure::Member{0}, 0, files::Folder::at(where_ / "spare"));
        return monotonic_s() - begin;
    }

  private:
    files::Folder folder(uint32_t member) const { return files::Folder::at(where_ / std::to_string(member)); }
    std::vector<std::optional<files::Folder>> all() const {
        std::vector<std::optional<files::Folder>> folders;
        for (uint32_t i = 0; i < kMembers; ++i) folders.emplace_back(folder(i));
        return folders;
    }
    const fs::path where_;
    std::optional<erasure::Group> group_;
};

void print(const char* name, const std::vector<double>& seconds) {
    std::printf("\"%s\": [", name);
    for (size_t i = 0; i < seconds.size(); ++i) std::printf("%s%.5f", i ? ", " : "", seconds[i]);
    std::printf("], ");
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 6) fail("levels-bench FILES MEMORY RANKS MIB ROUNDS");
    const int ranks = std::atoi(argv[3]), rounds = std::atoi(argv[5]);
    const size_t size = static_cast<size_t>(std::atoi(argv[4])) << 20,
                 all = size * static_cast<size_t>(ranks);
    char *data = touched(all), *copies = touched(all), *received = touched(all);
    fill(data, all, 1);
    std::vector<double> plain, two, with_tags, code, parity, rebuilt;
    for (int round = 0; round < rounds; ++round) {
        two.push_back(two_copies(ranks, data, copies, received, size, false));
        with_tags.push_back(two_copies(ranks, data, copies, received, size, true));
        plain.push_back(plain_files(ranks, argv[1], data, size));
        code.push_back(code_alone(data, copies, all));
    }
    ::munmap(copies, all);
    ::munmap(received, all);
    {
        Members members(fs::path(argv[2]) / fmt::format("levels-bench-{}", ::getpid()), data, size);
        for (int round = 0; round < rounds; ++round) {
            parity.push_back(members.encode());
            rebuilt.push_back(members.rebuild());
        }
    }
    std::printf("{");
    print("plain", plain);
    print("two_copies", two);
    print("with_tags", with_tags);
    print("code", code);
    print("parity", parity);
    print("rebuild", rebuilt);
    std::printf("\"code_bytes\": %zu, \"image_bytes\": %zu}\n", all, size);
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
