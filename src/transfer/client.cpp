#include "transfer/client.h"

#include <cstring>

#include "base/error.h"
#include "tree/root_address.h"

namespace fermata::transfer {
namespace {

constexpr size_t kMostFiles = 1'000'000;  // of one generation on one node

Stream connected(const std::string& addresses, const std::string& from, const wire::Key& key,
                 const Patience& patience) {
    tree::Proved proved =
        tree::connect_once(addresses, key, static_cast<int>(patience.silent_ms), patience.given_up, from);
    return {std::move(proved.socket), proved.shake, patience};
}

[[noreturn]] void out_of_turn() { fail("an answer to another question"); }

// Names the other end in what `work` throws.
template <class Work>
auto with_name(const std::string& from, const std::string& what, Work work) {
    try {
        return work();
    } catch (const std::exception& error) {
        fail("{} from {}: {}", what, from, error.what());
    }
}

}  // namespace

Client::Client(const std::string& addresses, const NodePlace& place, const wire::Key& key, Patience patience)
    : from_(place.words()), stream_(connected(addresses, from_, key, patience)) {}

Stream::Frame Client::answer() {
    Stream::Frame frame = stream_.receive(kMostData);
    if (frame.kind == Kind::refused) fail("{}", line_of(frame.payload));
    return frame;
}

Stream::Frame Client::ask(const Question& question) {
    stream_.send(question.kind, to_bytes(question));
    return answer();
}

std::vector<File> Client::list(Generation generation) {
    return with_name(from_, generation.name(), [&] {
        std::vector<File> all;
        for (Stream::Frame frame = ask({Kind::list, generation, "", 0, 0}); frame.kind != Kind::end;
             frame = answer()) {
            if (frame.kind != Kind::names) out_of_turn();
            for (File& file : files_of(frame.payload)) all.push_back(std::move(file));
            if (all.size() > kMostFiles) fail("more than {} files", kMostFiles);
        }
        return all;
    });
}

uint64_t Client::read(Generation generation, const std::string& name, uint64_t offset, uint64_t length,
                      const Take& take) {
    const Part part{generation, name, offset, length};
    ask_for(part);
    return take_part(part, take);
}

void Client::read(Generation generation, const std::string& name, uint64_t offset, void* to, size_t length) {
    const Part part{generation, name, offset, length};
    ask_for(part);
    take(part, to);
}

void Client::ask_for(const Part& part) {
    with_name(from_, part.generation.name() + "/" + part.name, [&] {
        stream_.send(Kind::read,
                     to_bytes(Question{Kind::read, part.generation, part.name, part.offset, part.length}));
    });
}

void Client::take(const Part& part, void* to) {
    size_t got = 0;
    const uint64_t file = take_part(part, [&](View piece, uint64_t at) {
        std::memcpy(static_cast<std::byte*>(to) + (at - part.offset), piece.data(), piece.size());
        got += piece.size();
    });
    if (got != part.length)
        fail("{}/{} from {}: it has {} bytes, and {} from {} on were wanted", part.generation.name(),
             part.name, from_, file, part.length, part.offset);
}

uint64_t Client::take_part(const Part& part, const Take& take) {
    return with_name(from_, part.generation.name() + "/" + part.name, [&] {
        const Stream::Frame first = answer();
        if (first.kind != Kind::size) out_of_turn();
        const Size size = size_of(first.payload);
        if (size.follows > part.length) fail("{} bytes, and {} were asked for", size.follows, part.length);
        for (uint64_t done = 0; done < size.follows;) {
            const Stream::Frame frame = answer();
            if (frame.kind != Kind::data || frame.payload.empty() ||
                frame.payload.size() > size.follows - done)
                out_of_turn();
            take(frame.payload, part.offset + done);
            done += frame.payload.size();
        }
        return size.file;
    });
}

Sum Client::digest(Generation generation, const std::string& name) {
    return with_name(from_, generation.name() + "/" + name, [&] {
        Stream::Frame frame = ask({Kind::digest, generation, name, 0, 0});
        while (frame.kind == Kind::data && frame.payload.empty()) frame = answer();  // it is at it
        if (frame.kind != Kind::sum) out_of_turn();
        return sum_of(frame.payload);
    });
}

}  // namespace fermata::transfer
