#include "transfer/server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "base/invariant.h"
#include "base/log.h"
#include "files/kept.h"
#include "image/hash.h"
#include "level/memory.h"
#include "tree/listen.h"
#include "tree/root_address.h"

namespace fermata::transfer {
namespace {

constexpr size_t kMostAtOnce = 256;      // connections
constexpr size_t kNamesAtOnce = 1000;    // in one frame
constexpr int64_t kSignOfLifeMs = 1000;  // while a long file is added up
constexpr int kRestMs = 1000;

std::vector<File> files_in(const files::Folder& generation) {
    std::vector<File> all;
    auto add = [&](const files::Folder& folder, const std::string& name, const std::string& before) {
        auto bytes = folder.size_of(name);
        if (bytes && may_be_asked_for(before + name)) all.push_back({before + name, *bytes});
    };
    for (const std::string& name : generation.names()) add(generation, name, "");
    if (auto kept = generation.find(files::kKeptFolder))
        for (const std::string& name : kept->names()) add(*kept, name, std::string(files::kKeptFolder) + "/");
    return all;
}

struct Opened {
    Fd fd;
    uint64_t bytes = 0;
    std::string path;
};
Opened open_in(const files::Folder& generation, const std::string& name) {
    const size_t slash = name.find('/');
    const files::Folder folder = slash == name.npos ? generation : generation.below(name.substr(0, slash));
    const std::string last = slash == name.npos ? name : name.substr(slash + 1);
    Opened opened{folder.read(last), 0, folder.path_of(last)};
    struct stat status {};
    if (::fstat(opened.fd.get(), &status) != 0) fail_errno("cannot stat {}", opened.path);
    opened.bytes = static_cast<uint64_t>(status.st_size);
    return opened;
}

// Parts of the file, in order.
template <class F>
void each_part(const Opened& file, uint64_t offset, uint64_t length, F&& f) {
    always(offset <= file.bytes && length <= file.bytes - offset, "a part of a file behind its end");
    auto buffer = std::make_unique<std::byte[]>(kMostData);
    while (length > 0) {
        const auto size = static_cast<size_t>(std::min<uint64_t>(length, kMostData));
        pread_all(file.fd.get(), buffer.get(), size, offset, file.path);
        f(View(buffer.get(), size));
        offset += size;
        length -= size;
    }
}

// A generation that is not there has no files.
void send_list(Stream& stream, const std::optional<files::Folder>& generation) {
    const std::vector<File> all = generation ? files_in(*generation) : std::vector<File>();
    for (size_t at = 0; at < all.size(); at += kNamesAtOnce)
        stream.send(Kind::names,
                    to_bytes(std::vector<File>(
                        all.begin() + static_cast<ptrdiff_t>(at),
                        all.begin() + static_cast<ptrdiff_t>(std::min(at + kNamesAtOnce, all.size())))));
    stream.send(Kind::end, {});
}

void send_part(Stream& stream, const Opened& file, const Question& question) {
    const uint64_t begin = std::min(question.offset, file.bytes);
    const Size size{file.bytes, std::min(question.length, file.bytes - begin)};
    stream.send(Kind::size, to_bytes(size));
    each_part(file, begin, size.follows, [&](View part) { stream.send(Kind::data, part); });
}

void send_digest(Stream& stream, const Opened& file) {
    image::Hash hash;
    int64_t said = monotonic_ms();
    each_part(file, 0, file.bytes, [&](View part) {
        hash.add(part.data(), part.size());
        if (monotonic_ms() - said < kSignOfLifeMs) return;
        stream.send(Kind::data, {});
        said = monotonic_ms();
    });
    stream.send(Kind::sum, to_bytes(Sum{file.bytes, hash.sum()}));
}

}  // namespace

Server::Server(files::Folder folder, uint64_t job, const wire::Key& key, int64_t silent_ms,
               const Streams* streams)
    : folder_(std::move(folder)),
      job_(job),
      silent_ms_(silent_ms),
      streams_(streams),
      guests_(tree::listen_tcp(port_), key),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!stop_) fail_errno("cannot create an eventfd");
    guests_.on_proof = [this](Fd socket, const wire::Handshake& shake) { admit(std::move(socket), shake); };
    thread_ = std::thread([this] { wait(); });
}

Server::~Server() {
    stopping_ = true;
    const uint64_t one = 1;
    [[maybe_unused]] ssize_t n = ::write(stop_.get(), &one, sizeof one);
    thread_.join();
    for (Guest& guest : admitted_) guest.thread.join();
}

std::string Server::addresses() const { return tree::addresses_of_this_host(port_); }

void Server::wait() {
    while (!stopping_) {
        std::vector<pollfd> fds{{stop_.get(), POLLIN, 0}};
        guests_.add_to(fds);
        if (::poll(fds.data(), fds.size(), guests_.rest(kRestMs)) < 0) continue;
        guests_.serve(fds, 1);
        std::erase_if(admitted_, [](Guest& guest) {
            if (guest.done) guest.thread.join();
            return guest.done.load();
        });
    }
}

void Server::admit(Fd socket, const wire::Handshake& shake) {
    if (admitted_.size() >= kMostAtOnce)
        return spdlog::warn("transfers: there are {} already, and another one is asked for", kMostAtOnce);
    Stream stream(std::move(socket), shake, {silent_ms_, [this] { return stopping_.load(); }});
    Guest& guest = admitted_.emplace_back();
    guest.thread = std::thread([this, &guest, stream = std::move(stream)]() mutable {
        serve(std::move(stream));
        guest.done = true;
    });
}

// Until the other end has got what it wants.
void Server::serve(Stream stream) const {
    try {
        for (;;) {
            const Stream::Frame frame = stream.receive(kMostQuestion);
            answer(stream, question_of(frame.kind, frame.payload));
        }
    } catch (const std::exception& end) {
        spdlog::info("transfers: {}", end.what());
    }
}

void Server::answer(Stream& stream, const Question& question) const {
    try {
        if (question.kind == Kind::stream) return carry_stream(stream, question);
        auto generation = level::find_generation(folder_, job_, question.generation);
        if (question.kind == Kind::list) return send_list(stream, generation);
        if (!generation) fail("nothing of {} is there", question.generation.name());
        const Opened file = open_in(*generation, question.name);
        question.kind == Kind::read ? send_part(stream, file, question) : send_digest(stream, file);
    } catch (const StreamError&) {
        throw;
    } catch (const std::exception& error) {
        stream.send(Kind::refused, to_bytes(std::string(error.what())));
    }
}

// This connection is the stream's from now on.
void Server::carry_stream(Stream& stream, const Question& question) const {
    const auto rank = level::rank_of_image(question.name);
    const auto memory = streams_ && rank ? streams_->find(*rank) : nullptr;
    if (!memory) fail("no stream of {} begins here", question.name);
    carry(stream, *memory);
    throw StreamError("the stream has ended", ExitCode::failed);
}

}  // namespace fermata::transfer
