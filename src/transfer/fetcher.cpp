#include "transfer/fetcher.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/invariant.h"
#include "base/text.h"
#include "files/kept.h"
#include "image/file_checksum.h"
#include "image/spare.h"
#include "level/choice.h"
#include "level/image_check.h"
#include "level/memory.h"
#include "level/place.h"
#include "level/spares.h"
#include "store/remove.h"
#include "tree/ranks.h"

namespace fermata::transfer {
namespace {

constexpr size_t kStreams = 4;
constexpr uint64_t kPart = 64u << 20;   // what a stream does at a time
constexpr uint64_t kSmall = 16u << 20;  // less comes faster by one stream

bool is_kept(const std::string& name) { return name.find('/') != name.npos; }

files::Folder generation_here(const files::Folder& folder, uint64_t job, Generation generation) {
    if (auto found = level::find_generation(folder, job, generation)) return *found;
    auto made = folder.make(generation.name());
    if (!made) fail("{} is in the way", folder.path_of(generation.name()));
    store::write_marker(*made, {job, generation.number()});
    return *made;
}

}  // namespace

// A file that comes; without its name until all of it is there.
struct Fetcher::Piece {
    files::Folder folder;
    std::string asked, name;  // of the other node, and in `folder`
    uint64_t bytes = 0;
    Fd file;

    std::string coming() const { return store::kOnItsWay + name; }
};

struct Fetcher::Part {
    const Piece* piece;
    uint64_t offset, length;
};

// Has the length that it will have, in pages of an image that went, where there is one: all of it will be
// written.
Fd Fetcher::new_file(const Piece& piece) {
    if (auto spare = image::take_spare(piece.folder, piece.coming(), piece.name, piece.bytes)) {
        if (::ftruncate(spare->get(), static_cast<off_t>(piece.bytes)) == 0) return std::move(*spare);
        piece.folder.remove_file(piece.coming());
    }
    return piece.folder.create(piece.coming());
}

void Fetcher::start(Order order, uint64_t bytes_per_second) {
    always(!busy(), "a fetch that begins while one is under way");
    always(static_cast<bool>(order.folder), "a fetch to nowhere");
    order_ = std::move(order);
    bytes_ = 0;
    given_up_ = false;
    throttle_.limit(bytes_per_second);
    work_.start([this] { return work(); });
}

void Fetcher::stop() {
    given_up_ = true;
    work_.wait();
}

Fetcher::Result Fetcher::work() {
    Result result{order_.number, 0, {}};
    for (const wire::Errand& errand : order_.errands) {
        try {
            run(errand);
        } catch (const std::exception& error) {
            result.failures.push_back({errand.from, error.what(), errand.medium});
        }
        coming_ = 0;
    }
    result.bytes = bytes_;
    return result;
}

Client Fetcher::connect(const wire::Errand& errand) {
    return {errand.addresses, errand.source(), order_.key, {order_.silent_ms, [this] {
                                                                return given_up_ || failed_;
                                                            }}};
}

void Fetcher::run(const wire::Errand& errand) {
    failed_ = false;
    if (errand.generations.empty()) fail("nothing to fetch");
    Client client = connect(errand);
    for (Generation generation : errand.generations)
        bring(client, errand, generation, generation == errand.generations.back());
    check(errand);
}

// `wanted`: itself, and not what others refer to: of that, some ranks' images may not be needed.
void Fetcher::bring(Client& client, const wire::Errand& errand, Generation generation, bool wanted) {
    const auto ranks = tree::Ranks::of(errand.ranks);
    if (!ranks || ranks->empty()) fail("no ranks to fetch images of");
    std::vector<File> images, others;
    for (File& file : client.list(generation)) {
        if (auto rank = level::rank_of_image(file.name)) {
            if (ranks->contains(static_cast<int32_t>(rank->number()))) images.push_back(std::move(file));
        } else if (image::is_text_name(file.name) || is_kept(file.name)) {
            others.push_back(std::move(file));
        }
    }
    if (wanted && images.size() != ranks->count())
        fail("{} of {} images of {} are in {}", images.size(), ranks->count(), generation.name(),
             errand.source().words());
    if (images.empty()) return;
    files::Folder to = generation_here(order_.folder, order_.job, generation);
    std::vector<Piece> first = missing(client, generation, to, others);
    std::vector<Piece> then = missing(client, generation, to, images);
    uint64_t bytes = 0;
    for (const auto* pieces : {&first, &then})
        for (const Piece& piece : *pieces) bytes += piece.bytes;
    if (order_.into == Medium::memory && level::room_in_memory(order_.folder) < bytes)
        level::drop_spares(order_.folder);
    if (const uint64_t room = level::room_in(order_.into, order_.folder); bytes > 0 && room < bytes)
        fail("{} {} for {} of {}", human_size(room), order_.into == Medium::memory ? "of memory" : "free",
             human_size(bytes), generation.name());
    coming_ = bytes;
    bring_all(client, errand, generation, first);
    bring_all(client, errand, generation, then);
    if (order_.into != Medium::local) return;
    for (const auto* pieces : {&first, &then})
        for (const Piece& piece : *pieces) piece.folder.sync();
    level::sync_generation(order_.folder, generation);
}

// A file of the same name with another content is damaged, here or there: the check afterwards finds out.
std::vector<Fetcher::Piece> Fetcher::missing(Client& client, Generation generation, const files::Folder& to,
                                             const std::vector<File>& files) {
    std::vector<Piece> pieces;
    for (const File& file : files) {
        Piece piece{to, file.name, file.name, file.bytes, {}};
        if (is_kept(file.name)) {
            auto kept = to.make(files::kKeptFolder);
            piece.folder = kept ? *kept : to.below(files::kKeptFolder);
            piece.name = file.name.substr(file.name.find('/') + 1);
        }
        if (piece.folder.size_of(piece.name) == file.bytes &&
            client.digest(generation, file.name).checksum ==
                image::checksum_of_file(piece.folder, piece.name, file.bytes))
            continue;
        pieces.push_back(std::move(piece));
    }
    return pieces;
}

void Fetcher::bring_all(Client& client, const wire::Errand& errand, Generation generation,
                        std::vector<Piece>& pieces) {
    std::vector<Part> parts;
    uint64_t bytes = 0;
    for (Piece& piece : pieces) {
        piece.folder.remove_file(piece.coming());  // of an earlier attempt
        piece.file = new_file(piece);
        for (uint64_t at = 0; at < piece.bytes; at += kPart)
            parts.push_back({&piece, at, std::min(kPart, piece.bytes - at)});
        bytes += piece.bytes;
    }
    std::atomic<size_t> next{0};
    std::mutex lock;
    std::string error;
    auto work = [&](Client* own) {
        try {
            if (own) return bring_parts(*own, generation, parts, next);
            Client another = connect(errand);
            bring_parts(another, generation, parts, next);
        } catch (const std::exception& why) {
            std::lock_guard hold(lock);
            if (error.empty()) error = why.what();
            failed_ = true;
        }
    };
    std::vector<std::thread> streams;
    const size_t more = bytes < kSmall ? 0 : std::min(parts.size(), kStreams) - 1;
    for (size_t i = 0; i < more; ++i) streams.emplace_back(work, nullptr);
    work(&client);
    for (std::thread& stream : streams) stream.join();
    for (Piece& piece : pieces) {
        if (order_.into == Medium::local && error.empty()) try {
                sync_file(piece.file.get(), piece.folder.path_of(piece.coming()));
            } catch (const Error& why) {
                error = why.what();
            }
        piece.file.reset();
        if (!error.empty())
            piece.folder.remove_file(piece.coming());
        else if (!piece.folder.rename(piece.coming(), piece.name))
            fail_errno("cannot rename {}", piece.folder.path_of(piece.coming()));
    }
    if (!error.empty()) fail("{}", error);
}

void Fetcher::bring_parts(Client& client, Generation generation, const std::vector<Part>& parts,
                          std::atomic<size_t>& next) {
    for (size_t i; (i = next++) < parts.size();) {
        const Part& part = parts[i];
        always(part.offset <= part.piece->bytes && part.length <= part.piece->bytes - part.offset,
               "a part behind the end of its file");
        const std::string path = part.piece->folder.path_of(part.piece->coming());
        uint64_t got = 0;
        const uint64_t whole =
            client.read(generation, part.piece->asked, part.offset, part.length, [&](View data, uint64_t at) {
                pwrite_all(part.piece->file.get(), data.data(), data.size(), at, path);
                got += data.size();
                bytes_ += data.size();
                coming_ -= data.size();
                throttle_.spend(data.size(), [this] { return given_up_ || failed_; });
            });
        if (whole != part.piece->bytes || got != part.length)
            fail("{}/{} has changed meanwhile", generation.name(), part.piece->asked);
    }
}

// Checks that what has come is what the manifest names; `thorough`: in every byte, and all that it refers to.
void Fetcher::check(const wire::Errand& errand) const {
    const Generation generation = errand.generations.back();
    auto folder = level::find_generation(order_.folder, order_.job, generation);
    if (!folder) fail("{} is not there any more", generation.name());
    std::map<uint32_t, level::ImageIs> images;
    tree::Ranks::of(errand.ranks)->each([&](int32_t number) {
        const Rank rank(static_cast<uint32_t>(number));
        image::Reader reader(image::Place(*folder, image::image_name(rank)), order_.image_key.get());
        level::check_identity(reader, order_.job, generation, rank);
        if (order_.thorough) level::check_content(reader, *folder);
        images[rank.number()] = {reader.summary().bytes, reader.summary().checksum.hex()};
    });
    if (order_.named && level::sum_of(images).bytes != errand.checksum)
        fail("the images of {} in {} are not those that the manifest names", generation.name(),
             errand.source().words());
}

}  // namespace fermata::transfer
