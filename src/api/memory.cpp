#include "api/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "api/job.h"
#include "base/error.h"
#include "base/host_name.h"
#include "base/log.h"
#include "level/place.h"
#include "store/remove.h"

namespace fermata::api {
namespace {

// A file's bytes, to read.
class Mapped {
  public:
    Mapped(const files::Folder& folder, const std::string& name)
        : fd_(folder.read(name)), size_(folder.size_of(name).value_or(0)) {
        if (size_ == 0) fail("{} is empty", folder.path_of(name));
        data_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd_.get(), 0);
        if (data_ == MAP_FAILED) fail_errno("cannot read {}", folder.path_of(name));
    }
    ~Mapped() { ::munmap(data_, size_); }
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;
    const char* data() const { return static_cast<const char*>(data_); }
    uint64_t size() const { return size_; }

  private:
    Fd fd_;
    uint64_t size_;
    void* data_;
};

std::string name_of_image(int rank) { return image::image_name(Rank(static_cast<uint32_t>(rank))); }

}  // namespace

Memory::Memory(const Ranks& ranks, Options::Memory how, const std::string& directory, image::KeyPointer key)
    : ranks_(ranks), how_(how), key_(std::move(key)) {
    const std::string user = fmt::format("fermata-state-{}", ::geteuid()),
                      own = image::checksum_of(directory.data(), directory.size()).hex();
    directory_ = fmt::format("{}/{}/{}", level::base_directory(Medium::memory), user, own);
    std::string place;
    ranks_.together([&] {
        level::own_directory(Medium::memory, {user, own});
        store_ = store::Store::for_writing(directory_, key_);
        // Ranks with the same directory share a node; the host's name separates nodes whose mounts look
        // alike.
        place = host_name() + " " + file_id(directory_);
    });
    nodes_.emplace(ranks_.gather_texts(place));
    if (how_ == Options::Memory::buddy && nodes_->count() < 2)
        refuse(FERMATA_ARGUMENT,
               "memory=buddy needs a second node for the copies, and all ranks are on {}; memory=node keeps "
               "them on this "
               "node alone",
               host_name());
}

void Memory::save(const Staging& staging, const Job& job, uint32_t number, const image::WriteOptions& write) {
    const Rank rank = ranks_.own();
    store::GenerationInfo pending;
    try {
        ranks_.together([&] {
            if (!leads()) return;
            store_->act_for(job.number);
            pending = store_->begin_from(number);
            if (pending.number != number) fail("{} is taken in {}", Generation(number).name(), directory_);
        });
        files::Folder folder;
        image::Summary summary;
        ImageReport mine;
        const uint64_t room = room_for(staging.bytes());
        ranks_.together([&] {
            store_->check_space(room);
            folder = store::open_pending(directory_ + "/" + Generation(number).name(), job.number, number);
            const image::Identity who{job.number, number, rank, static_cast<uint32_t>(ranks_.size())};
            image::WriteOptions options = write;
            options.key = key_;
            options.layout = {};
            options.sync = false;  // it is memory
            if (options.threads == 0) options.threads = 1;
            image::Writer writer(image::Place(folder, image::image_name(rank)), who, options);
            fill(writer, staging);
            summary = writer.finish();
            mine = report_of(summary);
        });
        if (how_ == Options::Memory::buddy) copy_to_buddy(folder);
        std::vector<ImageReport> all = ranks_.gather_all(mine);
        store::Manifest m = manifest_of(job, number, staging.table().step, all, key_.get());
        m.level = store::LevelName::memory;
        m.created = ranks_.broadcast_text(m.created);  // the same text on all nodes
        ranks_.together([&] {
            if (!leads()) return;
            // Not Store::commit, which wants all images to be here.
            pending.folder.replace(store::kManifest, to_text(m, key_.get()));
        });
        // The one before goes when no node needs it any more.
        ranks_.together([&] {
            if (leads()) store_->retain(1);
        });
        newest_ = summary;
        newest_image_ = folder.path_of(image::image_name(rank));
    } catch (const Fault&) {
        if (leads() && pending.folder) {
            // Some nodes may have the manifest already: no node may find the generation whole.
            pending.folder.remove_file(store::kManifest);
            store_->abandon(pending);
        }
        throw;
    }
}

// Bytes that come to this node: images of its ranks, and copies of others'.
uint64_t Memory::room_for(uint64_t mine) const {
    std::vector<uint64_t> sizes = ranks_.gather_all(mine);
    const int here = nodes_->node_of(ranks_.rank());
    uint64_t room = 0;
    for (int r = 0; r < ranks_.size(); ++r) {
        const int buddy = how_ == Options::Memory::buddy ? nodes_->buddy(r) : -1;
        const bool copy = buddy >= 0 && nodes_->node_of(buddy) == here;
        room += sizes[static_cast<size_t>(r)] * ((nodes_->node_of(r) == here ? 1u : 0u) + (copy ? 1u : 0u));
    }
    return room;
}

void Memory::write_whole(const files::Folder& folder, const std::string& name, const char* data,
                         uint64_t size) {
    if (folder.has(name) && !folder.remove_file(name)) fail_errno("cannot remove {}", folder.path_of(name));
    Fd fd = folder.create(name);
    write_all(fd.get(), data, size, folder.path_of(name));
}

// Both know how long the image has to be; the sender says first whether it is there, so that no one waits.
void Memory::send(const files::Folder& folder, int image, int to, uint64_t size) const {
    std::optional<Mapped> file;
    Fault fault;
    try {
        file.emplace(folder, name_of_image(image));
        if (file->size() != size)
            fail("{} has another length than it had", folder.path_of(name_of_image(image)));
    } catch (const std::exception& error) {
        fault = Ranks::fault_of(error);
    }
    const uint8_t there = fault ? 0 : 1;
    ranks_.exchange(&there, sizeof there, to, nullptr, 0, -1);
    if (fault) throw fault;
    ranks_.exchange(file->data(), size, to, nullptr, 0, -1);
}

// `buffer` has room for it.
void Memory::receive(const files::Folder& folder, int image, int from, uint64_t size, char* buffer) const {
    uint8_t there = 0;
    ranks_.exchange(nullptr, 0, -1, &there, sizeof there, from);
    if (!there) refuse(FERMATA_DAMAGED, "rank {} cannot read the image of rank {} any more", from, image);
    ranks_.exchange(nullptr, 0, -1, buffer, size, from);
    write_whole(folder, name_of_image(image), buffer, size);
}

void Memory::copy_to_buddy(const files::Folder& folder) const {
    Fault fault;
    auto note = [&](const Fault& found) {
        if (!fault) fault = found;
    };
    std::optional<Mapped> own;
    ranks_.together([&] { own.emplace(folder, name_of_image(ranks_.rank())); });
    std::vector<uint64_t> sizes = ranks_.gather_all(own->size());
    // All memory is there before the first message: nobody is left waiting for a rank that has none.
    PageBuffer buffer;
    ranks_.together([&] {
        for (int round = 0; round < nodes_->rounds(); ++round)
            if (int from = nodes_->receives_from(ranks_.rank(), round); from >= 0)
                buffer.reserve(sizes[static_cast<size_t>(from)]);
    });
    for (int round = 0; round < nodes_->rounds(); ++round) {
        const int to = nodes_->sends_to(ranks_.rank(), round),
                  from = nodes_->receives_from(ranks_.rank(), round);
        const uint64_t coming = from < 0 ? 0 : sizes[static_cast<size_t>(from)];
        ranks_.exchange(own->data(), to < 0 ? 0 : own->size(), to, buffer.data(), coming, from);
        if (from < 0) continue;
        try {
            write_whole(folder, name_of_image(from), buffer.data(), coming);
        } catch (const std::exception& error) {
            note(Ranks::fault_of(error));
        }
    }
    ranks_.agree(fault);
}

// By number, then by text: what any node has a manifest of.
std::vector<Memory::Found> Memory::manifests() const {
    std::string mine;
    ranks_.together([&] {
        if (!leads()) return;
        for (const store::GenerationInfo& one : store_->list()) {
            if (!one.manifest || !one.manifest->step || one.folder.owner() != ::geteuid()) continue;
            std::string text = one.folder.text(store::kManifest, store::kMostManifest);
            mine += fmt::format("{} {}\n", one.number, text.size()) + text;
        }
    });
    std::map<std::pair<uint32_t, std::string>, Found> found;
    for (const std::string& said : ranks_.gather_texts(mine))
        for (size_t at = 0; at < said.size();) {
            const size_t line = said.find('\n', at);
            unsigned long number = 0, size = 0;
            if (std::sscanf(said.c_str() + at, "%lu %lu", &number, &size) != 2)
                refuse(FERMATA_MPI_FAILED, "a rank said what no rank says");
            Found one;
            one.number = static_cast<uint32_t>(number);
            one.manifest = said.substr(line + 1, size);
            at = line + 1 + size;
            found.try_emplace({one.number, one.manifest}, one);
        }
    std::vector<Found> all;
    for (auto& [key, one] : found) all.push_back(std::move(one));
    return all;
}

// A byte per image, 1 = this rank has seen that its node has it whole: the node's ranks share them out. A
// node that died between image and manifest has images all the same: the manifest is another node's then.
std::string Memory::intact(Found& one, const std::vector<store::GenerationInfo>& here) const {
    store::Manifest manifest = store::parse_manifest(one.manifest, "a generation in memory", key_.get());
    std::string intact(manifest.images.size(), '\0');
    for (const store::GenerationInfo& info : here)
        if (info.number == one.number && info.job == manifest.job && info.folder.owner() == ::geteuid() &&
            (!info.manifest || info.folder.text(store::kManifest, store::kMostManifest) == one.manifest))
            one.here = info;
    if (!one.here) return intact;
    one.here->manifest = manifest;
    const int me = ranks_.rank();
    size_t turn = 0, mates = 0;
    for (int r = 0; r < ranks_.size(); ++r)
        if (nodes_->node_of(r) == nodes_->node_of(me)) {
            if (r < me) ++turn;
            ++mates;
        }
    for (size_t i = turn; i < intact.size(); i += mates) {
        const store::ImageEntry& image = manifest.images[i];
        try {
            if (one.here->folder.size_of(image.file) != image.bytes) continue;
            image::Reader reader(one.here->place(image), key_.get());
            if (!one.here->is_of(image, reader)) continue;
            reader.verify();
            intact[i] = 1;
        } catch (const Error&) {
            // Damaged: as if it were not there.
        }
    }
    return intact;
}

Memory::Findings Memory::find() const {
    std::vector<Found> all = manifests();
    std::string mine;
    ranks_.together([&] {
        const std::vector<store::GenerationInfo> here = store_->list();
        for (Found& one : all) mine += intact(one, here);
    });
    std::vector<std::string> seen = ranks_.gather_texts(mine);
    Findings findings;
    size_t at = 0;
    for (Found& one : all) {
        const store::Manifest manifest =
            store::parse_manifest(one.manifest, "a generation in memory", key_.get());
        const size_t images = manifest.images.size();
        one.step = manifest.step.value_or(0);
        one.holder.resize(images, -1);
        one.nodes.resize(static_cast<size_t>(nodes_->count()), std::string(images, '\0'));
        for (int r = 0; r < ranks_.size(); ++r)
            for (size_t i = 0; i < images; ++i) {
                if (!seen[static_cast<size_t>(r)].at(at + i)) continue;
                one.nodes[static_cast<size_t>(nodes_->node_of(r))][i] = 1;
                if (one.holder[i] < 0) one.holder[i] = r;
            }
        at += images;
        auto lost = std::find(one.holder.begin(), one.holder.end(), -1);
        if (lost == one.holder.end()) {
            findings.whole.insert(findings.whole.begin(), std::move(one));
            continue;
        }
        findings.lost =
            fmt::format("{} was in memory, and no node of this job has the image of rank {} whole",
                        Generation(one.number).name(), lost - one.holder.begin());
        if (ranks_.first()) say(findings.lost + ": it is passed over");
    }
    return findings;
}

uint32_t Memory::highest() const {
    std::vector<store::GenerationInfo> all = store_->list();
    return all.empty() ? 0 : all.back().number;
}

store::GenerationInfo Memory::fetch(const Found& found, const std::vector<std::string>& needed) const {
    store::GenerationInfo here;
    const store::Manifest manifest =
        store::parse_manifest(found.manifest, "a generation in memory", key_.get());
    const std::string name = Generation(found.number).name();
    // A node that has nothing of it gets a directory of its own.
    ranks_.together([&] {
        if (!leads() || found.here) return;
        files::Folder parent = files::Folder::at(directory_);
        if (auto other = parent.find(name); other && !store::remove_generation(parent, name, *other))
            fail("{}/{} is not what this job has there", directory_, name);
        auto made = parent.make(name);
        if (!made) fail("{}/{} cannot be made", directory_, name);
        store::write_marker(*made, {manifest.job, found.number});
    });
    ranks_.together([&] {
        here.number = found.number;
        here.directory = directory_ + "/" + name;
        here.folder = files::Folder::at(directory_).below(name);
        here.folder.check_owner(here.directory);
        here.job = manifest.job;
        here.manifest = manifest;
    });
    // Plans which rank sends which image to whom, in the same order everywhere.
    struct Transfer {
        int image, from, to;
    };
    std::vector<Transfer> transfers;
    for (size_t i = 0; i < found.holder.size(); ++i)
        for (int n = 0; n < nodes_->count(); ++n) {
            bool wanted = false;
            for (int r = 0; r < ranks_.size(); ++r)
                wanted = wanted || (nodes_->node_of(r) == n && needed[static_cast<size_t>(r)][i]);
            if (wanted && !found.nodes[static_cast<size_t>(n)][i])
                transfers.push_back({static_cast<int>(i), found.holder[i], nodes_->leader(n)});
        }
    auto size_of = [&](const Transfer& one) { return manifest.images[static_cast<size_t>(one.image)].bytes; };
    PageBuffer buffer;
    ranks_.together([&] {
        for (const Transfer& one : transfers)
            if (one.to == ranks_.rank()) buffer.reserve(size_of(one));
    });
    // A fault is told when all are over.
    Fault fault;
    for (const Transfer& one : transfers) try {
            if (ranks_.rank() == one.from) send(here.folder, one.image, one.to, size_of(one));
            if (ranks_.rank() == one.to)
                receive(here.folder, one.image, one.from, size_of(one), buffer.data());
        } catch (const Fault& found_here) {
            if (!fault) fault = found_here;
        } catch (const std::exception& error) {
            if (!fault) fault = Ranks::fault_of(error);
        }
    ranks_.agree(fault);
    // The images that are here serve the next restart, too; without a manifest the next save would sweep them
    // away.
    ranks_.together([&] {
        if (leads()) here.folder.replace(store::kManifest, found.manifest);
    });
    return here;
}

void Memory::clear() noexcept {
    if (!store_ || !leads()) return;
    try {
        files::Folder parent = files::Folder::at(directory_);
        for (const store::GenerationInfo& one : store_->list())
            store::remove_generation(parent, Generation(one.number).name(), one.folder);
        store_.reset();
        auto [above, name] = files::split_path(directory_);
        files::Folder::at(above).remove_empty(name);
    } catch (const std::exception&) {
        // The next job of this directory removes it.
    }
}

}  // namespace fermata::api
