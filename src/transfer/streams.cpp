#include "transfer/streams.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/sys.h"
#include "image/image.h"
#include "tree/root_address.h"

namespace fermata::transfer {
namespace {

constexpr size_t kBytes = sizeof(StreamRing) + kStreamRingBytes;
constexpr int kRestMs = 50;
constexpr int64_t kSignOfLifeMs = 1000;
constexpr useconds_t kFullUs = 200;  // then the copy may have taken something

}  // namespace

StreamMemory::StreamMemory(int descriptor) {
    struct stat what {};
    if (::fstat(descriptor, &what) != 0 || what.st_size != static_cast<off_t>(kBytes))
        fail("this is not the memory of a rank's stream");
    void* at = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (at == MAP_FAILED) fail_errno("cannot map the memory of a rank's stream");
    ring_ = static_cast<StreamRing*>(at);
}

StreamMemory::~StreamMemory() {
    close();
    ::munmap(ring_, kBytes);
}

View StreamMemory::there() const {
    const uint64_t at = ring_->read, begin = at % kStreamRingBytes;
    const auto size = std::min<uint64_t>({written() - at, kStreamRingBytes - begin, kMostData});
    return {reinterpret_cast<const std::byte*>(ring_->data) + begin, static_cast<size_t>(size)};
}

void StreamMemory::taken(size_t bytes) {
    __atomic_store_n(&ring_->read, ring_->read + bytes, __ATOMIC_RELEASE);
}

uint64_t StreamMemory::begin() {
    __atomic_store_n(&ring_->elsewhere, 1, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&ring_->written, __ATOMIC_SEQ_CST);
}

void StreamMemory::wait(int ms) {
    __atomic_store_n(&ring_->sleeps, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&ring_->written, __ATOMIC_SEQ_CST) == ring_->read) {
        const timespec longest{0, ms * 1'000'000L};
        sys(SYS_futex, &ring_->sleeps, FUTEX_WAIT, 1, &longest, nullptr, 0);
    }
    __atomic_store_n(&ring_->sleeps, 0, __ATOMIC_SEQ_CST);
}

void StreamMemory::arrived(uint64_t bytes) {
    // Not `read`: the answer may come before the one who has sent them notes it.
    if (bytes > written() || bytes < ring_->arrived) fail("a stream of which more has arrived than was sent");
    __atomic_store_n(&ring_->arrived, bytes, __ATOMIC_RELEASE);
}

size_t StreamMemory::put(View bytes) {
    const uint64_t at = ring_->written, read = __atomic_load_n(&ring_->read, __ATOMIC_ACQUIRE);
    const uint64_t begin = at % kStreamRingBytes;
    const auto size = static_cast<size_t>(
        std::min<uint64_t>({bytes.size(), kStreamRingBytes - (at - read), kStreamRingBytes - begin}));
    std::memcpy(ring_->data + begin, bytes.data(), size);
    __atomic_store_n(&ring_->written, at + size, __ATOMIC_RELEASE);
    return size;
}

void Streams::add(Rank rank, std::shared_ptr<StreamMemory> memory) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<StreamMemory>& place = all_[rank];
    if (place) place->close();
    place = std::move(memory);
}

void Streams::forget(Rank rank) {
    const std::lock_guard lock(mutex_);
    auto at = all_.find(rank);
    if (at == all_.end()) return;
    at->second->close();
    all_.erase(at);
}

std::shared_ptr<StreamMemory> Streams::find(Rank rank) const {
    const std::lock_guard lock(mutex_);
    auto at = all_.find(rank);
    return at == all_.end() ? nullptr : at->second;
}

std::vector<Rank> Streams::broken() const {
    const std::lock_guard lock(mutex_);
    std::vector<Rank> ranks;
    for (auto& [rank, memory] : all_)
        if (memory->is_news()) ranks.push_back(rank);
    return ranks;
}

// Answers of the other end are heard meanwhile, in the other thread.
void carry(Stream& stream, StreamMemory& memory) {
    std::atomic<bool> over{false};
    std::thread sender([&] {
        try {
            stream.send(Kind::size, to_bytes(Size{memory.begin(), 0}));
            for (int64_t said = monotonic_ms(); !over && !memory.is_closed();) {
                const View piece = memory.there();
                if (piece.empty()) {
                    memory.wait(kRestMs);
                    if (monotonic_ms() - said < kSignOfLifeMs) continue;
                }
                stream.send(Kind::data, piece);
                memory.taken(piece.size());
                said = monotonic_ms();
            }
            if (!over) stream.send(Kind::end, {});
        } catch (const std::exception& end) {
            spdlog::info("a stream: {}", end.what());
            memory.breaks();
        }
    });
    try {
        for (;;) {
            const Stream::Frame frame = stream.receive(kMostQuestion);
            if (frame.kind != Kind::arrived) fail("a stream is answered by something else");
            memory.arrived(size_of(frame.payload).file);
        }
    } catch (const std::exception& end) {
        spdlog::info("a stream: {}", end.what());
    }
    over = true;
    if (!memory.is_closed()) memory.breaks();
    sender.join();
}

Inflow::Inflow(Source source, const wire::Key& key, std::shared_ptr<StreamMemory> memory, int64_t silent_ms)
    : source_(std::move(source)), key_(key), memory_(std::move(memory)), silent_ms_(silent_ms) {
    thread_ = std::thread([this] { run(); });
}

void Inflow::stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
}

void Inflow::run() {
    try {
        const Patience patience{silent_ms_, [this] { return stopping_.load(); }};
        tree::Proved proved = tree::connect_once(source_.addresses, key_, static_cast<int>(silent_ms_),
                                                 patience.given_up, source_.place.words());
        Stream stream(std::move(proved.socket), proved.shake, patience);
        stream.send(Kind::stream,
                    to_bytes({Kind::stream, source_.generation, image::image_name(source_.rank), 0, 0}));
        take_in(stream);
    } catch (const std::exception& end) {
        spdlog::info("the stream of rank {} from {}: {}", source_.rank.number(), source_.place.words(),
                     end.what());
    }
    memory_->close();
    over_ = true;
}

void Inflow::take_in(Stream& stream) {
    Stream::Frame frame = stream.receive(kMostData);
    if (frame.kind == Kind::refused) fail("{}", line_of(frame.payload));
    if (frame.kind != Kind::size) fail("a stream that does not say where it stands");
    const uint64_t before = size_of(frame.payload).file;
    for (;;) {
        caught_up_ = memory_->written() >= before;
        frame = stream.receive(kMostData);
        if (frame.kind == Kind::end) return;
        if (frame.kind != Kind::data) fail("something else than a stream");
        for (View left = frame.payload; !left.empty();) {
            const size_t put = memory_->put(left);
            left = left.subspan(put);
            if (stopping_) return;
            if (put == 0) ::usleep(kFullUs);
        }
        stream.send(Kind::arrived, to_bytes(Size{memory_->written(), 0}));
    }
}

}  // namespace fermata::transfer
