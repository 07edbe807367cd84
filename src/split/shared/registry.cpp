#include "split/shared/registry.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/cbor.h"
#include "base/error.h"
#include "base/fd.h"
#include "files/others_link.h"
#include "files/place.h"
#include "split/address/maps.h"
#include "split/address/raw.h"
#include "split/fds/descriptors.h"
#include "split/shared/extents.h"
#include "split/shared/objects.h"
#include "split/shared/queues.h"
#include "split/shared/segments.h"
#include "split/shared/system_v.h"

namespace fermata::split::shared {
namespace {

using nlohmann::json;

struct Made {  // NOLINT(bugprone-exception-escape): json's move says noexcept and checks itself
    json saved;
    Kind kind = Kind::memory;
    Fd fd, other;  // of a pipe: to read, to write
    Fd read_only;
    Segment segment;
    std::vector<Rank> ranks;  // whose it is; empty: this one's own
    bool with_others() const { return ranks.size() > 1; }
    bool maker = true;
};

struct Registry {
    std::map<std::string, Made> objects;  // by key
    std::map<uint64_t, Made*> mapped;     // by the table's number
    Peers peers;
};
Registry registry;

// Throws what the reader of the list of objects catches.
std::vector<Rank> ranks_of(const json& saved) {
    std::vector<Rank> ranks;
    for (const json& number : saved.at("ranks")) {
        auto rank = Rank::of(number.get<int64_t>());
        if (!rank) fail("the image's list of shared objects is damaged: no rank is {}", number.dump());
        ranks.push_back(*rank);
    }
    return ranks;
}

std::string list_of(const std::vector<Rank>& ranks) {
    std::string list;
    for (size_t i = 0; i < ranks.size(); ++i)
        list += fmt::format("{}{}", i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i].number());
    return list;
}

std::string name_of(const json& saved) {
    std::string name = saved.value("name", "");
    constexpr std::string_view kDeleted = " (deleted)";
    if (name.ends_with(kDeleted)) name.resize(name.size() - kDeleted.size());
    auto kind = static_cast<Kind>(saved.at("kind").get<uint32_t>());
    if (kind == Kind::queue) return "message queue " + name;
    if (kind == Kind::segment) return fmt::format("System V segment {}", saved.at("id").get<int>());
    if (name.starts_with("/dev/shm/fermata-window-")) return "an MPI shared window";
    if (name == "/dev/zero") return "shared anonymous memory";
    return name.starts_with("/memfd:") || name.starts_with("/") ? "shared memory " + name : name;
}

Fd high(int fd) { return Fd(raise_descriptor(fd)); }

// Content that the image has not is zero.
void clear(int fd, const json& saved) {
    auto size = saved.at("size").get<off_t>();
    json parts = {{0, std::max<off_t>(1, size)}};
    if (saved.value("unsaved", false)) parts = saved.value("covered", json::array());
    int error = ::ftruncate(fd, size);
    for (const json& part : parts) {
        auto begin = part.at(0).get<off_t>(), end = part.at(1).get<off_t>();
        if (begin < end && error == 0)
            error = ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, end - begin);
    }
    if (error != 0) fail_errno("cannot empty {} before its content is put back", name_of(saved));
}

// Nobody else's to read or to write to.
void check_owner(const std::string& path, const struct stat& there, const json& saved, bool same) {
    if (!S_ISREG(there.st_mode) || (there.st_uid != ::geteuid() && !same))
        fail(
            "{}, which the program had mapped, is now {} of user {}, who could read and change the program's "
            "memory by it: remove it and restart again",
            path, S_ISREG(there.st_mode) ? "a file" : "something else", there.st_uid);
    auto mode = saved.at("mode").get<mode_t>();
    if ((there.st_mode & 066 & ~mode) != 0)
        fail(
            "{}, which the program had mapped, is open to others now (mode {:o}, at the checkpoint {:o}): "
            "remove it and restart again",
            path, there.st_mode & 07777, mode);
    if (there.st_nlink != 1 && !same)
        fail("{}, which the program had mapped, has other names now: remove it and restart again", path);
}

Fd make_named(const json& saved) {
    std::string path = saved.at("name");
    Fd made(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (made && ::ftruncate(made.get(), saved.at("size").get<off_t>()) != 0)
        fail_errno("cannot make {} again, which the program has mapped", path);
    if (!made && errno != EEXIST) fail_errno("cannot make {} again, which the program has mapped", path);
    return made;
}

// With its old name: made anew (on tmpfs), or the one that is there.
Fd open_named(const json& saved, std::vector<std::string>& warnings) {
    std::string path = saved.at("name");
    auto size = saved.at("size").get<off_t>();
    bool tmpfs = saved.at("tmpfs").get<bool>();
    if (tmpfs)
        if (Fd made = make_named(saved)) {
            write_extents(made.get(), saved.value("content", json::array()), "the content of " + path);
            return made;
        }
    bool careful = others_may_make(path);
    files::Place place(path, careful ? O_NOFOLLOW : 0);
    const struct stat& there = place.status();
    bool same = place && there.st_dev == saved.at("device").get<dev_t>() &&
                there.st_ino == saved.at("inode").get<ino_t>() &&
                there.st_uid == saved.at("uid").get<uid_t>();
    int error = errno;
    if (place && careful) check_owner(path, there, saved, same);
    Fd fd;
    if (place.is(S_IFREG)) {
        fd = place.open(O_RDWR);
        error = errno;
    }
    if (!fd)
        fail("cannot open {}, which the program has mapped: {}", path,
             files::refused(place, S_IFREG, error).why);
    if (const std::string link = files::others_link(path, fd.get()); !link.empty())
        fail("{}, which the program has mapped: {}: remove it and restart again", path, link);
    if (!tmpfs && there.st_size < size)
        fail("{}, which the program has mapped, is shorter than at the checkpoint ({} < {} bytes)", path,
             there.st_size, size);
    if (!same)
        warnings.push_back(
            fmt::format("{} is another file than at the checkpoint: what the program had mapped of it is its "
                        "content again",
                        path));
    if (tmpfs) {
        clear(fd.get(), saved);
        write_extents(fd.get(), saved.value("content", json::array()), "the content of " + path);
    }
    return fd;
}

Fd make_unnamed(const json& saved) {
    std::string name = saved.value("name", "");
    auto size = saved.at("size").get<off_t>();
    constexpr std::string_view kMemfd = "/memfd:", kDeleted = " (deleted)";
    if (name.ends_with(kDeleted)) name.resize(name.size() - kDeleted.size());
    Fd fd;
    if (name.starts_with("/dev/shm/")) fd = Fd(::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    std::string plain = name.starts_with(kMemfd) ? name.substr(kMemfd.size()) : "fermata-shared";
    if (!fd) fd = Fd(::memfd_create(plain.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd) fail_errno("cannot make {} again", name_of(saved));
    if (::ftruncate(fd.get(), size) != 0)
        fail_errno("cannot make {} KiB of {} again", size >> 10, name_of(saved));
    return fd;
}

void make(Made& one, std::vector<std::string>& warnings) {
    const json& saved = one.saved;
    if (one.kind == Kind::segment) {
        one.segment = make_segment(saved, warnings);
        // Whatever the image has not is zero.
        auto size = saved.at("size").get<uint64_t>();
        if (::madvise(one.segment.at, page_up(size), MADV_REMOVE) != 0) std::memset(one.segment.at, 0, size);
        put_extents(one.segment.at, size, saved.value("content", json::array()));
        note_system_v(Kind::segment, one.segment.id);
    } else if (one.kind == Kind::fifo) {
        return;
    } else if (one.kind == Kind::semaphores || one.kind == Kind::messages) {
        make_system_v(one.kind, saved, warnings);
    } else if (one.kind == Kind::queue) {
        one.fd = high(make_queue(saved, warnings).release());
    } else if (one.kind == Kind::pipe) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) fail_errno("cannot make a pipe again");
        one.fd = high(ends[0]);
        one.other = high(ends[1]);
    } else {
        Fd fd = saved.at("named").get<bool>() ? open_named(saved, warnings) : make_unnamed(saved);
        one.fd = high(fd.release());
    }
}

// When everybody has opened it.
void settle(const Made& one) {
    bool ours = one.kind == Kind::queue || one.saved.value("tmpfs", false);
    if (one.fd && one.maker && ours && one.saved.value("named", false))
        ::fchmod(one.fd.get(), one.saved.at("mode").get<mode_t>());
}

std::string offer_of(const Made& one) {
    struct stat s {};
    if (one.fd) ::fstat(one.fd.get(), &s);
    return fmt::format("{} {} {} {} {} {}", ::getpid(), one.fd.get(), one.other.get(), one.segment.id,
                       s.st_dev, s.st_ino);
}

Fd open_of(int pid, int fd, int flags, dev_t device, ino_t inode, const json& saved) {
    Fd opened(::open(fmt::format("/proc/{}/fd/{}", pid, fd).c_str(), flags | O_CLOEXEC | O_NONBLOCK));
    struct stat s {};
    if (!opened || ::fstat(opened.get(), &s) != 0 || s.st_dev != device || s.st_ino != inode)
        fail(
            "cannot open {}, which process {} on this node has made again: {}: do the ranks of this node see "
            "each other's /proc?",
            name_of(saved), pid, opened ? "it is another one" : std::strerror(errno));
    return high(opened.release());
}

void take(Made& one, const std::string& offer) {
    int pid = 0, fd = -1, other = -1, segment = -1;
    dev_t device = 0;
    ino_t inode = 0;
    std::istringstream words(offer);
    words >> pid >> fd >> other >> segment >> device >> inode;
    if (one.kind == Kind::semaphores || one.kind == Kind::messages || one.kind == Kind::fifo) return;
    if (one.kind == Kind::segment) {
        one.segment = attach_segment(segment);
        return;
    }
    one.fd = open_of(pid, fd, one.kind == Kind::pipe ? O_RDONLY : O_RDWR, device, inode, one.saved);
    if (one.kind == Kind::pipe) one.other = open_of(pid, other, O_WRONLY, device, inode, one.saved);
}

std::string apart(const json& saved, const std::vector<Rank>& ranks, const std::vector<std::string>& nodes) {
    std::map<std::string, std::vector<Rank>> by_node;
    for (size_t i = 0; i < ranks.size(); ++i) by_node[nodes[i]].push_back(ranks[i]);
    if (by_node.size() == 1) return {};
    std::string places;
    for (auto& [node, there] : by_node)
        places += fmt::format("{}{} {} on {}", places.empty() ? "" : ", ",
                              there.size() > 1 ? "ranks" : "rank", list_of(there), node);
    return fmt::format(
        "{} was shared by ranks {}, which are on several nodes now ({}): start them on one node",
        name_of(saved), list_of(ranks), places);
}

// One object of several ranks. Whoever fails says so to the root, which ends the others.
void meet(Made& one, std::vector<std::string>& warnings) {
    Peers& peers = registry.peers;
    const std::vector<Rank>& ranks = one.ranks;
    const Rank maker = ranks.front();
    if (peers.rank != maker) {
        one.maker = false;
        peers.send(maker, peers.node);
        std::string offer = peers.receive(maker);
        if (offer.starts_with("error: ")) fail("{}", offer.substr(7));
        take(one, offer);
        return;
    }
    std::vector<std::string> nodes{peers.node};
    for (size_t i = 1; i < ranks.size(); ++i) nodes.push_back(peers.receive(ranks[i]));
    std::string offer = apart(one.saved, ranks, nodes);
    if (offer.empty()) {
        try {
            make(one, warnings);
            offer = offer_of(one);
        } catch (const std::exception& error) {
            offer = fmt::format("error: {}", error.what());
        }
    } else {
        offer = "error: " + offer;
    }
    for (size_t i = 1; i < ranks.size(); ++i) peers.send(ranks[i], offer);
    if (offer.starts_with("error: ")) fail("{}", offer.substr(7));
}

}  // namespace

void make_objects(std::string_view described, Peers peers, std::vector<std::string>& warnings) {
    registry.peers = std::move(peers);
    json all;
    try {
        if (const char* fault = cbor_fault(described.data(), described.size()))
            fail("the image's list of shared objects is damaged: {}", fault);
        all = json::from_cbor(described);
        for (json& saved : all) {
            Made& one = registry.objects[saved.at("key").get<std::string>()];
            one.kind = static_cast<Kind>(saved.at("kind").get<uint32_t>());
            one.ranks = ranks_of(saved);
            one.saved = std::move(saved);
            if (one.saved.contains("object")) registry.mapped[one.saved.at("object").get<uint64_t>()] = &one;
        }
    } catch (const json::exception& error) {
        fail("the image's list of shared objects is damaged: {}", error.what());
    }
    for (auto& [key, one] : registry.objects)
        if (one.with_others())
            meet(one, warnings);
        else
            make(one, warnings);
}

void meet_over_content() {
    Peers& peers = registry.peers;
    for (auto& [key, one] : registry.objects) {
        if (!one.with_others()) {
            settle(one);
            continue;
        }
        const std::vector<Rank>& ranks = one.ranks;
        if (!one.maker) {
            peers.send(ranks.front(), "content");
            peers.receive(ranks.front());
            continue;
        }
        for (size_t i = 1; i < ranks.size(); ++i) peers.receive(ranks[i]);
        settle(one);
        for (size_t i = 1; i < ranks.size(); ++i) peers.send(ranks[i], "content");
    }
}

void forget_objects() {
    for (auto& [key, one] : registry.objects) detach_segment(one.segment);
    registry = {};
}

int descriptor_of(uint64_t object, bool writable) {
    auto at = registry.mapped.find(object);
    if (at == registry.mapped.end()) return -2;
    Made& one = *at->second;
    if (one.kind == Kind::segment) return -1;
    if (writable) return one.fd.get();
    if (!one.read_only)
        one.read_only =
            high(::open(fmt::format("/proc/self/fd/{}", one.fd.get()).c_str(), O_RDONLY | O_CLOEXEC));
    return one.read_only ? one.read_only.get() : one.fd.get();
}

long map_segment(const MapEntry& map) {
    Made& one = *registry.mapped.at(map.object);
    // A length of 0 means the same memory once more, counted by the kernel as an attachment.
    long rc = sys(SYS_mremap, static_cast<char*>(one.segment.at) + map.offset, 0, map.range.size(),
                  MREMAP_MAYMOVE | MREMAP_FIXED, map.range.begin());
    return failed(rc) ? rc : 0;
}

int descriptor_of(const std::string& key) {
    auto at = registry.objects.find(key);
    return at == registry.objects.end() ? -1 : at->second.fd.get();
}

std::pair<int, int> pipe_of(const std::string& key) {
    auto at = registry.objects.find(key);
    if (at == registry.objects.end() || at->second.kind != Kind::pipe) return {-1, -1};
    return {at->second.fd.get(), at->second.other.get()};
}

}  // namespace fermata::split::shared
